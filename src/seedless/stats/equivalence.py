"""Are two means as good as equal? Two one-sided tests (Schuirmann 1987)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, show, show_interval
from seedless.stats.difference import find_welch_error, paired
from seedless.stats.samples import Values, check_share, find_moments, read_sample


@dataclass(frozen=True, kw_only=True)
class Equivalence(Answer):
    """TOST: is the difference within the margin on both sides?

    Attributes:
        p: the larger of the two one-sided p values.
        interval: at level 1 - 2 alpha; equivalent means that it lies within the margin.
    """

    margin: float
    difference: float
    standard_error: float
    df: float
    degrees: str
    p_above_lower: float
    p_below_upper: float
    p: float
    interval: tuple[float, float]
    alpha: float
    equivalent: bool


def tost(
    a: Values, b: Values, margin: float, *, degrees: str = "welch", alpha: float = 0.05
) -> Equivalence:
    """Test whether two means differ by less than ``margin``, on the unpooled standard error.

    Args:
        a: the first sample.
        b: the second.
        margin: the largest difference that does not matter; chosen before looking.
        degrees: "welch", or "published" for n1 + n2 - 2, which is too many where variances differ.
        alpha: the significance of each one-sided test.
    """
    _check_margin(margin, alpha)
    if degrees not in ("welch", "published"):
        raise StatsError(f"degrees: expected 'welch' or 'published', got {degrees!r}")
    one, two = (
        find_moments(read_sample(values, name))
        for values, name in ((a, "first sample"), (b, "second sample"))
    )
    error, df = find_welch_error(one, two)
    if degrees == "published":
        df = one.n + two.n - 2.0
    return _judge(
        "TOST",
        one.mean - two.mean,
        error,
        df,
        margin=margin,
        alpha=alpha,
        degrees=degrees,
        n=(one.n, two.n),
        assumption="independent runs, means near normal, a margin chosen before looking"
        + ("; equal variances, for these degrees of freedom" if degrees == "published" else ""),
    )


def paired_tost(a: Values, b: Values, margin: float, *, alpha: float = 0.05) -> Equivalence:
    """Test whether paired values differ by less than ``margin`` in the mean, as `tost` does."""
    _check_margin(margin, alpha)
    found = paired(a, b)
    return _judge(
        "paired TOST",
        found.difference,
        found.standard_error,
        found.df,
        margin=margin,
        alpha=alpha,
        degrees="pairs",
        n=found.n,
        assumption="independent pairs, the mean of their differences near normal, a margin chosen "
        "before looking",
    )


def _check_margin(margin: float, alpha: float) -> None:
    if not (math.isfinite(margin) and margin > 0):
        raise StatsError(f"margin: expected a positive number, got {margin!r}")
    check_share(2 * alpha, "twice alpha")


def _judge(
    test: str,
    difference: float,
    error: float,
    df: float,
    *,
    margin: float,
    alpha: float,
    degrees: str,
    n: tuple[int, ...],
    assumption: str,
) -> Equivalence:
    """Return the two one-sided tests of a difference with this standard error."""
    above = float(stdtr(df, -(difference + margin) / error))
    below = float(stdtr(df, (difference - margin) / error))
    reach = float(stdtrit(df, 1 - alpha)) * error
    interval = (difference - reach, difference + reach)
    p = max(above, below)
    equivalent = p < alpha
    sentence = (
        f"The means are {'' if equivalent else 'not shown to be '}equivalent within "
        f"{show(margin)}: {test} p = {show(p)}, df = {show(df)}; {1 - 2 * alpha:.0%} interval of "
        f"the difference {show_interval(interval)}."
    )
    return Equivalence(
        margin=float(margin),
        difference=difference,
        standard_error=error,
        df=df,
        degrees=degrees,
        p_above_lower=above,
        p_below_upper=below,
        p=p,
        interval=interval,
        alpha=alpha,
        equivalent=equivalent,
        n=n,
        assumption=assumption,
        sentence=sentence,
    )
