"""What a study will not do, and how it says so."""

import pytest

from seedless.core.errors import SeedlessError, StudyError, UnknownNameError
from seedless.studies.catalog import open_study
from seedless.studies.engine.arm_tables import compare_arms, tabulate_spreads
from seedless.studies.engine.grid import Point, make_grid, seed_points
from seedless.studies.engine.local_workers import run_local
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.page import report_study
from seedless.studies.engine.ray_workers import run_ray
from seedless.studies.engine.runner import run_study, write_study
from seedless.studies.engine.store import Store
from tests.studies.fake_outcomes import make_results
from tests.studies.plans import plan
from tests.studies.tiny_grids import make_config, make_tiny_grid


def test_arms_that_differ_in_more_than_the_factor_are_refused_by_name():
    points = [
        Point("dct", "seed 0", make_config("dct")),
        Point("kaiming", "seed 0", make_config("kaiming", loss={"class_weights": "sqrt"})),
    ]
    with pytest.raises(StudyError, match=r"loss\.class_weights is 'none' and 'sqrt'") as found:
        make_grid("unfair", ("init.basis",), points)
    assert "dct / seed 0 and kaiming / seed 0" in str(found.value)
    assert "init.basis is" not in str(found.value)
    assert make_grid("crossed", ("init.basis", "loss.class_weights"), points)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("dct at 0.01", "kaiming at 1", r"init\.residual_scale is 0\.01 and 1\.0"),
        ("dct at 1", "kaiming at 1 etf", r"init\.heads is 'basis' and 'etf'"),
        ("dct", "kaiming", r"init\.residual_scale is 0\.01 and 1\.0"),
    ],
)
def test_residual_scale_and_head_are_not_part_of_the_basis(one, other, told):
    """Structured arms used to have a residual scale of their own, and no grid noticed."""
    options = StudyOptions(scale="smoke", device="cpu")
    points = [Point(arm, "seed 0", options.ecg_run(arm, 0)) for arm in (one, other)]
    with pytest.raises(StudyError, match=told):
        make_grid("unfair", ("init.basis",), points)
    assert make_grid("factorial", ("init.basis", "init.residual_scale", "init.heads"), points)


@pytest.mark.parametrize("section", ["init", "order"])
def test_a_section_of_several_factors_is_not_one_factor(section):
    with pytest.raises(StudyError, match=f"{section} is not one factor: name the settings"):
        make_grid("unfair", (section,), make_tiny_grid().points)


@pytest.mark.parametrize("key", ["residual_scale", "heads"])
def test_a_start_whose_settings_are_left_out_is_refused(key):
    """Left out, the setting would mean 0.01 in one arm and 1 in the other."""
    config = make_config().change(init={key: None})
    with pytest.raises(StudyError, match=f"dct / seed 0 leaves init.{key} out"):
        make_grid("unwritten", ("init.basis",), [Point("dct", "seed 0", config)])


def test_arms_that_differ_in_two_factors_are_not_compared():
    arms = ("dct at 1", "kaiming at 1", "kaiming at 0.01")
    options = StudyOptions(scale="smoke", device="cpu")
    points = seed_points(arms, 3, options.ecg_run)
    grid = make_grid("factorial", ("init.basis", "init.residual_scale"), points)
    results = make_results(grid, options, lambda p: 0.7 + p.config.order.seed / 100)
    assert compare_arms("", results, [("", arms[0], arms[1]), ("", arms[1], arms[2])])
    pair = ("", arms[0], arms[2])
    with pytest.raises(StudyError, match=r"differ in init\.basis, init\.residual_scale"):
        compare_arms("", results, [pair])
    assert compare_arms("", results, [pair], as_published=True).rows


def test_spreads_are_tested_only_where_the_same_varies():
    """A random start varies with its seed as well; a structured one varies in the order alone."""
    arms = ("dct at 1", "kaiming at 1", "orthogonal at 1")
    options = StudyOptions(scale="smoke", device="cpu")
    grid = make_grid("spread", ("init.basis",), seed_points(arms, 4, options.ecg_run))
    results = make_results(
        grid,
        options,
        lambda p: 0.7 + p.config.order.seed**2 * (0.05 if "kaiming" in p.arm else 0.01),
    )
    pairs = [("", arms[1], arms[2]), ("", arms[0], arms[1])]
    tested, untested = tabulate_spreads("", results, pairs).rows
    assert float(tested[-2]) < 1
    assert tested[2] == "initialization and order"
    assert untested[-2].startswith("not tested: seeds vary in order and in initialization and")


def test_every_odd_setting_is_named():
    points = [
        Point("a", "seed 0", make_config(train={"rate": 0.5})),
        Point("b", "seed 0", make_config(order={"batch_size": 8})),
    ]
    with pytest.raises(StudyError, match=r"order\.batch_size is 16 and 8.*train\.rate is 0\.5"):
        make_grid("unfair", (), points)


def test_a_factor_does_not_cover_what_merely_begins_like_it():
    points = [
        Point("a", "seed 0", make_config(train={"evaluate_every": 1})),
        Point("b", "seed 0", make_config(train={"evaluate_batch": 64})),
    ]
    with pytest.raises(StudyError, match="evaluate_batch"):
        make_grid("unfair", ("train.evaluate",), points)


def test_replicates_of_one_name_are_pairs():
    points = [
        Point("dct", "seed 0", make_config("dct", 0)),
        Point("kaiming", "seed 0", make_config("kaiming", 1)),
    ]
    with pytest.raises(StudyError, match=r"has order\.seed 1, seed 0 of another arm has 0"):
        make_grid("unpaired", ("init.basis",), points)


def test_a_point_stands_in_a_grid_once():
    point = Point("dct", "seed 0", make_config())
    with pytest.raises(StudyError, match="dct / seed 0 is in the grid twice"):
        make_grid("twice", ("init.basis",), [point, point])


@pytest.mark.parametrize(
    ("name", "options", "engine", "told"),
    [
        ("medmist", StudyOptions(), "local", "medmnist"),
        ("cifar100", StudyOptions(scale="smok"), "local", "smoke"),
        ("cifar100", StudyOptions(device="cpu"), "rya", "ray"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(tmp_path, name, options, engine, told):
    with pytest.raises(UnknownNameError, match=told):
        run_study(plan(name, options), tmp_path, engine=engine)
    assert not list(tmp_path.glob("runs/*"))


def test_a_table_with_a_run_missing_is_refused(tmp_path):
    with pytest.raises(StudyError, match=r"dct / seed 0 is not finished.*study run"):
        write_study(plan("cifar100", StudyOptions(device="cpu")), Store(tmp_path))
    assert not (tmp_path / "tables").exists()


@pytest.mark.parametrize("run", [run_local, run_ray])
def test_no_runs_at_once_are_refused(tmp_path, run):
    with pytest.raises(StudyError, match="runs_per_device of at least 1, got 0"):
        run(Store(tmp_path), make_tiny_grid().points, runs_per_device=0)


def test_data_that_are_not_there_are_refused():
    with pytest.raises(SeedlessError, match="no file or folder at"):
        open_study("basis").make(StudyOptions(data="nowhere/ptb.npz"))


def test_a_store_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match="cannot write the store"):
        Store(tmp_path / "file")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["plan", "nothing"], "unknown study 'nothing'"),
        (["plan", "main", "--scale", "huge"], "unknown scale 'huge'"),
        (["run", "cifar100", "--engine", "boat"], "unknown engine 'boat'"),
        (["table", "cifar100"], "is not finished"),
        (["report", "cifar100"], "is not finished"),
    ],
)
def test_the_command_line_says_it_in_one_line(run_seedless, tmp_path, arguments, told):
    store = [] if arguments[0] == "plan" else ["--store", str(tmp_path)]
    done = run_seedless("study", *arguments, *store, check=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "given", "option"),
    [
        ("basis", {"noise": "x"}, "--noise-path"),
        ("basis", {"prove": True}, "--prove"),
        ("cv", {"folds": 3}, "--folds"),
        ("noise", {"other": ("mitdb=x",)}, "--other"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(name, given, option):
    with pytest.raises(StudyError, match=f"{option} has no meaning for the study {name}"):
        open_study(name).plan(StudyOptions(**given))


def test_a_page_replaces_no_file(tmp_path):
    page = tmp_path / "mine.html"
    page.write_text("mine")
    with pytest.raises(StudyError, match="exists already"):
        report_study(plan("theory", StudyOptions()), Store(tmp_path / "store"), page)
    assert page.read_text() == "mine"
