"""Could the labels of the arms be anyone's? Permutation tests: all of them, or counted draws.

No generator is used. Sampled splits come from numerics.counter_random and are applied to the
sorted values, so that a p value depends on neither the order of the runs nor which arm is first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import StatsError
from seedless.numerics.counter_random import draw_uniform
from seedless.stats.answer import Answer, show
from seedless.stats.samples import Values, read_pairs, read_sample

EXACT = 200_000  # up to so many splits, all are looked at
_CHUNK = 1 << 18


@dataclass(frozen=True, kw_only=True)
class Permutation(Answer):
    """The share of relabellings with a difference of means at least as large, either way.

    Attributes:
        exact: whether all ``splits`` relabellings were looked at; if not, so many were drawn, and
            p = (1 + hits) / (1 + splits), which is never 0.
        error: the standard error of a sampled p; 0 for an exact one.
    """

    difference: float
    p: float
    splits: int
    hits: int
    exact: bool
    error: float


def permute_labels(a: Values, b: Values, draws: int = 20_000, most: int = EXACT) -> Permutation:
    """Test a difference of means against all ways to deal the values to arms of these sizes.

    With more than ``most`` of them, ``draws`` are sampled.
    """
    first, second = read_sample(a, "first sample", 1), read_sample(b, "second sample", 1)
    both = np.sort(np.concatenate([first, second]))
    few, total = min(len(first), len(second)), len(both)
    centred = both - math.fsum(both) / total
    observed = abs(math.fsum(first) / len(first) - math.fsum(second) / len(second))
    # A subset of k of n centred values with sum S has a difference of means of S n / (k (n - k)).
    factor = total / (few * (total - few))
    bar = observed - _dust(both)
    count = math.comb(total, few)
    exact = count <= most
    sums = _all_sums(centred, few, count) if exact else _drawn_sums(centred, few, draws)
    hits = sum(int(np.sum(np.abs(part) * factor >= bar)) for part in sums)
    return _answer(
        math.fsum(first) / len(first) - math.fsum(second) / len(second),
        hits,
        count if exact else draws,
        exact,
        (len(first), len(second)),
        "runs that could have been dealt to either arm (exchangeable)",
    )


def flip_signs(a: Values, b: Values, draws: int = 20_000, most: int = EXACT) -> Permutation:
    """Test a mean paired difference against all ways to swap the two values of a pair."""
    first, second = read_pairs(a, b)
    gaps = first - second
    gaps = gaps[np.lexsort((gaps, np.abs(gaps)))]
    n = len(gaps)
    bar = abs(math.fsum(gaps)) - n * _dust(np.concatenate([first, second]))
    exact = 2**n <= most
    sums = _all_signed(gaps) if exact else _drawn_signed(np.abs(gaps), draws)
    hits = sum(int(np.sum(np.abs(part) >= bar)) for part in sums)
    return _answer(
        math.fsum(gaps) / n,
        hits,
        2**n if exact else draws,
        exact,
        (n,),
        "pairs whose members could have been swapped (differences symmetric about 0)",
    )


def _dust(values: NDArray[np.float64]) -> float:
    """Return what rounding may take from a difference that is equal in truth."""
    return 64 * 2.0**-52 * float(np.abs(values).max())


def _all_sums(values: NDArray[np.float64], few: int, count: int) -> Iterator[NDArray[np.float64]]:
    flat = chain.from_iterable(combinations(range(len(values)), few))
    rows = max(1, _CHUNK // few)
    for start in range(0, count, rows):
        size = min(rows, count - start)
        picks = np.fromiter(flat, dtype=np.int64, count=size * few).reshape(size, few)
        yield values[picks].sum(axis=1)


def _drawn_sums(values: NDArray[np.float64], few: int, draws: int) -> Iterator[NDArray[np.float64]]:
    for part in _draw_rows(f"permutation {len(values)}", draws, len(values)):
        picks = np.argpartition(part, few - 1, axis=1)[:, :few]
        yield values[picks].sum(axis=1)


def _all_signed(gaps: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    sums = np.zeros(1)
    for gap in gaps:
        sums = np.concatenate([sums + gap, sums - gap])
    yield sums


def _drawn_signed(sizes: NDArray[np.float64], draws: int) -> Iterator[NDArray[np.float64]]:
    for part in _draw_rows(f"sign flips {len(sizes)}", draws, len(sizes)):
        yield np.where(part < 0.5, sizes, -sizes).sum(axis=1)


def _draw_rows(name: str, draws: int, width: int) -> Iterator[NDArray[np.float64]]:
    if draws < 1:
        raise StatsError(f"draws: expected at least 1, got {draws}")
    rows = max(1, _CHUNK // width)
    for start in range(0, draws, rows):
        size = min(rows, draws - start)
        yield draw_uniform(0, f"{name} from {start}", size * width).reshape(size, width)


def _answer(
    difference: float, hits: int, splits: int, exact: bool, n: tuple[int, ...], assumption: str
) -> Permutation:
    p = hits / splits if exact else (1 + hits) / (1 + splits)
    how = f"all {splits} relabellings" if exact else f"{splits} sampled relabellings"
    return Permutation(
        difference=difference,
        p=p,
        splits=splits,
        hits=hits,
        exact=exact,
        error=0.0 if exact else math.sqrt(p * (1 - p) / splits),
        n=n,
        assumption=assumption,
        sentence=f"Of {how}, {hits} give a difference of at least {show(abs(difference))}: "
        f"p = {show(p)}.",
    )
