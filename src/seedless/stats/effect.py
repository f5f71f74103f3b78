"""Cohen's d, the difference of two means in standard deviations, with four intervals."""

import math
from dataclasses import dataclass

from scipy.special import nctdtr, ndtri, stdtrit

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, format_interval, format_number
from seedless.stats.samples import Values, check_share, find_moments, read_two

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Effect(Answer):
    """Cohen's d and Hedges' g with their intervals.

    Attributes:
        d: the difference over the root of the mean of both variances.
        pooled: the difference over the pooled SD, which weights the arms by their size; equal to d
            where both have as many runs.
        g: d corrected for its bias in small samples.
        wald: d -+ z SE.
        wald_t: d -+ t SE, with n1 + n2 - 2 degrees of freedom.
        noncentral_t: from the noncentral t distribution, exact for arms of equal size; None where d
            is too large for the distribution to be inverted.
        hedges: g -+ z SE.
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

    Wald's standard error is sqrt((n1 + n2) / (n1 n2) + d^2 / (2 (n1 + n2))), and Hedges' g is
    d (1 - 3 / (4 (n1 + n2 - 2) - 1)) (Hedges and Olkin 1985).

    >>> round(cohens_d([0.95, 0.96, 0.97], [0.94, 0.95, 0.93]).d, 3)
    2.0
    """
    one, two = (find_moments(sample) for sample in read_two(a, b))
    if one.variance + two.variance == 0:
        raise StatsError("neither sample varies: a difference in standard deviations is undefined")
    tail = (1 - check_share(level, "level")) / 2
    n, m = one.n, two.n
    df = n + m - 2
    d = (one.mean - two.mean) / math.sqrt((one.variance + two.variance) / 2)
    pooled = ((n - 1) * one.variance + (m - 1) * two.variance) / df
    g = d * (1 - 3 / (4 * df - 1))
    normal, student = float(-ndtri(tail)), float(-stdtrit(df, tail))
    wald = _wald_interval(d, normal, n, m)
    return Effect(
        d=d,
        pooled=(one.mean - two.mean) / math.sqrt(pooled),
        g=g,
        wald=wald,
        wald_t=_wald_interval(d, student, n, m),
        noncentral_t=_invert_noncentral(d, n, m, tail),
        hedges=_wald_interval(g, normal, n, m),
        level=level,
        n=(n, m),
        assumption="near-normal runs of about equal variance (for the intervals, not for d)",
        sentence=f"Cohen's d = {format_number(d)}, {level:.0%} interval {format_interval(wald)} "
        "(Wald).",
    )


def _wald_interval(centre: float, quantile: float, n: int, m: int) -> Interval:
    reach = quantile * math.sqrt((n + m) / (n * m) + centre * centre / (2 * (n + m)))
    return centre - reach, centre + reach


def _invert_noncentral(d: float, n: int, m: int, tail: float) -> Interval | None:
    """Return the interval of d by inverting the noncentral t distribution, or None.

    The lower end is the d for which the observed t is the upper ``tail`` quantile, the upper end
    the d for which it is the lower one (Steiger and Fouladi 1997).
    """
    root = math.sqrt(n * m / (n + m))
    t, df = d * root, n + m - 2
    low, high = (_solve_noncentrality(df, t, share) for share in (1 - tail, tail))
    return None if low is None or high is None else (low / root, high / root)


def _solve_noncentrality(df: int, t: float, share: float) -> float | None:
    """Return the noncentrality at which P(T <= t) = ``share``; None where none is found."""
    from scipy.optimize import brentq

    def excess(noncentrality: float) -> float:
        """Return P(T <= t) - share, which falls with the noncentrality."""
        below = float(nctdtr(df, noncentrality, t))
        if math.isnan(below):  # scipy's answer where t is so far away that this is 0 or 1
            below = float(noncentrality < t)
        return below - share

    # [Step 1] Widen the bracket about t until the function changes its sign within.
    step = 1.0 + abs(t) / 8
    for _ in range(40):
        if excess(t - step) > 0 > excess(t + step):
            break
        step *= 2
    else:
        return None
    # [Step 2] Find the root in it.
    return float(brentq(excess, t - step, t + step, xtol=1e-15))
