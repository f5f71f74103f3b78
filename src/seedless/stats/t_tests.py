"""Tests of a difference of two means: Welch's t test and the paired t test."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, format_interval, format_number
from seedless.stats.samples import (
    Moments,
    Values,
    check_share,
    find_moments,
    read_pairs,
    read_two,
)


@dataclass(frozen=True, kw_only=True)
class Difference(Answer):
    """The difference of two means, first minus second, and its two-sided t test."""

    test: str
    difference: float
    standard_error: float
    t: float
    df: float
    p: float
    interval: tuple[float, float]
    level: float


def welch_t_test(a: Values, b: Values, level: float = 0.95) -> Difference:
    """Return Welch's t test of two independent samples.

    t = (m1 - m2) / sqrt(v1 + v2) with v = s^2 / n, and the degrees of freedom
    (v1 + v2)^2 / (v1^2 / (n1 - 1) + v2^2 / (n2 - 1)) (Satterthwaite 1946, Welch 1947).

    >>> round(welch_t_test([0.95, 0.96, 0.97], [0.94, 0.95, 0.93]).p, 4)
    0.0705
    """
    one, two = (find_moments(sample) for sample in read_two(a, b))
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


def paired_t_test(a: Values, b: Values, level: float = 0.95) -> Difference:
    """Return the paired t test: the mean of the differences divided by its standard error."""
    first, second = read_pairs(a, b)
    scale = float(max(np.abs(first).max(), np.abs(second).max()))
    differences = find_moments(first - second, scale)
    if differences.variance == 0:
        raise StatsError(
            f"all {differences.n} paired differences are {format_number(differences.mean)}: "
            "without spread there is no t"
        )
    return _test(
        "the paired t test",
        differences.mean,
        math.sqrt(differences.variance / differences.n),
        differences.n - 1.0,
        level,
        n=(differences.n,),
        assumption="independent pairs, the mean of their differences near normal",
    )


def find_welch_error(one: Moments, two: Moments) -> tuple[float, float]:
    """Return the unpooled standard error of a difference and Welch's degrees of freedom."""
    v1, v2 = one.variance / one.n, two.variance / two.n
    if v1 + v2 == 0:
        raise StatsError(
            f"neither sample varies ({one.n} values of {format_number(one.mean)}, {two.n} of "
            f"{format_number(two.mean)}): without spread there is no t. Repeats of a deterministic "
            "run are one observation"
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
        f"The means differ by {format_number(difference)}, {level:.0%} interval "
        f"{format_interval(interval)}; by {test} t = {format_number(t)}, "
        f"df = {format_number(df)}, p = {format_number(p)}."
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
