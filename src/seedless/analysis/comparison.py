"""Comparison of two arms of runs: scores read, checked for fairness, paired by seed, tested."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from seedless.analysis.arms import ArmRuns, collect_runs, number_runs
from seedless.analysis.fairness import (
    check_convergence,
    check_positives,
    check_runs,
    check_same_problem,
    check_settings,
)
from seedless.core.display import escape_text
from seedless.core.errors import StatsError
from seedless.core.files import AnyPath
from seedless.stats.compare import Row, compare_samples
from seedless.stats.samples import split_converged
from seedless.stats.t_tests import Difference

NAMES = ("A", "B")
Arm = AnyPath | Iterable[AnyPath] | Iterable[float]

# What runs are paired by, the closest match first.
_MATCHES = (
    ("init.seed", "order.seed"),
    ("order.seed",),
    ("init.seed",),
    ("order.offset",),
    ("the field seed",),
    ("the seed in the file name",),
    ("place",),
)


@dataclass(frozen=True, repr=False)
class Comparison:
    """The statistics of two arms, with warnings where the comparison is not fair.

    Printed, it is what `seedless compare` prints.

    Attributes:
        metric: what was compared.
        row: the statistics; see `seedless.stats.compare.Row`.
        matched: how runs were paired, or why they were not.
        set_aside: for each arm, the scores left out by ``converged_above``.
        warnings: what makes the comparison less fair.
    """

    metric: str
    row: Row
    matched: str
    set_aside: tuple[tuple[float, ...], ...]
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        lines = [*_write_arms(self), *_write_tests(self), self.row.sentence]
        lines += [f"undefined: {reason}" for reason in self.row.undefined]
        lines += [f"WARNING: {warning}" for warning in self.warnings]
        return "\n".join(map(escape_text, lines))

    def as_values(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return asdict(self)


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
    """Compare two arms: means, SDs, Welch's t test, Cohen's d, power, and pairs of equal seed.

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
        paired: for numbers only: the i-th of both arms are a pair.

    >>> print(seedless.compare([0.95, 0.96, 0.97], [0.94, 0.95, 0.93]).row.sentence)
    A 0.96 (n = 3), B 0.94 (n = 3): the means are not shown to differ, p = 0.07048, d = 2.
    """
    if published_df and margin is None:
        raise StatsError("published degrees of freedom belong to TOST: give a margin, too")
    one, two = (
        _read_arm(name, arm, metric, split, field, paired)
        for name, arm in zip(NAMES, (a, b), strict=True)
    )
    if (one.runs[0].path is None) != (two.runs[0].path is None):
        raise StatsError("one arm has numbers and the other runs: give two of the same kind")
    if paired and len(one.runs) != len(two.runs):
        raise StatsError(f"pairs need equal numbers, got {len(one.runs)} and {len(two.runs)}")
    check_same_problem(one, two)
    factors = [factor] if isinstance(factor, str) else list(factor)
    warnings = [
        *check_settings(one, two, factors),
        *check_runs(one, two),
        *check_positives(one, two),
        *check_convergence(one, two, converged_above),
    ]
    counted = [_drop_failed(arm, converged_above) for arm in (one, two)]
    pairs, matched = pair_runs(*counted)
    if pairs is not None and pairs[0] == pairs[1]:
        warnings.append(f"the two runs of every pair score the same ({matched}): are they one run?")
    row = compare_samples(
        counted[0].scores,
        counted[1].scores,
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
        for arm, left in zip((one, two), counted, strict=True)
    )
    return Comparison(label, row, matched, aside, tuple(warnings))


def pair_runs(a: ArmRuns, b: ArmRuns) -> tuple[tuple[list[float], list[float]] | None, str]:
    """Return the scores of runs paired by their seeds, and a sentence on how they were paired."""
    repeated: list[str] = []
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
        # Runs that need no seed may all have offset 0: that is no seed given twice.
        if complete and not unique and names != ("order.offset",):
            repeated += [
                f"{text} is in {name} {count} times"
                for name, arm in zip(NAMES, (a, b), strict=True)
                for text, count in _count_seeds(arm, names).items()
                if count > 1
            ]
    if repeated:
        return None, f"no pairs: {repeated[0]}, so its partner cannot be told"
    return None, "no pairs: the runs have no seeds that match"


def _count_seeds(arm: ArmRuns, names: Sequence[str]) -> Counter[str]:
    """Return how many runs of an arm have the same seeds, with the seeds in words."""
    return Counter(" and ".join(f"{name} {run.seeds[name]}" for name in names) for run in arm.runs)


def _read_arm(
    name: str, arm: Arm, metric: str, split: str, field: str | None, paired: bool
) -> ArmRuns:
    """Read an arm of numbers, of run folders or of JSON files."""
    if not isinstance(arm, Iterable | os.PathLike):
        raise StatsError(f"arm {name}: expected numbers or paths, got {arm!r}")
    items = [arm] if isinstance(arm, str | os.PathLike) else list(arm)
    places = [os.fspath(item) for item in items if isinstance(item, str | os.PathLike)]
    if len(places) < len(items) or not items:
        if field is not None:
            raise StatsError(f"arm {name}: a field belongs to JSON files, not to numbers")
        # mypy sees paths among the items; `number_runs` refuses whatever is not a number.
        return number_runs(name, items, paired)  # type: ignore[arg-type]
    if paired:
        raise StatsError("paired=True is for plain numbers; runs are matched by their seeds")
    arm_runs = collect_runs(name, places, metric, split, field)
    if len(arm_runs.runs) < 2:
        raise StatsError(
            f"arm {name}: expected at least two runs, got one, {arm_runs.runs[0].path}; a pattern "
            "such as 'A/*', in quotes, names many"
        )
    return arm_runs


def _drop_failed(arm: ArmRuns, above: float | None) -> ArmRuns:
    if above is None:
        return arm
    split = split_converged(arm.scores, above)
    if len(split.kept) < 2:
        raise StatsError(
            f"arm {arm.name}: {split.sentence} Two are needed: lower --converged-above"
        )
    return replace(arm, runs=tuple(arm.runs[place] for place in split.places))


def _write_arms(comparison: Comparison) -> list[str]:
    heads = ("n", "mean", "SD", "lowest", "highest", "range", "set aside")
    lines = [_line(comparison.metric, *heads)]
    for arm, aside in zip((comparison.row.a, comparison.row.b), comparison.set_aside, strict=True):
        numbers = (arm.mean, arm.sd, arm.low, arm.high, arm.range)
        lines.append(_line(arm.name, str(arm.n), *map(_show, numbers), str(len(aside))))
    return [*lines, ""]


def _line(name: str, n: str, *cells: str) -> str:
    return f"{name:<16} {n:>4} " + " ".join(f"{cell:>11}" for cell in cells)


def _write_tests(comparison: Comparison) -> list[str]:
    row = comparison.row
    lines = []
    if row.welch is not None:
        gap = f"{_show(row.welch.difference)}, 95 % {_interval(row.welch.interval)}"
        lines.append(_entry("A - B", gap))
        lines.append(_entry("Welch", _write_t(row.welch)))
    if row.effect is not None:
        wald, exact = row.effect.wald, row.effect.noncentral_t
        text = f"{_show(row.effect.d)}, 95 % {_interval(wald)} (Wald)"
        if exact is not None:
            text += f", {_interval(exact)} (noncentral t)"
        lines.append(_entry("Cohen's d", text))
    if row.paired is not None:
        lines.append(_entry("paired t", f"{_write_t(row.paired)}; {comparison.matched}"))
    else:
        lines.append(_entry("paired t", f"none; {comparison.matched}"))
    for name, test in (("TOST", row.equivalence), ("paired TOST", row.paired_equivalence)):
        if test is not None:
            margin = f"for a margin of {_show(test.margin)}, df = {_show(test.df)}"
            text = f"p = {_show(test.p)} {margin}; 90 % {_interval(test.interval)}"
            lines.append(_entry(name, text))
    if row.power is not None and row.runs_needed is not None:
        needed = row.runs_needed.per_arm
        text = "no number of runs reaches" if needed is None else f"{needed} runs per arm for"
        lines.append(
            _entry("power", f"{_show(row.power.power)} if d is the true effect; {text} 0.8")
        )
    return [*lines, ""]


def _entry(name: str, text: str) -> str:
    return f"{name:<12} {text}"


def _write_t(test: Difference) -> str:
    return f"t = {_show(test.t)}, df = {_show(test.df)}, p = {_show(test.p)}"


def _interval(ends: tuple[float, float]) -> str:
    return f"[{_show(ends[0])}, {_show(ends[1])}]"


def _show(value: float) -> str:
    return f"{value:.6g}"
