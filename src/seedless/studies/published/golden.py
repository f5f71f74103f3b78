"""The golden-ratio order with structured and with random initialization, in two models."""

from seedless.core.config import Config
from seedless.studies.engine.arm_tables import tabulate_arms
from seedless.studies.engine.figures import make_draw
from seedless.studies.engine.fold_pooling import split_folds
from seedless.studies.engine.grid import Grid, Point, make_grid, seed_points
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import (
    PUBLISHED_COLUMNS,
    Published,
    Table,
    compare_with_published,
)

MODELS = ("conformer", "baseline")
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
    """Return one seed-free run per model, and Kaiming with several seeds in the same order."""
    points: list[Point] = []
    for model in MODELS:

        def build(basis: str, seed: int = 0, model: str = model) -> Config:
            init = choose_init(basis, seed)
            return options.ecg(model={"name": model}, init=init, order={"name": "golden"})

        points.append(Point("mixed", "seed-free", build("mixed"), model))
        points += seed_points(("kaiming",), options.count, build, model)
    return split_folds(make_grid("golden", ("init",), points), options.folds)


def tabulate(results: Results) -> list[Table]:
    """Return macro AUC, and the rare classes the published table names."""
    note = "Published Kaiming: one seed. Here every seed is shown, for one random run says little."
    arms = tabulate_arms("Golden order, 2 x 2", results, PUBLISHED, (note,))
    classes = results.classes()
    rows, values = [], []
    for (block, arm), known in PUBLISHED_RARE.items():
        for name, value in zip(RARE, known, strict=True):
            scores = list(results.scores(arm, block, class_name=name).values())
            cells, numbers = compare_with_published(scores, Published(value))
            positives = classes.get(name, 0)
            rows.append((f"{block} / {arm} / {name}", str(positives), *cells))
            place = {"block": block, "arm": arm, "class": name, "positives": positives}
            values.append({**place, **numbers})
    columns = ("", "positives", "AUC, test", *PUBLISHED_COLUMNS)
    return [arms, Table("Rare classes", columns, tuple(rows), (), tuple(values))]


STUDY = Study(
    "golden",
    "Is a seed-free run, in golden order, as good as a random one in the same order?",
    make,
    tabulate,
    make_draw(PUBLISHED, "Test macro AUC, golden order"),
    ("folds",),
)
