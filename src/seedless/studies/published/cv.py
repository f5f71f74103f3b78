"""Three-fold cross-validation, as published: test folds 10, 9 and 8."""

from statistics import mean, stdev

from seedless.core.config import Config
from seedless.studies.engine.arm_tables import tabulate_arms
from seedless.studies.engine.figures import make_draw
from seedless.studies.engine.grid import Grid, Point, make_grid
from seedless.studies.engine.options import StudyOptions, choose_init, choose_order
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import (
    PUBLISHED_COLUMNS,
    Published,
    Table,
    compare_with_published,
    format_mean,
)
from seedless.studies.shared.headline_arms import START_FACTOR

FOLDS = ((10, 9), (9, 8), (8, 10))  # test, validation
ARMS = (
    *("conformer seeded", "conformer golden", "baseline mixed", "baseline kaiming"),
    "baseline kaiming at 0.01",
)
PUBLISHED = {
    (f"{arm.split()[0]}, test fold {test}", arm): Published(value)
    for arm, values in {
        "conformer seeded": (0.942, 0.961, 0.963),
        "conformer golden": (0.908, 0.948, 0.968),
        "baseline mixed": (0.927, 0.953, 0.934),
        "baseline kaiming": (0.923, 0.949, 0.941),
    }.items()
    for (test, _), value in zip(FOLDS, values, strict=True)
}


def make(options: StudyOptions) -> Grid:
    """Return the four published arms in each fold, and Kaiming like for like."""
    points = [
        Point(arm, "seed 0", build(options, arm, test, val), name_block(arm, test))
        for test, val in FOLDS
        for arm in ARMS
    ]
    factors = {name_block("conformer", test): ("order.name",) for test, _ in FOLDS}
    return make_grid("cv", START_FACTOR, points, factors)


def name_block(arm: str, test: int) -> str:
    """Return the block of an arm: its model in one fold."""
    return f"{arm.split()[0]}, test fold {test}"


def build(options: StudyOptions, arm: str, test: int, val: int) -> Config:
    """Return the run of an arm with these folds held out."""
    model, _, choice = arm.partition(" ")
    order = choose_order(None if choice == "golden" else 0, seed_free="golden")
    start = choose_init(choice if choice.startswith("kaiming") else "mixed")
    data = {"test_fold": test, "val_fold": val}
    return options.ecg(model={"name": model}, init=start, order=order, data=data)


def tabulate(results: Results) -> list[Table]:
    """Return each arm in each fold, its mean over folds, and its classes."""
    rows, values = [], []
    for arm in ARMS:
        scores = [s for block in results.grid.blocks for s in results.scores(arm, block).values()]
        known = [value.mean for (_, name), value in PUBLISHED.items() if name == arm]
        over = Published(mean(known), stdev(known), len(known)) if known else None
        cells, numbers = compare_with_published(scores, results.mark_published(over))
        rows.append((arm, str(len(scores)), *cells))
        values.append({"arm": arm, **numbers})
    columns = ("arm", "folds", "mean over folds", *PUBLISHED_COLUMNS)
    note = (
        "Conformers differ in their order alone. The published baselines differ in basis and "
        "residual scale; the third one differs from mixed in its basis alone."
    )
    return [
        tabulate_arms("Test macro AUC by fold", results, PUBLISHED, (note,)),
        Table("Over folds", columns, tuple(rows), (), tuple(values)),
        tabulate_classes(results),
    ]


def tabulate_classes(results: Results) -> Table:
    """Return the AUC of each class: mean and SD over the folds in which it has positives."""
    positives: dict[str, list[int]] = {}
    for test, _ in FOLDS:
        for name, count in results.classes(name_block("baseline", test)).items():
            positives.setdefault(name, []).append(count)
    rows = []
    for name, counts in positives.items():
        cells = [
            format_mean(
                [
                    score
                    for block in results.grid.blocks
                    for score in results.scores(arm, block, class_name=name).values()
                ]
            )
            for arm in ARMS
        ]
        rows.append((name, ", ".join(map(str, counts)), *cells))
    columns = ("class", f"positives in folds {', '.join(str(test) for test, _ in FOLDS)}", *ARMS)
    note = "Mean and SD over folds, of folds in which the class has a score; one fold has no SD."
    return Table("By class", columns, tuple(rows), (note,))


STUDY = Study("cv", "Do the results hold on other folds?", make, tabulate, make_draw(PUBLISHED))
