"""The range of a score over runs, with an interval, and what it says of other runs."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from seedless.stats.answer import Answer, format_interval, format_number
from seedless.stats.samples import Values, check_share, read_sample

_GRID = np.linspace(-9, 9, 3601)  # where the normal density is integrated
_DENSITY = np.exp(-(_GRID**2) / 2) / math.sqrt(2 * math.pi)


@dataclass(frozen=True, kw_only=True)
class Range(Answer):
    """The lowest and highest run.

    Attributes:
        interval: of the mean range of as many runs, if runs are normally distributed.
        next_inside: the probability that one more run lies between the lowest and the highest.
        share_inside: at least this share of all runs lies there, with confidence ``level``.
    """

    low: float
    high: float
    range: float
    interval: tuple[float, float]
    next_inside: float
    share_inside: float
    level: float


def find_range(values: Values, level: float = 0.95) -> Range:
    """Return the range over runs, its interval, and the share of all runs that it holds.

    The range of n normal runs divided by their true SD has a known distribution (Tippett 1925); its
    quantiles give the interval. ``next_inside`` = (n - 1) / (n + 1) and ``share_inside``, the p
    that solves n p^(n-1) - (n - 1) p^n = 1 - level, hold for any distribution (Wilks 1941).

    >>> find_range([0.90, 0.93, 0.91, 0.94]).next_inside
    0.6
    """
    from scipy.optimize import brentq

    tail = (1 - check_share(level, "level")) / 2
    array = read_sample(values)
    n = len(array)
    low, high = float(array.min()), float(array.max())
    factors = _find_factors(n, tail)
    interval = ((high - low) * factors[0], (high - low) * factors[1])
    share = brentq(lambda p: n * p ** (n - 1) - (n - 1) * p**n - (1 - level), 0, 1, xtol=1e-15)
    return Range(
        low=low,
        high=high,
        range=high - low,
        interval=interval,
        next_inside=(n - 1) / (n + 1),
        share_inside=float(share),
        level=level,
        n=(n,),
        assumption="independent runs of one distribution, normal for the interval (and for that "
        "alone); more runs have a wider range",
        sentence=f"{n} runs lie from {format_number(low)} to {format_number(high)}, a range of "
        f"{format_number(high - low)}, {level:.0%} interval {format_interval(interval)}; at least "
        f"{share:.0%} of all runs lie there, with {level:.0%} confidence.",
    )


@lru_cache(maxsize=64)
def _find_factors(n: int, tail: float) -> tuple[float, float]:
    """Return the mean range of n standard normals over its upper and lower ``tail`` quantiles."""
    from scipy.optimize import brentq

    below = ndtr(_GRID)
    mean = float(np.trapezoid(1 - below**n - (1 - below) ** n, _GRID))
    upper, lower = (
        float(brentq(lambda w, share=share: _range_below(w, n) - share, 0, 18, xtol=1e-15))
        for share in (1 - tail, tail)
    )
    return mean / upper, mean / lower


def _range_below(width: float, n: int) -> float:
    """Return P(range of n standard normals <= width) = n int phi(x) (Phi(x+w) - Phi(x))^(n-1)."""
    inside = ndtr(_GRID + width) - ndtr(_GRID)
    return float(np.trapezoid(n * _DENSITY * inside ** (n - 1), _GRID))
