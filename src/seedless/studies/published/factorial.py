"""Basis, residual scale and head of a start, crossed: what is it that structured starts gain?

The published comparison changed all three at once. Here each cell has another that differs from it
in one of them. docs/results/protocol.md, written before the first run, says what is primary.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from statistics import mean
from typing import Any

from seedless.core.config import Config
from seedless.studies.engine.arm_tables import (
    compare_arms,
    name_arm,
    tabulate_arms,
    tabulate_spreads,
)
from seedless.studies.engine.equivalence_tables import (
    tabulate_equivalence,
    tabulate_last_epochs,
)
from seedless.studies.engine.figures import make_draw
from seedless.studies.engine.fold_pooling import split_folds
from seedless.studies.engine.grid import Grid, Point, make_grid, seed_points
from seedless.studies.engine.options import StudyOptions, choose_init, choose_order
from seedless.studies.engine.results import Results, read_score
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table, format_mean
from seedless.studies.shared.headline_arms import START_FACTOR

MODELS = ("conformer", "baseline")
SCALES = ("1", "0.01")
PRIMARY_BASES = ("kaiming", "orthogonal", "mixed")
BASES = (*PRIMARY_BASES, "dct")
PRIMARY = tuple(f"{basis} at {scale}" for basis in PRIMARY_BASES for scale in SCALES)
DESCRIPTIVE = (
    *(f"dct at {scale}" for scale in SCALES),
    *(f"{basis} at {scale} etf" for basis in BASES for scale in SCALES),
)
COLD = tuple(f"{basis} at {scale}" for basis in ("kaiming", "mixed") for scale in SCALES)
ONE_START, NO_WARMUP = ", one start", ", no warm-up"
ONE_START_ARMS = ("kaiming at 0.01", "mixed at 0.01")
MARGIN = 0.015  # of the published test of equivalence
MAX_ORDERS, MAX_DESCRIPTIVE = 25, 5
# Long enough that selection rarely falls on the last evaluation.
TRAIN = {"epochs": 60, "warmup_steps": 200, "evaluate_every": 5, "checkpoint_every": 60}


def make(options: StudyOptions) -> Grid:
    """Return the primary cells first, then runs from one start in many orders, then the others.

    Workers take the runs in this order, so that a study that is stopped lacks secondary runs first.
    """
    smoke = options.scale == "smoke"
    models = MODELS[-1:] if smoke else MODELS
    few = 1 if smoke else min(options.count, MAX_DESCRIPTIVE)
    points: list[Point] = []
    for model in models:
        points += seed_points(PRIMARY, options.count, partial(build_run, options, model), model)
    for model in models:
        build = partial(build_run, options, model, start_seed=0)
        orders = range(min(options.count, MAX_ORDERS))
        points += _name_points(ONE_START_ARMS, "order", orders, build, f"{model}{ONE_START}")
    for model in models:
        build = partial(build_run, options, model)
        points += _name_points(DESCRIPTIVE, "descriptive seed", range(few), build, model)
        build = partial(build_run, options, model, train={"warmup_steps": 0})
        points += _name_points(COLD, "descriptive seed", range(few), build, f"{model}{NO_WARMUP}")
    factors = {f"{model}{ONE_START}": ("init.basis",) for model in models}
    return split_folds(make_grid("factorial", START_FACTOR, points, factors), options.folds)


def _name_points(
    arms: Iterable[str],
    name: str,
    seeds: Iterable[int],
    build: Callable[[str, int], Config],
    block: str,
) -> list[Point]:
    return [Point(arm, f"{name} {seed}", build(arm, seed), block) for arm in arms for seed in seeds]


def build_run(
    options: StudyOptions,
    model: str,
    arm: str,
    seed: int,
    *,
    start_seed: int | None = None,
    train: Mapping[str, Any] | None = None,
) -> Config:
    """Return a run whose order has this seed, and its start too unless another is given."""
    length = {} if options.scale == "smoke" else TRAIN
    return options.ecg(
        model={"name": model},
        init=choose_init(arm, seed if start_seed is None else start_seed),
        order=choose_order(seed),
        train={**length, **(train or {})},
    )


def tabulate(results: Results) -> list[Table]:
    """Return the cells, the primary tests, the secondary ones, and what to read them with."""
    models = [block for block in results.grid.blocks if block in MODELS]
    random, structured = ONE_START_ARMS
    beyond = {
        other: [(model, "mixed at 0.01", f"{other} at 0.01") for model in models]
        for other in ("kaiming", "orthogonal")
    }
    scales = [(model, "kaiming at 0.01", "kaiming at 1") for model in models]
    spreads = [(f"{model}{ONE_START}", structured, random) for model in models]
    rest = [
        (model, one, other)
        for model in models
        for one, other in (
            ("mixed at 1", "kaiming at 1"),
            ("mixed at 1", "orthogonal at 1"),
            ("orthogonal at 1", "kaiming at 1"),
            ("orthogonal at 0.01", "kaiming at 0.01"),
            ("orthogonal at 0.01", "orthogonal at 1"),
            ("mixed at 0.01", "mixed at 1"),
        )
    ]
    notes = (
        "Heads are filled like any other layer, but for arms called etf.",
        f"Primary: {', '.join(PRIMARY)}. All other arms are descriptive: no test uses them.",
    )
    return [
        tabulate_arms("Test macro AUC by start", results, None, notes),
        tabulate_equivalence("beyond the residual scale", results, beyond["kaiming"], MARGIN),
        tabulate_equivalence("beyond orthogonality", results, beyond["orthogonal"], MARGIN),
        compare_arms("Primary: what the residual scale changes", results, scales),
        tabulate_spreads("Primary: the spread over orders, from one start", results, spreads),
        compare_arms("Secondary", results, rest, margin=MARGIN),
        tabulate_within_folds(results),
        tabulate_last_epochs(results),
    ]


def tabulate_within_folds(results: Results) -> Table:
    """Return the mean over folds of each replicate's scores, next to the pooled ones."""
    rows = []
    for block, arm in results.grid.arms_by_block:
        folds: dict[str, list[float]] = {}
        for one in results.outcomes_of(arm, block):
            score = read_score(one.metrics or {})
            if score is not None:
                folds.setdefault(one.point.replicate, []).append(score)
        pooled = list(results.scores(arm, block).values())
        within = [mean(scores) for scores in folds.values()]
        rows.append(
            (name_arm(block, arm), str(len(pooled)), format_mean(pooled), format_mean(within))
        )
    columns = ("", "replicates", "macro AUC, folds pooled", "macro AUC, mean of folds")
    note = "Within a fold every class with a positive counts, however few it has."
    return Table("Pooled and within folds", columns, tuple(rows), (note,))


STUDY = Study(
    "factorial",
    "Is it the basis, the residual scale or the head that structured starts gain by?",
    make,
    tabulate,
    make_draw({}),
    ("folds",),
)
