"""Basis, residual scale and head of a start, crossed: what is it that structured starts gain?

The published comparison changed all three at once. Here each cell has another that differs from it
in one of them. docs/results/protocol.md, written before the first run, says what is primary.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import mean
from typing import Any

from seedless.core.config import Config
from seedless.core.errors import StatsError
from seedless.stats.equivalence import Equivalence, paired_tost
from seedless.stats.holm_correction import holm
from seedless.studies.engine.arm_tables import (
    Pair,
    compare_arms,
    name_arm,
    tabulate_arms,
    tabulate_spreads,
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
ALPHA = 0.05
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
        tabulate_equality("Primary: beyond the residual scale", results, beyond["kaiming"]),
        tabulate_equality("Primary: beyond orthogonality", results, beyond["orthogonal"]),
        compare_arms("Primary: what the residual scale changes", results, scales),
        tabulate_spreads("Primary: the spread over orders, from one start", results, spreads),
        compare_arms("Secondary", results, rest, margin=MARGIN),
        tabulate_within_folds(results),
        tabulate_selection(results),
    ]


def tabulate_equality(title: str, results: Results, pairs: Sequence[Pair]) -> Table:
    """Return primary tests of equality: two one-sided tests of the pairs that share a seed."""
    tests: dict[Pair, Equivalence | str] = {}
    for pair in pairs:
        block, one, other = pair
        a, b = results.scores(one, block), results.scores(other, block)
        shared = [name for name in a if name in b]
        try:
            tests[pair] = paired_tost([a[n] for n in shared], [b[n] for n in shared], MARGIN)
        except StatsError as error:
            tests[pair] = str(error)
    found = {pair: test for pair, test in tests.items() if isinstance(test, Equivalence)}
    p_values = {"/".join(pair): test.p for pair, test in found.items()}
    adjusted = dict(holm(p_values).adjusted) if p_values else {}
    rows, values = [], []
    for pair, test in tests.items():
        name = f"{pair[0]}: {pair[1]} - {pair[2]}"
        if isinstance(test, str):
            rows.append((name, "", "", "", "", "", f"not tested: {test}"))
            continue
        low, high = test.interval
        p = adjusted["/".join(pair)]
        rows.append(
            (
                name,
                str(test.n[0]),
                f"{test.difference:+.4f}",
                f"{low:+.4f} to {high:+.4f}",
                f"{test.p:.3g}",
                f"{p:.3g}",
                "equal within the margin" if p < ALPHA else "not shown to be equal",
            )
        )
        values.append({"pair": list(pair), "n": test.n[0], "p": test.p, "holm": p})
    columns = ("", "pairs", "difference", "90 % interval", f"paired TOST p, ± {MARGIN:g}")
    note = (
        "Pairs share the seed of their order, and where both are random that of their start. Not "
        "shown to be equal is not shown to differ."
    )
    return Table(title, (*columns, "Holm", "so"), tuple(rows), (note,), tuple(values))


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


def tabulate_selection(results: Results) -> Table:
    """Return how often the last evaluation was selected: such runs might still have improved."""
    rows = []
    for block, arm in results.grid.arms_by_block:
        done = [one for one in results.outcomes_of(arm, block) if one.metrics is not None]
        last = sum(
            one.metrics["selected"]["epoch"] == one.point.config.train.epochs
            for one in done
            if one.metrics is not None
        )
        rows.append((name_arm(block, arm), str(len(done)), str(last)))
    columns = ("", "runs", "selected at the last epoch")
    return Table("Were the runs long enough?", columns, tuple(rows))


STUDY = Study(
    "factorial",
    "Is it the basis, the residual scale or the head that structured starts gain by?",
    make,
    tabulate,
    make_draw({}),
    ("folds",),
)
