"""Two arms compared: scores collected, judged for fairness, matched by seed, put into one row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from seedless.analysis.arms import ArmRuns, collect_runs, number_runs
from seedless.analysis.comparison import Comparison
from seedless.analysis.fairness import (
    check_same_problem,
    judge_convergence,
    judge_factors,
    judge_positives,
    judge_runs,
)
from seedless.core.errors import StatsError
from seedless.stats.compare import compare_samples
from seedless.stats.samples import split_converged

NAMES = ("A", "B")
Arm = str | Path | Iterable[str | Path] | Iterable[float]

# What pairs runs, the closest match first; order.offset makes replicates where there is no seed.
_MATCHES = (
    ("init.seed", "order.seed"),
    ("order.seed",),
    ("init.seed",),
    ("order.offset",),
    ("the field seed",),
    ("the seed in the file name",),
    ("place",),
)


def compare(
    a: Arm,
    b: Arm,
    *,
    metric: str = "macro_auc",
    split: str = "test",
    field: str | None = None,
    margin: float | None = None,
    published_df: bool = False,
    converged_above: float | None = None,
    factor: str | Sequence[str] = (),
    paired: bool = False,
) -> Comparison:
    """Compare two arms: means, SDs, Welch, Cohen's d, power, and pairs where seeds match.

    Args:
        a: numbers; or a glob, path or paths of run folders; or, with ``field``, of JSON files.
        b: the other arm, of the same kind.
        metric: of run folders: macro_auc, or auc:AFIB for one class.
        split: of run folders: test or validation.
        field: of JSON files: the dotted path of the number to read.
        margin: test equivalence within this difference.
        published_df: n1 + n2 - 2 degrees of freedom for that test, in place of Welch's.
        converged_above: set aside, and count, runs that score this or less.
        factor: the setting, or settings, that the arms are meant to differ in.
        paired: numbers only: they are pairs, place by place.
    """
    if published_df and margin is None:
        raise StatsError("published degrees of freedom belong to TOST: give a margin, too")
    one, two = (
        _take_arm(name, arm, metric, split, field, paired)
        for name, arm in zip(NAMES, (a, b), strict=True)
    )
    if (one.runs[0].path is None) != (two.runs[0].path is None):
        raise StatsError("one arm is of numbers and the other of runs: give two of a kind")
    if paired and len(one.runs) != len(two.runs):
        raise StatsError(f"pairs need equal numbers, got {len(one.runs)} and {len(two.runs)}")
    check_same_problem(one, two)
    factors = [factor] if isinstance(factor, str) else list(factor)
    warnings = [
        *judge_factors(one, two, factors),
        *judge_runs(one, two),
        *judge_positives(one, two),
        *judge_convergence(one, two, converged_above),
    ]
    kept = [_drop_failed(arm, converged_above) for arm in (one, two)]
    pairs, matched = pair_runs(*kept)
    if pairs is not None and pairs[0] == pairs[1]:
        warnings.append(f"the two runs of every pair score the same ({matched}): are they one run?")
    row = compare_samples(
        kept[0].scores,
        kept[1].scores,
        names=NAMES,
        pairs=pairs,
        margin=margin,
        degrees="published" if published_df else "welch",
    )
    label = field if field is not None else f"{split} {metric}"
    if one.runs[0].path is None:
        label = "values"
    aside = tuple(
        tuple(run.score for run in arm.runs if run not in left.runs)
        for arm, left in zip((one, two), kept, strict=True)
    )
    return Comparison(label, row, matched, aside, tuple(warnings))


def pair_runs(a: ArmRuns, b: ArmRuns) -> tuple[tuple[list[float], list[float]] | None, str]:
    """Return the scores of the runs that have a partner of the same seed, and how that was told."""
    for names in _MATCHES:
        one, two = (
            {tuple(run.seeds.get(name) for name in names): run.score for run in arm.runs}
            for arm in (a, b)
        )
        complete = all(None not in key for key in (*one, *two))
        unique = len(one) == len(a.runs) and len(two) == len(b.runs)
        shared = [key for key in one if key in two]
        if complete and unique and len(shared) > 1:
            how = f"{len(shared)} pairs by {' and '.join(names)}"
            alone = (len(one) - len(shared), len(two) - len(shared))
            if any(alone):
                how += f"; {alone[0]} of A and {alone[1]} of B have no partner"
            return ([one[key] for key in shared], [two[key] for key in shared]), how
    return None, "no pairs: the runs have no seeds that match"


def _take_arm(
    name: str, arm: Arm, metric: str, split: str, field: str | None, paired: bool
) -> ArmRuns:
    """Read an arm of numbers, or of whatever lies where it points."""
    if not isinstance(arm, Iterable | Path):
        raise StatsError(f"arm {name}: expected numbers or paths, got {arm!r}")
    items = [arm] if isinstance(arm, str | Path) else list(arm)
    places = [item for item in items if isinstance(item, str | Path)]
    if len(places) < len(items) or not items:
        if field is not None:
            raise StatsError(f"arm {name}: a field belongs to JSON files, not to numbers")
        return number_runs(name, items, paired)  # type: ignore[arg-type]
    if paired:
        raise StatsError("paired=True is for plain numbers; runs are matched by their seeds")
    found = collect_runs(name, places, metric, split, field)
    if len(found.runs) < 2:
        raise StatsError(
            f"arm {name}: expected at least two runs, got one, {found.runs[0].path}; a pattern "
            "such as 'A/*', in quotes, names many"
        )
    return found


def _drop_failed(arm: ArmRuns, above: float | None) -> ArmRuns:
    if above is None:
        return arm
    found = split_converged(arm.scores, above)
    if len(found.kept) < 2:
        raise StatsError(f"arm {arm.name}: {found.sentence} Two are needed; lower the bar")
    return replace(arm, runs=tuple(arm.runs[place] for place in found.places))
