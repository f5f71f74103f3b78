"""The golden-ratio order with structured and with random initialization, in two models."""

from seedless.core.config import Config
from seedless.studies.engine.arm_tables import compare_arms, tabulate_arms
from seedless.studies.engine.equivalence_tables import tabulate_equivalence, tabulate_last_epochs
from seedless.studies.engine.figures import make_draw
from seedless.studies.engine.fold_pooling import split_folds
from seedless.studies.engine.grid import Grid, Point, make_grid, offset_points, seed_points
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import (
    PUBLISHED_COLUMNS,
    Published,
    Table,
    compare_with_published,
)
from seedless.studies.shared.headline_arms import EQUAL_KAIMING, START_FACTOR

MODELS = ("conformer", "baseline")
MARGIN = 0.015  # as published: AUCs this close count as equal
DECIDED_MARGIN = 0.04  # what the planned replicates can decide: docs/results/protocol.md
PLANNED = 10
RARE = ("TRIGU", "SVARR", "AFLT")
PUBLISHED = {
    ("conformer", "mixed"): Published(0.959),
    ("conformer", "kaiming"): Published(0.928),
    ("baseline", "mixed"): Published(0.950),
    ("baseline", "kaiming"): Published(0.940),
}
PUBLISHED_RARE = {
    ("conformer", "mixed"): (0.980, 0.892, 0.951),
    ("conformer", "kaiming"): (0.781, 0.923, 0.855),
    ("baseline", "mixed"): (0.906, 0.870, 0.963),
    ("baseline", "kaiming"): (0.891, 0.814, 0.941),
}


def make(options: StudyOptions) -> Grid:
    """Return seed-free runs of each model, and Kaiming with several seeds in the same order.

    Replicates of the seed-free arm take other epochs' permutations of the order. Kaiming is there
    as published, and with the residual scale and head of the structured arm.
    """
    points: list[Point] = []
    for model in MODELS:

        def build(start: str, seed: int, model: str = model) -> Config:
            init = choose_init(start, seed)
            return options.ecg(model={"name": model}, init=init, order={"name": "golden"})

        points += offset_points("mixed", options.count, build("mixed", 0), model)
        points += seed_points(("kaiming", EQUAL_KAIMING[model]), options.count, build, model)
    return split_folds(make_grid("golden", START_FACTOR, points), options.folds)


def tabulate(results: Results) -> list[Table]:
    """Return macro AUC, and the rare classes the published table names."""
    notes = (
        "Published: one run each. Here a random start has several seeds, and the seed-free arm "
        "several offsets of its order.",
    )
    arms = tabulate_arms("Golden order, 2 x 2", results, PUBLISHED, notes)
    pairs = [(model, "mixed", EQUAL_KAIMING[model]) for model in MODELS]
    primary = tabulate_equivalence(
        "like for like, the basis alone", results, pairs, DECIDED_MARGIN, PLANNED
    )
    alone = compare_arms("Secondary: the basis alone", results, pairs, margin=MARGIN)
    classes = results.classes()
    rows, values = [], []
    for (block, arm), known in PUBLISHED_RARE.items():
        for name, value in zip(RARE, known, strict=True):
            scores = list(results.scores(arm, block, class_name=name).values())
            known_value = results.mark_published(Published(value))
            cells, numbers = compare_with_published(scores, known_value)
            positives = classes.get(name, 0)
            rows.append((f"{block} / {arm} / {name}", str(positives), *cells))
            place = {"block": block, "arm": arm, "class": name, "positives": positives}
            values.append({**place, **numbers})
    columns = ("", "positives", "AUC, test", *PUBLISHED_COLUMNS)
    rare = Table("Rare classes", columns, tuple(rows), (), tuple(values))
    return [arms, primary, rare, alone, tabulate_last_epochs(results)]


STUDY = Study(
    "golden",
    "Is a seed-free run, in golden order, as good as a random one in the same order?",
    make,
    tabulate,
    make_draw(PUBLISHED, "Test macro AUC, golden order"),
    ("folds",),
)
