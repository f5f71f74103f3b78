"""Every batch order with the published start; seed-free orders have replicates by their offset."""

from dataclasses import replace

from seedless.core.config import Config
from seedless.ordering import ORDERS
from seedless.studies.engine.arm_tables import compare_arms, tabulate_arms
from seedless.studies.engine.equivalence_tables import tabulate_equivalence, tabulate_last_epochs
from seedless.studies.engine.figures import make_draw
from seedless.studies.engine.fold_pooling import split_folds
from seedless.studies.engine.grid import Grid, make_grid, offset_points, seed_points
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Published, Table

REFERENCE = "seeded"
STATIC = ("content_static", "herding")  # the same permutation in every epoch
MARGIN = 0.015  # as published: AUCs this close count as equal
DECIDED_MARGIN = 0.04  # what the planned replicates can decide: docs/results/protocol.md
PLANNED = 10
SEED_FREE = ("content", "golden")
NOTES = (
    f"The published margin is {MARGIN:g}; so few replicates cannot decide it where scores vary as "
    "much as these. It stands in the secondary tests.",
    "All runs begin from the same weights. Replicates of the shuffle have another seed, those of "
    "the other orders another offset: other epochs' permutations.",
    f"{' and '.join(STATIC)} have one permutation for all epochs, and so one run.",
)
PUBLISHED = {
    ("", name): Published(value)
    for name, value in {
        "seeded": 0.955,
        "class_guaranteed": 0.947,
        "golden": 0.941,
        "sobol": 0.939,
        "feature_diverse": 0.883,
        "stratified_quantile": 0.579,
        "class_diverse": 0.559,
        "herding": 0.522,
        "content_static": 0.479,
        "pair_balance": 0.579,
        "loss_ranked": 0.500,
        "interleaved_loss_ranked": 0.579,
    }.items()
}


def make(options: StudyOptions) -> Grid:
    """Return every order with the published start, and replicates of each."""

    def build(name: str, seed: int | None = None) -> Config:
        return options.ecg(init=choose_init("mixed"), order={"name": name, "seed": seed})

    points = seed_points((REFERENCE,), options.count, build)
    for name in (other for other in ORDERS if other != REFERENCE):
        points += offset_points(name, 1 if name in STATIC else options.count, build(name))
    return split_folds(make_grid("order", ("order.name",), points), options.folds)


def tabulate(results: Results) -> list[Table]:
    """Return the orders, and each against the seeded shuffle with a test of equivalence."""
    notes = ("Published orders: one run each. content is not published.",)
    pairs = [("", arm, REFERENCE) for arm in results.grid.arms if arm != REFERENCE]
    seed_free = [("", arm, REFERENCE) for arm in SEED_FREE]
    title = "an order without a seed, minus the seeded shuffle"
    asked = tabulate_equivalence(title, results, seed_free, DECIDED_MARGIN, PLANNED)
    return [
        replace(asked, notes=(*asked.notes, *NOTES)),
        tabulate_arms("Test macro AUC by order", results, PUBLISHED, notes),
        compare_arms("Secondary: each order minus the shuffle", results, pairs, margin=MARGIN),
        tabulate_last_epochs(results),
    ]


STUDY = Study(
    "order",
    "Which batch orders cost accuracy, and does content, which needs no seed, cost any?",
    make,
    tabulate,
    make_draw(PUBLISHED),
    ("folds",),
)
