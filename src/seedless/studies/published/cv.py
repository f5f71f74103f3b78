"""Three-fold cross-validation, as published: test folds 10, 9 and 8; several runs in each fold."""

from functools import partial
from statistics import mean, stdev

from seedless.core.config import Config
from seedless.studies.engine.arm_tables import compare_arms, tabulate_arms
from seedless.studies.engine.equivalence_tables import tabulate_last_epochs
from seedless.studies.engine.figures import make_draw
from seedless.studies.engine.fold_pooling import choose_folds
from seedless.studies.engine.grid import Grid, Point, make_grid, offset_points, seed_points
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
MAX_RUNS_PER_FOLD = 5  # runs of an arm in each fold: seeds, or offsets of an order without one
SEEDED, GOLDEN = "conformer seeded", "conformer golden"
ARMS = (SEEDED, GOLDEN, "baseline mixed", "baseline kaiming", "baseline kaiming at 0.01")
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
    count = min(options.count, MAX_RUNS_PER_FOLD)
    points: list[Point] = []
    for test, val in FOLDS:
        for arm in ARMS:
            build, block = partial(build_run, options, test=test, val=val), name_block(arm, test)
            if arm == GOLDEN:
                points += offset_points(arm, count, build(arm, 0), block)
            else:
                points += seed_points((arm,), count, build, block)
    factors = {name_block("conformer", test): ("order.name",) for test, _ in FOLDS}
    return make_grid("cv", START_FACTOR, points, factors)


def name_block(arm: str, test: int) -> str:
    """Return the block of an arm: its model in one fold."""
    return f"{arm.split()[0]}, test fold {test}"


def build_run(options: StudyOptions, arm: str, seed: int, *, test: int, val: int) -> Config:
    """Return the run of an arm with these folds held out."""
    model, _, choice = arm.partition(" ")
    order = choose_order(None if arm == GOLDEN else seed, seed_free="golden")
    start = choose_init(choice if choice.startswith("kaiming") else "mixed", seed)
    data = choose_folds(test, val)
    return options.ecg(model={"name": model}, init=start, order=order, data=data)


def tabulate(results: Results) -> list[Table]:
    """Return each arm in each fold, arms compared fold by fold, means over folds, and classes."""
    note = (
        "Published: one run each. Conformers differ in their order alone. The published baselines "
        "differ in basis and residual scale; the third one differs from mixed in its basis alone."
    )
    pairs = [
        (name_block(one, test), one, other)
        for one, other in (("baseline mixed", "baseline kaiming at 0.01"), (GOLDEN, SEEDED))
        for test, _ in FOLDS
    ]
    return [
        tabulate_arms("Test macro AUC by fold", results, PUBLISHED, (note,)),
        tabulate_means(results),
        tabulate_classes(results),
        compare_arms("Secondary: fold by fold, arms that differ in one setting", results, pairs),
        tabulate_last_epochs(results),
    ]


def tabulate_means(results: Results) -> Table:
    """Return one row per arm: the mean over folds of each replicate, beside the published one."""
    rows, values = [], []
    for arm in ARMS:
        by_fold = [results.scores(arm, name_block(arm, test)) for test, _ in FOLDS]
        whole = [name for name in by_fold[0] if all(name in scores for scores in by_fold)]
        means = [mean(scores[name] for scores in by_fold) for name in whole]
        known = [value.mean for (_, name), value in PUBLISHED.items() if name == arm]
        over = Published(mean(known), stdev(known), len(known)) if known else None
        cells, numbers = compare_with_published(means, results.mark_published(over))
        rows.append((arm, str(len(means)), *cells))
        values.append({"arm": arm, **numbers})
    columns = ("arm", "replicates", "mean over folds", *PUBLISHED_COLUMNS)
    note = (
        "A replicate is one run in each fold. Our SDs are over replicates, published ones over the "
        "three folds."
    )
    return Table("Over folds", columns, tuple(rows), (note,), tuple(values))


def tabulate_classes(results: Results) -> Table:
    """Return the AUC of each class: mean and SD over the folds in which it has positives."""
    positives: dict[str, list[int]] = {}
    for test, _ in FOLDS:
        for name, count in results.classes(name_block("baseline", test)).items():
            positives.setdefault(name, []).append(count)
    rows = []
    for name, counts in positives.items():
        cells = []
        for arm in ARMS:
            by_fold = [
                results.scores(arm, name_block(arm, test), class_name=name) for test, _ in FOLDS
            ]
            cells.append(format_mean([mean(scores.values()) for scores in by_fold if scores]))
        rows.append((name, ", ".join(map(str, counts)), *cells))
    columns = ("class", f"positives in folds {', '.join(str(test) for test, _ in FOLDS)}", *ARMS)
    note = (
        "Mean and SD over folds of the mean in each, of folds in which the class has a score; one "
        "fold has no SD."
    )
    return Table("By class", columns, tuple(rows), (note,))


STUDY = Study("cv", "Do the results hold on other folds?", make, tabulate, make_draw(PUBLISHED))
