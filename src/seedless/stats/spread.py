"""How far do runs scatter? Standard deviation and range, each with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import chdtri, ndtr

from seedless.stats.answer import Answer, show, show_interval
from seedless.stats.samples import Values, check_share, find_moments, read_sample

_GRID = np.linspace(-9, 9, 3601)
_DENSITY = np.exp(-(_GRID**2) / 2) / math.sqrt(2 * math.pi)


@dataclass(frozen=True, kw_only=True)
class Deviation(Answer):
    """A mean and a sample standard deviation (ddof 1), with the interval of the latter."""

    mean: float
    sd: float
    interval: tuple[float, float]
    level: float


@dataclass(frozen=True, kw_only=True)
class Range(Answer):
    """The lowest and highest run.

    Attributes:
        interval: of the range that as many runs show on average, were runs normal.
        next_inside: the chance that one more run falls between the lowest and the highest.
        share_inside: at least this share of all runs does, with confidence ``level``.
    """

    low: float
    high: float
    range: float
    interval: tuple[float, float]
    next_inside: float
    share_inside: float
    level: float


def find_deviation(values: Values, level: float = 0.95) -> Deviation:
    """Return the SD with its chi-square interval, s sqrt((n - 1) / quantile)."""
    tail = (1 - check_share(level, "level")) / 2
    found = find_moments(read_sample(values))
    ends = [math.sqrt((found.n - 1) / float(chdtri(found.n - 1, p))) for p in (tail, 1 - tail)]
    interval = (found.sd * ends[0], found.sd * ends[1])
    return Deviation(
        mean=found.mean,
        sd=found.sd,
        interval=interval,
        level=level,
        n=(found.n,),
        assumption="independent, normal runs (the interval is sensitive to long tails)",
        sentence=f"Mean {show(found.mean)}, SD {show(found.sd)}, {level:.0%} interval of the SD "
        f"{show_interval(interval)}.",
    )


def find_range(values: Values, level: float = 0.95) -> Range:
    """Return the range over runs, what it says of other runs, and how well it is known.

    The range of n normal runs over their SD has a known distribution (Tippett 1925); its quantiles
    give the interval. The two shares are order statistics (Wilks 1941), true of any distribution:
    (n - 1) / (n + 1), and the p that solves n p^(n-1) - (n - 1) p^n = 1 - level.
    """
    tail = (1 - check_share(level, "level")) / 2
    array = read_sample(values)
    n = len(array)
    low, high = float(array.min()), float(array.max())
    factors = _find_factors(n, tail)
    interval = ((high - low) * factors[0], (high - low) * factors[1])
    share = _rise(lambda p: n * p ** (n - 1) - (n - 1) * p**n - (1 - level), 0, 1)
    return Range(
        low=low,
        high=high,
        range=high - low,
        interval=interval,
        next_inside=(n - 1) / (n + 1),
        share_inside=share,
        level=level,
        n=(n,),
        assumption="independent runs of one distribution, normal for the interval (and for that "
        "alone); more runs have a wider range",
        sentence=f"{n} runs lie from {show(low)} to {show(high)}, a range of {show(high - low)}, "
        f"{level:.0%} interval {show_interval(interval)}; at least {share:.0%} of all runs lie "
        f"there, with {level:.0%} confidence.",
    )


@lru_cache(maxsize=64)
def _find_factors(n: int, tail: float) -> tuple[float, float]:
    """Return the mean range of n standard normals over its upper and lower ``tail`` quantiles."""
    below = ndtr(_GRID)
    mean = float(np.trapezoid(1 - below**n - (1 - below) ** n, _GRID))
    upper, lower = (
        _rise(lambda width, share=share: _range_below(width, n) - share, 0, 18)  # type: ignore[misc]
        for share in (1 - tail, tail)
    )
    return mean / upper, mean / lower


def _range_below(width: float, n: int) -> float:
    """Return P(range of n standard normals <= width) = n int phi(x) (Phi(x+w) - Phi(x))^(n-1)."""
    inside = ndtr(_GRID + width) - ndtr(_GRID)
    return float(np.trapezoid(n * _DENSITY * inside ** (n - 1), _GRID))


def _rise(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising function crosses zero."""
    for _ in range(80):
        middle = (low + high) / 2
        if function(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
