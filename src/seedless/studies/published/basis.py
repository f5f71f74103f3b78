"""Five structured bases and Kaiming, paired by seed: does the choice of basis matter?"""

from seedless.stats.group_tests import friedman, levene
from seedless.studies.engine.arm_tables import compare_arms, format_group_test, tabulate_arms
from seedless.studies.engine.figures import make_draw
from seedless.studies.engine.fold_pooling import split_folds
from seedless.studies.engine.grid import Grid, make_grid, seed_points
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Published, Table
from seedless.studies.shared.class_ranges import tabulate_ranges
from seedless.studies.shared.headline_arms import EQUAL_KAIMING, START_FACTOR

STRUCTURED = ("hartley", "sinusoidal", "hadamard", "dct", "mixed")
RANDOM = "kaiming"
EQUAL = EQUAL_KAIMING["conformer"]
PUBLISHED = {
    ("", "hartley"): Published(0.959, 0.006, 20),
    ("", "sinusoidal"): Published(0.956, 0.005, 20),
    ("", "hadamard"): Published(0.955, 0.008, 20),
    ("", "dct"): Published(0.956, 0.010, 20),
    ("", "mixed"): Published(0.959, 0.005, 20),
    ("", "kaiming"): Published(0.954, 0.012, 18),
}


def make(options: StudyOptions) -> Grid:
    """Return every basis with class weights, and the same order seeds in each."""
    points = seed_points((*STRUCTURED, RANDOM, EQUAL), options.count, options.ecg_run)
    return split_folds(make_grid("basis", START_FACTOR, points), options.folds)


def tabulate(results: Results) -> list[Table]:
    """Return the arms, each basis against Kaiming, tests over all, and ranges by class."""
    note = (
        "Published Kaiming: the 18 of 20 runs that converged, with residual scale 1. The other "
        "Kaiming arm has the residual scale and head of the bases; it was not published."
    )
    arms = tabulate_arms("Test macro AUC by basis", results, PUBLISHED, (note,))
    pairs = [("", basis, EQUAL) for basis in STRUCTURED]
    return [
        arms,
        compare_arms("Each basis against Kaiming like for like, paired by seed", results, pairs),
        test_all(results),
        tabulate_ranges(results, (EQUAL, "mixed")),
    ]


def test_all(results: Results) -> Table:
    """Return Friedman's test over the structured bases, and Levene's over all."""
    rows = []
    scores = {arm: results.scores(arm) for arm in (*STRUCTURED, EQUAL)}
    shared = [n for n in scores["dct"] if all(n in scores[arm] for arm in STRUCTURED)]
    questions = (
        ("do the structured bases differ? Friedman", friedman, STRUCTURED, shared),
        ("do the spreads differ? Levene", levene, (*STRUCTURED, EQUAL), None),
    )
    for name, test, arms, replicates in questions:
        groups = {
            arm: [scores[arm][n] for n in (scores[arm] if replicates is None else replicates)]
            for arm in arms
        }
        rows.append((name, *format_group_test(test, groups)))
    columns = ("question", "statistic", "p", "in words")
    note = "Published, over four bases and 20 seeds: Friedman 2.46, p .48."
    return Table("All bases at once", columns, tuple(rows), (note,))


STUDY = Study(
    "basis",
    "Does it matter which orthogonal basis is used?",
    make,
    tabulate,
    make_draw(PUBLISHED),
    ("folds",),
)
