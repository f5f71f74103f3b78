"""Four structured bases and Kaiming on images, in the published golden order.

Replicates of a basis have other offsets of the order, those of Kaiming other seeds of the start.
"""

from collections.abc import Callable
from functools import partial
from statistics import mean

from seedless.core.config import Config
from seedless.stats.group_tests import friedman
from seedless.studies.engine.arm_tables import compare_arms, format_group_test, tabulate_arms
from seedless.studies.engine.figures import make_draw
from seedless.studies.engine.grid import Grid, Point, make_grid, offset_points, seed_points
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Published, Table
from seedless.studies.shared.medmnist_sets import build_run, describe_stand_ins, find_sets

Build = Callable[[str], Config]

FOUR = ("dct", "hadamard", "hartley", "sinusoidal")
KAIMING = "kaiming_normal"
BASES = (*FOUR, KAIMING)
MAX_RUNS_PER_ARM = 5  # runs of an arm: offsets of the order, or seeds of the start
EQUAL = "kaiming_normal at 0.01"  # with the residual scale of the bases
_VALUES = {
    "dermamnist": (0.915, 0.914, 0.911, 0.914, 0.912),
    "retinamnist": (0.755, 0.701, 0.711, 0.717, 0.733),
}
PUBLISHED = {
    (name, basis): Published(value)
    for name, values in _VALUES.items()
    for basis, value in zip(BASES, values, strict=True)
}


def make(options: StudyOptions) -> Grid:
    """Return the bases in golden order, on the two published sets or on those of --data."""
    sets = find_sets(options)
    count = min(options.count, MAX_RUNS_PER_ARM)
    points: list[Point] = []
    for name, file in ({n: f for n, f in sets.items() if n in _VALUES} or sets).items():
        build = partial(build_run, options, name, file, seed=None)

        def build_random(start: str, seed: int, build: Build = build) -> Config:
            return build(start).change(init={"seed": seed})

        for basis in FOUR:
            points += offset_points(basis, count, build(basis), name)
        points += seed_points((KAIMING, EQUAL), count, build_random, name)
    return make_grid("medmnist_bases", ("init.basis", "init.residual_scale"), points)


def tabulate(results: Results) -> list[Table]:
    """Return one row per basis, the test over the bases, and each basis against Kaiming."""
    notes = (
        "Published: one run each, which does not say how large a difference seeds make.",
        f"The bases have residual scale 0.01, {KAIMING} 1; {EQUAL} was not published.",
        *describe_stand_ins(results.options),
    )
    pairs = [(block, basis, EQUAL) for block in results.grid.blocks for basis in FOUR]
    return [
        tabulate_arms("Golden order by basis", results, PUBLISHED, notes),
        test_bases(results),
        compare_arms("Secondary: each basis against Kaiming like for like", results, pairs),
    ]


def test_bases(results: Results) -> Table:
    """Return Friedman's test over the four bases, with offsets as blocks, and how far apart."""
    rows = []
    for block in results.grid.blocks:
        scores = {basis: results.scores(basis, block) for basis in FOUR}
        shared = [n for n in scores[FOUR[0]] if all(n in scores[basis] for basis in FOUR)]
        groups = {basis: [scores[basis][n] for n in shared] for basis in FOUR}
        means = [mean(values) for values in groups.values() if values]
        apart = f"{max(means) - min(means):.4f}" if means else "none"
        known = [PUBLISHED[block, basis].mean for basis in FOUR if (block, basis) in PUBLISHED]
        published = f"{max(known) - min(known):.4f}" if known else ""
        test = format_group_test(friedman, groups)
        rows.append((block, str(len(shared)), apart, published, *test))
    columns = (
        *("set", "offsets", "best mean minus worst", "published, one run each"),
        *("Friedman", "p", "in words"),
    )
    return Table("Primary: do the four bases differ?", columns, tuple(rows))


STUDY = Study(
    "medmnist_bases",
    "Does it matter which basis is used for images, in a run without a seed?",
    make,
    tabulate,
    make_draw(PUBLISHED, "Test macro AUC, golden order"),
)
