"""How large is a difference? Cohen's d with four intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import nctdtr, ndtri, stdtrit

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, show, show_interval
from seedless.stats.samples import Values, check_share, find_moments, read_sample

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Effect(Answer):
    """Cohen's d, Hedges' g, and intervals: Wald's (normal and t), noncentral t, and Wald's of g.

    ``pooled`` is the difference over the pooled SD instead, which weighs arms by their length and
    equals d where they are equally long; there the noncentral interval is exact, too.
    ``noncentral_t`` is None where d is beyond what the distribution can be inverted for.
    """

    d: float
    pooled: float
    g: float
    wald: Interval
    wald_t: Interval
    noncentral_t: Interval | None
    hedges: Interval
    level: float


def cohens_d(a: Values, b: Values, level: float = 0.95) -> Effect:
    """Return d = (m1 - m2) / sqrt((s1^2 + s2^2) / 2), with ddof 1.

    Wald's standard error is sqrt((n1 + n2) / (n1 n2) + d^2 / (2 (n1 + n2))); g is d times
    1 - 3 / (4 (n1 + n2 - 2) - 1).
    """
    one = find_moments(read_sample(a, "first sample"))
    two = find_moments(read_sample(b, "second sample"))
    if one.variance + two.variance == 0:
        raise StatsError("neither sample varies: a difference in standard deviations is undefined")
    tail = (1 - check_share(level, "level")) / 2
    n, m = one.n, two.n
    df = n + m - 2
    d = (one.mean - two.mean) / math.sqrt((one.variance + two.variance) / 2)
    pooled = ((n - 1) * one.variance + (m - 1) * two.variance) / df
    g = d * (1 - 3 / (4 * df - 1))
    normal, student = float(-ndtri(tail)), float(-stdtrit(df, tail))
    wald = _spread(d, normal, n, m)
    return Effect(
        d=d,
        pooled=(one.mean - two.mean) / math.sqrt(pooled),
        g=g,
        wald=wald,
        wald_t=_spread(d, student, n, m),
        noncentral_t=_invert_noncentral(d, n, m, tail),
        hedges=_spread(g, normal, n, m),
        level=level,
        n=(n, m),
        assumption="near-normal runs of about equal variance (for the intervals, not for d)",
        sentence=f"Cohen's d = {show(d)}, {level:.0%} interval {show_interval(wald)} (Wald).",
    )


def _spread(centre: float, quantile: float, n: int, m: int) -> Interval:
    reach = quantile * math.sqrt((n + m) / (n * m) + centre * centre / (2 * (n + m)))
    return centre - reach, centre + reach


def _invert_noncentral(d: float, n: int, m: int, tail: float) -> Interval | None:
    """Return the d for which the t found is the upper, then the lower, ``tail`` quantile."""
    root = math.sqrt(n * m / (n + m))
    t, df = d * root, n + m - 2
    ends = [
        _fall(lambda nc, share=share: float(nctdtr(df, nc, t)) - share, t)  # type: ignore[misc]
        for share in (1 - tail, tail)
    ]
    low, high = ends
    return None if low is None or high is None else (low / root, high / root)


def _fall(function: Callable[[float], float], start: float) -> float | None:
    """Return where a falling function crosses zero, or None where it is not seen to."""
    step = 1.0 + abs(start) / 8
    for _ in range(40):
        low, high = start - step, start + step
        if function(low) > 0 > function(high):
            break
        step *= 2
    else:
        return None
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if function(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
