"""Components of variance: how much of it is due to initialization, order, device operations, fold.

`decompose_crossed` takes a balanced design in which all sources were varied together, by the method
of moments: mean squares are equated to their expected values (Searle, Casella and McCulloch 1992).
`separate_sources` takes runs in which one source was varied at a time. A component may come out
negative, which says that its variance is too small to be seen; it is reported as it is, and counts
as 0 in the shares.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, format_number
from seedless.stats.samples import Values, find_moments, read_sample

REPEATS = "repeats"
Labels = Sequence[object]


@dataclass(frozen=True)
class Component:
    """One source of variance. ``variance`` may be negative; ``sd`` is None where it is."""

    source: str
    df: int
    sum_of_squares: float
    mean_square: float
    variance: float
    sd: float | None
    share: float | None


@dataclass(frozen=True, kw_only=True)
class Decomposition(Answer):
    """All components of a design; the last is what the named sources do not explain.

    ``negative`` names the components below 0. ``share`` is of the sum of all that are not negative,
    and None where nothing varies.
    """

    components: tuple[Component, ...]
    negative: tuple[str, ...]

    def __getitem__(self, source: str) -> Component:
        for component in self.components:
            if component.source == source:
                return component
        known = ", ".join(component.source for component in self.components)
        raise StatsError(f"there is no component {source!r}; known: {known}")


def decompose_crossed(values: Values, labels: Mapping[str, Labels]) -> Decomposition:
    """Decompose the variance of scores whose sources were crossed, each level with each other.

    Args:
        values: one score a run.
        labels: for each source, such as "initialization" and "order", the level of every run. Runs
            equal in all labels are repeats: they differ by what no label names (on a GPU, the order
            of its operations).

    With r repeats in each cell, the expected mean square of an interaction S is the variance of the
    repeats plus, for each interaction T that contains S, T's variance times the number of runs in
    one level of T. Without repeats the highest interaction takes their place.

    >>> labels = {"init": [0, 0, 1, 1], "order": [0, 1, 0, 1]}
    >>> decompose_crossed([0.90, 0.91, 0.94, 0.95], labels)["init"].share > 0.9
    True
    """
    # [Step 1] Check that the design is balanced.
    scores, codes, levels = _read_design(values, labels)
    cells = Counter(zip(*codes.values(), strict=True))
    expected = math.prod(levels.values())
    if len(cells) != expected or len(set(cells.values())) != 1:
        raise StatsError(
            f"a crossed design needs all {expected} combinations of {_format_design(levels)}, each "
            f"with as many runs; got {len(cells)} with {sorted(set(cells.values()))} runs"
        )
    repeats = len(scores) // expected
    names = list(labels)
    if repeats == len(names) == 1:
        raise StatsError(
            "a level of its own for every run leaves nothing to compare it with: give repeats"
        )
    # [Step 2] The sum of squares of every interaction, by inclusion and exclusion.
    subsets = [s for size in range(1, len(names) + 1) for s in combinations(names, size)]
    total = {subset: _between(scores, codes, subset) for subset in [(), *subsets]}
    squares = {subset: _squares(total, subset) for subset in subsets}
    dfs = {subset: math.prod(levels[name] - 1 for name in subset) for subset in subsets}
    # [Step 3] The rest: the repeats or, without any, the highest interaction.
    left = _sum_squares(scores) - total[tuple(names)]
    if repeats == 1:
        whole = subsets.pop()
        rest = ("x".join(whole) + " and " + REPEATS, dfs[whole], squares[whole])
    else:
        rest = (REPEATS, len(scores) - expected, left)
    # [Step 4] Solve for the variances, from the highest interaction to the single sources.
    variances: dict[tuple[str, ...], float] = {}
    noise = rest[2] / rest[1]
    for subset in reversed(subsets):
        above = sum(
            variances[other] * _count_runs(levels, other, repeats)
            for other in variances
            if set(subset) < set(other)
        )
        mean = squares[subset] / dfs[subset]
        variances[subset] = (mean - noise - above) / _count_runs(levels, subset, repeats)
    rows = [("x".join(s), dfs[s], squares[s], variances[s]) for s in subsets]
    return _summarize([*rows, (*rest, noise)], scores, f"crossed {_format_design(levels)}")


def _squares(total: Mapping[tuple[str, ...], float], subset: tuple[str, ...]) -> float:
    """Return the sum of squares of one interaction alone, by inclusion and exclusion."""
    parts = (part for size in range(len(subset)) for part in combinations(subset, size))
    return total[subset] - sum(_squares(total, part) for part in parts)


def _read_design(
    values: Values, labels: Mapping[str, Labels]
) -> tuple[NDArray[np.float64], dict[str, list[int]], dict[str, int]]:
    scores = read_sample(values, "values")
    if not labels:
        raise StatsError("name at least one source of variance and its label for every run")
    codes, levels = {}, {}
    for name, level_of_run in labels.items():
        known: dict[object, int] = {}
        codes[name] = [known.setdefault(label, len(known)) for label in level_of_run]
        levels[name] = len(known)
        if len(codes[name]) != len(scores):
            raise StatsError(f"{name}: {len(codes[name])} labels for {len(scores)} values")
        if len(known) < 2:
            raise StatsError(f"{name}: expected at least two levels, got {len(known)}")
    # Sums of squares about the mean: a common shift of all scores costs no digits.
    return scores - math.fsum(scores) / len(scores), codes, levels


def _between(
    scores: NDArray[np.float64], codes: Mapping[str, Sequence[int]], subset: tuple[str, ...]
) -> float:
    """Return the sum over groups of n times the squared group mean."""
    groups: dict[tuple[int, ...], list[float]] = {}
    keys = zip(*(codes[name] for name in subset), strict=True) if subset else [()] * len(scores)
    for key, score in zip(keys, scores, strict=True):
        groups.setdefault(key, []).append(float(score))
    return math.fsum(math.fsum(group) ** 2 / len(group) for group in groups.values())


def _sum_squares(scores: NDArray[np.float64]) -> float:
    return math.fsum(scores**2)


def _count_runs(levels: Mapping[str, int], subset: tuple[str, ...], repeats: int) -> int:
    return repeats * math.prod(count for name, count in levels.items() if name not in subset)


def _format_design(levels: Mapping[str, int]) -> str:
    return " x ".join(f"{count} {name}" for name, count in levels.items())


def _summarize(
    rows: Sequence[tuple[str, int, float, float]], scores: NDArray[np.float64], design: str
) -> Decomposition:
    """Return the result from rows of (source, df, sum of squares, variance)."""
    whole = sum(max(0.0, variance) for *_, variance in rows)
    rounding = 1e-12 * _sum_squares(scores) / len(scores)
    components = tuple(
        Component(
            source=name,
            df=df,
            sum_of_squares=max(0.0, squares),
            mean_square=max(0.0, squares) / df,
            variance=0.0 if abs(variance) <= rounding else variance,
            sd=None if variance < -rounding else math.sqrt(max(0.0, variance)),
            share=max(0.0, variance) / whole if whole > 0 else None,
        )
        for name, df, squares, variance in rows
    )
    negative = tuple(c.source for c in components if c.variance < 0)
    parts = ", ".join(f"{c.source} {c.share:.1%}" for c in components if c.share is not None)
    sentence = f"Of the variance: {parts}." if parts else "Nothing varies."
    if negative:
        below = ", ".join(
            f"{c.source} ({format_number(c.variance)})" for c in components if c.variance < 0
        )
        sentence += f" Negative, and so not seen and counted as 0: {below}."
    return Decomposition(
        components=components,
        negative=negative,
        n=(len(scores),),
        assumption=f"a balanced design ({design}) whose levels stand for all others; additive, "
        "independent effects",
        sentence=sentence,
    )


@dataclass(frozen=True)
class Source:
    """The ``observed`` variance of one group, and its ``own`` without the noise all groups share.

    ``own`` may be negative; ``sd``, its root, is then None.
    """

    name: str
    n: int
    observed: float
    own: float
    sd: float | None


@dataclass(frozen=True, kw_only=True)
class Sources(Answer):
    """One row for each source; ``negative`` names those whose own variance is below 0."""

    rows: tuple[Source, ...]
    noise: str | None
    negative: tuple[str, ...]


def separate_sources(groups: Mapping[str, Values], noise: str | None = None) -> Sources:
    """Compare groups of replicates; in each group one source was varied and the rest were fixed.

    Args:
        groups: for each source, such as "initialization", the scores of the runs that vary it.
        noise: the group of plain repeats, such as "device operations", whose variance is in every
            other group too and is subtracted. None where repeats are identical in every bit.
    """
    if not groups:
        raise StatsError("name at least one group of replicates")
    if noise is not None and noise not in groups:
        raise StatsError(f"there is no group {noise!r} to subtract; known: {', '.join(groups)}")
    moments_of = {name: find_moments(read_sample(values, name)) for name, values in groups.items()}
    floor = moments_of[noise].variance if noise is not None else 0.0
    rows = []
    for name, moments in moments_of.items():
        own = moments.variance - (floor if name != noise else 0.0)
        sd = math.sqrt(own) if own >= 0 else None
        rows.append(Source(name, moments.n, moments.variance, own, sd))
    negative = tuple(row.name for row in rows if row.own < 0)
    parts = ", ".join(
        f"{row.name} {'below 0' if row.sd is None else 'SD ' + format_number(row.sd)}"
        for row in rows
    )
    sentence = f"Varied one at a time: {parts}."
    if negative:
        sentence += f" Not seen above {noise}: {', '.join(negative)}."
    return Sources(
        rows=tuple(rows),
        noise=noise,
        negative=negative,
        n=tuple(row.n for row in rows),
        assumption="sources that add up and do not interact: what one does with the others held "
        "is what it always does",
        sentence=sentence,
    )
