"""Grids are made before anything runs: what they hold, how they are named, who shares a run."""

import itertools

import numpy as np
import pytest

from seedless.core.config import flatten
from seedless.core.errors import StudyError
from seedless.ordering import make_order
from seedless.studies.catalog import STUDIES, open_study
from seedless.studies.engine.grid import Point, make_grid
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import describe_varying_seeds
from seedless.studies.engine.worker import read_points, write_points
from seedless.studies.published import medmnist
from seedless.studies.shared.medmnist_sets import NAMES, find_sets
from tests.studies.tiny_grids import make_config, make_tiny_grid

PAPER = StudyOptions(scale="paper", device="cpu")
SMOKE = StudyOptions(scale="smoke", device="cpu")


def test_the_imaging_study_has_the_published_number_of_runs():
    grid = open_study("medmnist").make(PAPER)
    assert len({point.key for point in grid.points}) == len(grid.points) == 7 * (4 * 20 + 2)
    assert [block for block in grid.blocks if "golden" not in block] == list(NAMES)
    for name in NAMES:
        assert {len(grid.points_of(arm, name)) for arm in medmnist.ARMS} == {20}
        (free,) = grid.points_of("dct", f"{name}, golden")
        assert free.config.init.seed is free.config.order.seed is None
        assert free.config.order.name == "golden_index"


def test_no_two_seeds_share_an_order_in_any_epoch():
    grid = open_study("medmnist").make(PAPER)
    samples = np.arange(64, dtype="f4").reshape(16, 4)
    for block in grid.blocks[:1]:
        seen = set()
        for point in grid.points_of("dct", block):
            order = make_order("seeded", samples, seed=point.config.order.seed)
            seen |= {np.concatenate(order.schedule(e).batches).tobytes() for e in range(8)}
        assert len(seen) == 20 * 8


def test_both_starts_meet_the_same_orders():
    grid = open_study("medmnist").make(PAPER)
    for one, other in zip(grid.points_of("dct"), grid.points_of("kaiming_normal"), strict=True):
        assert (one.block, one.replicate) == (other.block, other.replicate)
        assert one.config.order == other.config.order
        assert one.config.data == other.config.data


def test_a_stand_in_has_the_channels_classes_and_task_of_its_set():
    grid = open_study("medmnist").make(PAPER)
    data = {name: grid.points_of("dct", name)[0].config.data for name in NAMES}
    found = {name: (one.channels, one.classes, one.task) for name, one in data.items()}
    assert found["breastmnist"] == (1, 2, "multi-class")
    assert found["retinamnist"] == (3, 5, "multi-class")
    assert found["chestmnist"] == (1, 14, "multi-label")
    assert len(set(found.values())) == 7
    assert grid.points_of("dct", "chestmnist")[0].config.order.keep_unlabelled
    assert not grid.points_of("dct", "bloodmnist")[0].config.order.keep_unlabelled


def test_smoke_stands_for_both_tasks():
    tasks = {p.config.data.task for p in open_study("medmnist").make(SMOKE).points}
    assert tasks == {"multi-class", "multi-label"}


@pytest.mark.parametrize("file", ["", "breastmnist.npz"])
def test_only_the_sets_that_are_there_are_run(real_data, file):
    place = real_data / "medmnist" / file
    options = StudyOptions(scale="paper", data=str(place), device="cpu")
    assert find_sets(options) == {"breastmnist": str(real_data / "medmnist" / "breastmnist.npz")}
    grid = open_study("medmnist").make(options)
    assert grid.blocks == ("breastmnist", "breastmnist, golden")
    assert grid.points[0].config.train.epochs == 200
    assert len(open_study("medmnist_bases").make(options).points) == 30


def test_a_folder_may_hold_some_sets(tmp_path):
    for name in ("pathmnist", "chestmnist"):
        (tmp_path / f"{name}.npz").touch()
    (tmp_path / "notes.npz").touch()
    found = find_sets(StudyOptions(data=str(tmp_path)))
    assert list(found) == ["chestmnist", "pathmnist"]


@pytest.mark.parametrize("name", ["here/breastmnist.npz", "bloodmist", "ptb-xl"])
def test_data_without_a_set_are_refused(name):
    with pytest.raises(StudyError, match=r"expected simulated, the \.npz of a MedMNIST set"):
        find_sets(StudyOptions(data=name))


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_every_grid_repeats_and_asks_for_what_it_says(name, scale):
    options = StudyOptions(scale=scale, device="cpu")
    first, second = (open_study(name).make(options) for _ in range(2))
    assert first.digest == second.digest
    assert first.study == open_study(name).name == name
    assert "cpu" in {point.config.execution.device for point in first.points} or not first.points


@pytest.mark.parametrize("name", STUDIES)
def test_arms_of_a_block_differ_in_their_factor_alone(name):
    """The law, checked another way than the grid checks it: every pair, every setting."""
    grid = open_study(name).make(StudyOptions(scale="paper", device="cpu", seeds=2))
    for block in grid.blocks:
        members = [flatten(p.config.identity()) for p in grid.points if p.block == block]
        allowed = (*grid.factor_of(block), "init.seed", "order.seed", "order.offset")
        assert not {"init", "order"} & {*allowed}
        for one, other in itertools.combinations(members, 2):
            odd = {key for key in one if one[key] != other[key]}
            assert all(key.startswith(allowed) for key in odd), (block, odd)


def offset_points(shift=0):
    """Two seed-free replicates of two arms, by the order's offset; ``shift`` unpairs the arms."""
    return [
        Point(
            arm,
            f"offset {offset}",
            make_config(arm, order={"name": "content", "seed": None, "offset": offset + add}),
        )
        for arm, add in (("dct", 0), ("mixed", shift))
        for offset in (0, 1)
    ]


def test_replicates_may_differ_in_the_offset_of_their_order():
    grid = make_grid("offsets", ("init.basis",), offset_points())
    assert len({point.key for point in grid.points}) == 4
    assert describe_varying_seeds(grid.points_of("dct")) == "order"


def test_replicates_of_one_name_have_one_offset():
    with pytest.raises(StudyError, match=r"has order.offset 1, offset 0 of another arm has 0"):
        make_grid("unpaired", ("init.basis",), offset_points(shift=1))


def test_a_seeded_order_may_be_paired_with_an_offset():
    seeded = [Point("shuffled", f"offset {seed}", make_config("dct", seed)) for seed in (0, 1)]
    assert make_grid("mixed", ("order.name",), [*offset_points()[:2], *seeded])


def test_studies_share_runs():
    noise = {p.key for p in open_study("noise").make(SMOKE).points}
    basis = {p.key for p in open_study("basis").make(SMOKE).points}
    assert len(noise - basis) == 5  # the seed-free ones
    bases = {p.key for p in open_study("medmnist_bases").make(SMOKE).points}
    images = {p.key for p in open_study("medmnist").make(SMOKE).points}
    assert len(bases & images) == 2


def test_a_key_is_the_configuration_and_a_digest_the_whole_grid():
    grid = make_tiny_grid()
    assert len({point.key for point in grid.points}) == 4
    shorter = make_grid("tiny", ("init.basis",), grid.points[:3])
    renamed = make_grid("other", ("init.basis",), grid.points)
    assert len({grid.digest, shorter.digest, renamed.digest}) == 3
    assert {p.key for p in make_tiny_grid(epochs=2).points}.isdisjoint(p.key for p in grid.points)


def test_points_survive_being_written(tmp_path):
    grid = make_tiny_grid()
    write_points(grid.points, tmp_path / "grid.json")
    assert tuple(read_points(tmp_path / "grid.json")) == grid.points
