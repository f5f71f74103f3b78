"""Where does variance come from? Initialization, order, device operations, fold.

Balanced designs, by the method of moments: mean squares are equated to what they are expected to
be. A component may come out negative, which says that its variance is too small to be seen; it is
reported as found, and counts as nothing in the shares.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, show
from seedless.stats.samples import Values, read_sample

REPEATS = "repeats"
_NOTHING = "a level of its own for every run leaves nothing to compare it with: give repeats"
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
    """All components of a design, the last of them what the named sources leave over.

    ``negative`` names the components that came out below 0. ``share`` is of the sum of the others,
    None where nothing varies at all.
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
    """Decompose values whose sources were crossed: every level of one with every level of all.

    Args:
        values: one score a run.
        labels: for each source, such as "initialization" and "order", the level of every run. Runs
            equal in all labels are repeats, and differ by what no label names (on a GPU, device
            operations).

    With sums of squares SS and a run of r repeats in each cell, the mean square of an interaction S
    is expected to be the repeats' variance plus, for each T that contains S, T's variance times
    the number of runs in one level of T. Without repeats the highest interaction takes their place.
    """
    scores, codes, levels = _read_design(values, labels)
    cells = Counter(zip(*codes.values(), strict=True))
    expected = math.prod(levels.values())
    if len(cells) != expected or len(set(cells.values())) != 1:
        raise StatsError(
            f"a crossed design needs all {expected} combinations of {_shape(levels)}, each with as "
            f"many runs; got {len(cells)} with {sorted(set(cells.values()))} runs"
        )
    repeats = len(scores) // expected
    names = list(labels)
    if repeats == len(names) == 1:
        raise StatsError(_NOTHING)
    subsets = [s for size in range(1, len(names) + 1) for s in combinations(names, size)]
    total = {subset: _between(scores, codes, subset) for subset in [(), *subsets]}
    squares = {subset: _squares(total, subset) for subset in subsets}
    dfs = {subset: math.prod(levels[name] - 1 for name in subset) for subset in subsets}
    left = _sum_squares(scores) - total[tuple(names)]
    if repeats == 1:
        whole = subsets.pop()
        rest = ("x".join(whole) + " and " + REPEATS, dfs[whole], squares[whole])
    else:
        rest = (REPEATS, len(scores) - expected, left)
    found: dict[tuple[str, ...], float] = {}
    noise = rest[2] / rest[1]
    for subset in reversed(subsets):
        above = sum(
            found[other] * _runs(levels, other, repeats)
            for other in found
            if set(subset) < set(other)
        )
        mean = squares[subset] / dfs[subset]
        found[subset] = (mean - noise - above) / _runs(levels, subset, repeats)
    rows = [("x".join(s), dfs[s], squares[s], found[s]) for s in subsets]
    return _answer([*rows, (*rest, noise)], scores, f"crossed {_shape(levels)}")


def decompose_nested(values: Values, labels: Mapping[str, Labels]) -> Decomposition:
    """Decompose values whose sources are nested, the outermost first.

    A level of an inner source belongs to one level of the outer ones, whatever its label: seed 1 of
    fold 1 has nothing to do with seed 1 of fold 2. Runs equal in all labels are repeats; without
    any, the innermost source takes their place.
    """
    scores, codes, _ = _read_design(values, labels)
    names = list(labels)
    groups = []  # how many there are at each depth
    for depth, name in enumerate(names):
        sizes = Counter(zip(*(codes[other] for other in names[: depth + 1]), strict=True))
        inner = Counter(key[:-1] for key in sizes)
        groups.append(len(sizes))
        if len(set(sizes.values())) > 1 or len(set(inner.values())) > 1:
            raise StatsError(
                f"a nested design needs as many levels of {name!r} in each group and as many runs "
                f"in each; got {sorted(set(inner.values()))} levels, {sorted(set(sizes.values()))}"
                " runs"
            )
    totals = [_between(scores, codes, tuple(names[:i])) for i in range(len(names) + 1)]
    counts = [1, *groups]
    rows = [
        (name, counts[i + 1] - counts[i], totals[i + 1] - totals[i]) for i, name in enumerate(names)
    ]
    if groups[-1] < len(scores):
        rows.append((REPEATS, len(scores) - groups[-1], _sum_squares(scores) - totals[-1]))
    elif len(names) == 1:
        raise StatsError(_NOTHING)
    if any(df == 0 for _, df, _ in rows):
        raise StatsError("every source needs at least two levels in each level above it")
    means = [squares / df for _, df, squares in rows]
    variances = [
        (means[i] - means[i + 1]) / (len(scores) / groups[i]) for i in range(len(rows) - 1)
    ]
    parts = zip(rows, [*variances, means[-1]], strict=True)
    return _answer([(*row, variance) for row, variance in parts], scores, "nested")


def _squares(total: Mapping[tuple[str, ...], float], subset: tuple[str, ...]) -> float:
    """Return the sum of squares of one interaction alone, by inclusion and exclusion."""
    return total[subset] - sum(_squares(total, part) for part in _proper(subset))


def _read_design(
    values: Values, labels: Mapping[str, Labels]
) -> tuple[NDArray[np.float64], dict[str, list[int]], dict[str, int]]:
    scores = read_sample(values, "values")
    if not labels:
        raise StatsError("name at least one source of variance and its label for every run")
    codes, levels = {}, {}
    for name, given in labels.items():
        known: dict[object, int] = {}
        codes[name] = [known.setdefault(label, len(known)) for label in given]
        levels[name] = len(known)
        if len(codes[name]) != len(scores):
            raise StatsError(f"{name}: {len(codes[name])} labels for {len(scores)} values")
        if len(known) < 2:
            raise StatsError(f"{name}: expected at least two levels, got {len(known)}")
    # Sums of squares about the mean: a shift costs no digits.
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


def _proper(subset: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [part for size in range(len(subset)) for part in combinations(subset, size)]


def _runs(levels: Mapping[str, int], subset: tuple[str, ...], repeats: int) -> int:
    return repeats * math.prod(count for name, count in levels.items() if name not in subset)


def _shape(levels: Mapping[str, int]) -> str:
    return " x ".join(f"{count} {name}" for name, count in levels.items())


def _answer(
    rows: Sequence[tuple[str, int, float, float]], scores: NDArray[np.float64], design: str
) -> Decomposition:
    whole = sum(max(0.0, variance) for *_, variance in rows)
    dust = 1e-12 * _sum_squares(scores) / len(scores)
    components = tuple(
        Component(
            source=name,
            df=df,
            sum_of_squares=max(0.0, squares),
            mean_square=max(0.0, squares) / df,
            variance=0.0 if abs(variance) <= dust else variance,
            sd=None if variance < -dust else math.sqrt(max(0.0, variance)),
            share=max(0.0, variance) / whole if whole > 0 else None,
        )
        for name, df, squares, variance in rows
    )
    negative = tuple(c.source for c in components if c.variance < 0)
    parts = ", ".join(f"{c.source} {c.share:.1%}" for c in components if c.share is not None)
    sentence = f"Of the variance: {parts}." if parts else "Nothing varies."
    if negative:
        below = ", ".join(f"{name} ({show(_pick(components, name))})" for name in negative)
        sentence += f" Negative, and so not seen and counted as 0: {below}."
    return Decomposition(
        components=components,
        negative=negative,
        n=(len(scores),),
        assumption=f"a balanced design ({design}) whose levels stand for all others; additive, "
        "independent effects",
        sentence=sentence,
    )


def _pick(components: Sequence[Component], name: str) -> float:
    return next(c.variance for c in components if c.source == name)
