"""Published values stand beside the arm they belong to, with the difference and the verdict."""

import importlib
from dataclasses import replace

import pytest

from seedless.core.errors import DataError, StudyError, UnknownNameError
from seedless.studies.catalog import STUDIES, open_study
from seedless.studies.engine.arm_tables import tabulate_arms
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import read_results
from seedless.studies.engine.runner import describe_counts, explain_failures, run_study
from seedless.studies.engine.store import Store
from seedless.studies.engine.table import (
    PUBLISHED_COLUMNS,
    Published,
    format_published,
    list_published_values,
)
from seedless.studies.published import convergence, cv, golden, main, order, perclass
from tests.studies.conftest import SMOKE
from tests.studies.fake_outcomes import make_outcome, make_results
from tests.studies.plans import plan

PAPER = StudyOptions(scale="paper", device="cpu", seeds=2)
REAL = replace(PAPER, data="ptb-xl")


@pytest.mark.parametrize("name", STUDIES)
def test_every_published_arm_is_in_the_grid(name):
    """A value under a name that no arm has would be shown nowhere."""
    known = getattr(
        importlib.import_module(f"seedless.studies.published.{name}"), "PUBLISHED", None
    )
    if not isinstance(known, dict) or not isinstance(next(iter(known.values())), Published):
        return
    arms = {(p.block, p.arm) for p in open_study(name).make(PAPER).points}
    assert set(known) <= arms


def test_a_value_stands_beside_the_published_one():
    known = Published(0.784, 0.003, 20)
    assert format_published(known, 0.7850) == ("0.784 ± 0.003", "+0.0010", "yes")
    assert format_published(known, 0.7860) == ("0.784 ± 0.003", "+0.0020", "no")
    assert format_published(Published(0.784), 0.786) == ("0.784", "+0.0020", "none given")
    assert format_published(known, None) == ("0.784 ± 0.003", "", "")
    assert format_published(None, 0.5) == ("", "", "")
    values = list_published_values(known, 0.786)
    assert values["difference"] == pytest.approx(0.002)
    assert values["in_interval"] is False
    assert (values["published_sd"], values["published_n"]) == (0.003, 20)


def test_every_order_that_was_published_shows_its_value():
    results = make_results(order.make(REAL), REAL, lambda _: 0.6)
    rows = {row[0]: row for row in tabulate_arms("", results, order.PUBLISHED).rows}
    assert rows["interleaved_loss_ranked"][-3:] == ("0.579", "+0.0210", "none given")
    assert [name for name, row in rows.items() if not row[-3]] == ["content", "golden_index"]


def test_arms_say_in_numbers_whether_they_lie_in_the_published_interval():
    results = make_results(main.make(REAL), REAL, lambda _: 0.9595)
    values = main.tabulate(results)[0].values
    found = {(value["block"], value["arm"]): value for value in values}
    assert found["conformer", "mixed + weights"]["in_interval"] is True
    assert found["conformer", "kaiming"]["in_interval"] is False
    assert found["conformer, seed-free", "golden"]["in_interval"] is None
    assert found["conformer", "mixed"]["difference"] is None


def test_folds_and_rare_classes_have_their_difference_too():
    over = cv.tabulate(make_results(cv.make(REAL), REAL, lambda _: 0.95))[1]
    assert over.columns[-3:] == PUBLISHED_COLUMNS
    assert over.rows[0][-3:] == ("0.9553 ± 0.012", "-0.0053", "yes")
    rare = golden.tabulate(make_results(golden.make(REAL), REAL, lambda _: 0.9))[2]
    assert rare.columns[-3:] == PUBLISHED_COLUMNS
    assert len(rare.rows) == len(rare.values) == 12


@pytest.mark.parametrize(
    "changes",
    [
        {"data": "simulated"},
        {"data": "here/ptb-xl-derived100.npz"},
        {"scale": "small"},
        {"folds": 3},
        {"changes": ("train.epochs=60",)},
    ],
)
def test_other_data_networks_or_training_have_no_difference_to_what_was_published(changes):
    assert replace(REAL, changes=("execution.precision=tf32",)).as_published
    assert replace(REAL, data="here/breastmnist.npz").as_published
    options = replace(REAL, **changes)
    assert not options.as_published
    results = make_results(golden.make(PAPER), options, lambda _: 0.9)
    table = tabulate_arms("", results, golden.PUBLISHED)
    assert {row[-2:] for row in table.rows} == {("", "")}
    assert table.rows[0][-3] == "0.959"
    assert {value["difference"] for value in table.values} == {None}
    assert "no difference is computed" in table.notes[-1]


def test_folds_have_a_table_of_classes():
    results = make_results(cv.make(PAPER), PAPER, lambda _: 0.95)
    scored = [
        make_outcome(one.point, 0.95, SR=0.9 + 0.01 * (one.point.config.data.test_fold or 10))
        for one in results.outcomes
    ]
    table = cv.tabulate(replace(results, outcomes=tuple(scored)))[2]
    assert table.rows == (("SR", "9, 9, 9", *["0.9900 ± 0.0100"] * len(cv.ARMS)),)


def test_the_spread_of_the_headline_is_tested_where_the_order_alone_varies():
    options = replace(PAPER, seeds=4)
    results = make_results(
        main.make(options),
        options,
        lambda p: 0.9 + 0.01 * (p.config.order.seed or 0) ** 2 * ("kaiming" in p.arm),
    )
    spreads = main.tabulate(results)[2]
    assert [row[2] for row in spreads.rows] == ["order", "order"]
    assert all(float(row[-2]) < 1 for row in spreads.rows)


def test_published_values_of_other_datasets_belong_to_runs_in_golden_order():
    grid = open_study("crossdataset").make(replace(PAPER, scale="smoke"))
    assert {p.config.order.name for p in grid.points} == {"golden"}
    assert {p.config.order.offset for p in grid.points_of("conformer")} == {0, 2}


def test_images_of_the_class_study_are_runs_of_medmnist(tmp_path):
    """Pixels to [-1, 1], and images without a finding kept: the protocol of that study."""
    for name in ("chestmnist", "bloodmnist"):
        (tmp_path / f"{name}.npz").touch()
    for data in ("simulated", str(tmp_path), str(tmp_path / "chestmnist.npz")):
        options = StudyOptions(scale="paper", device="cpu", seeds=2, data=data)
        images = [p for p in perclass.make(options).points if p.block.startswith("chestmnist")]
        assert len(images) == 7
        assert {p.key for p in images} <= {
            p.key for p in open_study("medmnist").make(options).points
        }
        assert all(p.config.order.keep_unlabelled for p in images)


def test_failed_runs_are_explained_once_a_reason():
    grid = open_study("convergence").make(PAPER)
    results = make_results(grid, PAPER, lambda p: None if p.arm == "mixed" else 0.9)
    failures = explain_failures(results)
    assert failures == ("mixed / seed 0 and 1 more failed: it broke",)
    told = describe_counts({"converged": 2, "failed": 2}, failures)
    assert told == f"Ended: 2 converged, 0 at chance, 2 failed.\n\n- {failures[0]}\n\n"


def test_a_reason_from_elsewhere_is_one_line_of_plain_text():
    told = describe_counts({"failed": 1}, ["it broke\n# IDENTICAL \x1b[31m<script>"])
    assert "\n- it broke\\n# IDENTICAL \\x1b[31m&lt;script>\n" in told


def test_one_run_has_no_spread(smoke_store):
    for seeds, shown in ((1, False), (2, True)):
        options = replace(SMOKE, seeds=seeds)
        grid = convergence.make(options)
        (table,) = convergence.tabulate(read_results(grid, Store(smoke_store), options))
        assert all(("±" in row[-1]) is shown for row in table.rows)


def test_data_that_are_not_there_end_a_study_before_it_begins(tmp_path):
    with pytest.raises(UnknownNameError, match=r"unknown dataset 'ptbxl'.*did you mean 'ptb-xl'"):
        run_study(plan("convergence", StudyOptions(data="ptbxl")), tmp_path)
    with pytest.raises(DataError, match="seedless data fetch afdb"):
        run_study(plan("convergence", StudyOptions(data="afdb")), tmp_path)
    assert not list((tmp_path / "failed").glob("*"))


def test_a_study_without_runs_has_no_arms_to_choose():
    with pytest.raises(StudyError, match="theory has no runs"):
        open_study("theory").plan(StudyOptions(arms=("dct",)))


def test_a_study_of_two_runs_refuses_to_leave_one_out():
    with pytest.raises(StudyError, match="attribution compares its two runs"):
        open_study("attribution").plan(StudyOptions(arms=("as it is",)))


@pytest.mark.parametrize("name", STUDIES)
def test_every_arm_can_be_named_on_the_command_line(name):
    """Names are parted by commas, so none may hold one."""
    grid = open_study(name).make(PAPER)
    assert [arm for arm in grid.arms if "," in arm] == []
