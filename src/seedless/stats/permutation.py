"""The sign-flip test of paired values: all sign patterns, or sampled ones.

If the two members of a pair are interchangeable, each paired difference is as likely to be positive
as negative. The p value is the share of sign patterns whose sum is at least as large, in absolute
value, as the observed one (Fisher 1935).

No random generator is used: sampled signs come from `numerics.counter_random` and are applied to
sorted values, so that p depends on neither the order of the pairs nor which sample comes first.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import StatsError
from seedless.numerics.counter_random import draw_uniform
from seedless.stats.answer import Answer, format_number
from seedless.stats.samples import Values, read_pairs

MAX_EXACT_PATTERNS = 200_000  # up to so many sign patterns, all of them are computed
_CHUNK = 1 << 18  # numbers in memory at a time


@dataclass(frozen=True, kw_only=True)
class Permutation(Answer):
    """The share of sign patterns with a mean difference at least as large, in either direction.

    Attributes:
        difference: the observed mean of the paired differences.
        exact: whether all ``splits`` patterns were computed. If not, ``splits`` were sampled, and
            p = (1 + hits) / (1 + splits), which is never 0.
        error: the standard error of a sampled p; 0 for an exact one.
    """

    difference: float
    p: float
    splits: int
    hits: int
    exact: bool
    error: float


def flip_signs(
    a: Values, b: Values, draws: int = 20_000, most: int = MAX_EXACT_PATTERNS
) -> Permutation:
    """Return the sign-flip test of the mean difference of paired values.

    With more than ``most`` sign patterns, ``draws`` of them are sampled.

    >>> flip_signs([0.91, 0.92, 0.95, 0.93], [0.90, 0.90, 0.92, 0.89]).p
    0.125
    """
    # [Step 1] Sort the differences, so that the order of the pairs cannot change the result.
    first, second = read_pairs(a, b)
    differences = first - second
    differences = differences[np.lexsort((differences, np.abs(differences)))]
    n = len(differences)
    # [Step 2] Lower the observed sum by the largest possible rounding error, so that patterns whose
    # sum equals the observed one are counted.
    rounding = 64 * 2.0**-52 * float(max(np.abs(first).max(), np.abs(second).max()))
    bound = abs(math.fsum(differences)) - n * rounding
    # [Step 3] Count the patterns that reach the bound.
    exact = 2**n <= most
    sums = _sum_all_patterns(differences) if exact else _sum_samples(np.abs(differences), draws)
    hits = sum(int(np.sum(np.abs(part) >= bound)) for part in sums)
    splits = 2**n if exact else draws
    p = hits / splits if exact else (1 + hits) / (1 + splits)
    difference = math.fsum(differences) / n
    patterns = f"all {splits} relabellings" if exact else f"{splits} sampled relabellings"
    return Permutation(
        difference=difference,
        p=p,
        splits=splits,
        hits=hits,
        exact=exact,
        error=0.0 if exact else math.sqrt(p * (1 - p) / splits),
        n=(n,),
        assumption="pairs whose members could have been swapped (differences symmetric about 0)",
        sentence=f"Of {patterns}, {hits} give a difference of at least "
        f"{format_number(abs(difference))}: p = {format_number(p)}.",
    )


def _sum_all_patterns(differences: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Yield the sums under all 2^n sign patterns."""
    sums = np.zeros(1)
    for difference in differences:
        sums = np.concatenate([sums + difference, sums - difference])
    yield sums


def _sum_samples(sizes: NDArray[np.float64], draws: int) -> Iterator[NDArray[np.float64]]:
    """Yield the sums under ``draws`` sampled sign patterns, some at a time."""
    if draws < 1:
        raise StatsError(f"draws: expected at least 1, got {draws}")
    n = len(sizes)
    rows = max(1, _CHUNK // n)
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        uniform = draw_uniform(0, f"sign flips {n} from {start}", count * n).reshape(count, n)
        yield np.where(uniform < 0.5, sizes, -sizes).sum(axis=1)
