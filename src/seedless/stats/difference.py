"""Do two means differ? Welch's t test, and the paired one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, show, show_interval
from seedless.stats.samples import Moments, Values, check_share, find_moments, read_pairs
from seedless.stats.samples import read_sample as read


@dataclass(frozen=True, kw_only=True)
class Difference(Answer):
    """A difference of means, first less second, and its t test (two-sided)."""

    test: str
    difference: float
    standard_error: float
    t: float
    df: float
    p: float
    interval: tuple[float, float]
    level: float


def welch(a: Values, b: Values, level: float = 0.95) -> Difference:
    """Return Welch's t test of two independent samples.

    t = (m1 - m2) / sqrt(v1 + v2) with v = s^2 / n, and the degrees of freedom of Welch and
    Satterthwaite, (v1 + v2)^2 / (v1^2 / (n1 - 1) + v2^2 / (n2 - 1)).
    """
    one, two = find_moments(read(a, "first sample")), find_moments(read(b, "second sample"))
    error, df = find_welch_error(one, two)
    return _test(
        "Welch's t test",
        one.mean - two.mean,
        error,
        df,
        level,
        n=(one.n, two.n),
        assumption="independent runs, means of runs near normal; the variances may differ",
    )


def paired(a: Values, b: Values, level: float = 0.95) -> Difference:
    """Return the paired t test: the mean of the differences over its standard error."""
    first, second = read_pairs(a, b)
    scale = float(max(np.abs(first).max(), np.abs(second).max()))
    gaps = find_moments(first - second, scale)
    if gaps.variance == 0:
        raise StatsError(
            f"all {gaps.n} paired differences are {show(gaps.mean)}: without spread there is no t"
        )
    return _test(
        "the paired t test",
        gaps.mean,
        math.sqrt(gaps.variance / gaps.n),
        gaps.n - 1.0,
        level,
        n=(gaps.n,),
        assumption="independent pairs, the mean of their differences near normal",
    )


def find_welch_error(one: Moments, two: Moments) -> tuple[float, float]:
    """Return the unpooled standard error of a difference and Welch's degrees of freedom."""
    v1, v2 = one.variance / one.n, two.variance / two.n
    if v1 + v2 == 0:
        raise StatsError(
            f"neither sample varies ({one.n} values of {show(one.mean)}, {two.n} of "
            f"{show(two.mean)}): without spread there is no t. Repeats of a deterministic run are "
            "one observation"
        )
    share = v1 / (v1 + v2)
    df = 1 / (share**2 / (one.n - 1) + (1 - share) ** 2 / (two.n - 1))
    return math.sqrt(v1 + v2), df


def _test(
    test: str,
    difference: float,
    error: float,
    df: float,
    level: float,
    n: tuple[int, ...],
    assumption: str,
) -> Difference:
    t = difference / error
    p = min(1.0, 2 * float(stdtr(df, -abs(t))))
    reach = float(stdtrit(df, (1 + check_share(level, "level")) / 2)) * error
    interval = (difference - reach, difference + reach)
    sentence = (
        f"The means differ by {show(difference)}, {level:.0%} interval {show_interval(interval)}; "
        f"by {test} t = {show(t)}, df = {show(df)}, p = {show(p)}."
    )
    return Difference(
        test=test,
        difference=difference,
        standard_error=error,
        t=t,
        df=df,
        p=p,
        interval=interval,
        level=level,
        n=n,
        assumption=assumption,
        sentence=sentence,
    )
