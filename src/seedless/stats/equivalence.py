"""Are two means as good as equal? Two one-sided tests (Schuirmann 1987)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, show, show_interval
from seedless.stats.difference import find_welch_error
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
    if not (math.isfinite(margin) and margin > 0):
        raise StatsError(f"margin: expected a positive number, got {margin!r}")
    if degrees not in ("welch", "published"):
        raise StatsError(f"degrees: expected 'welch' or 'published', got {degrees!r}")
    check_share(2 * alpha, "twice alpha")
    one, two = (
        find_moments(read_sample(values, name))
        for values, name in ((a, "first sample"), (b, "second sample"))
    )
    error, df = find_welch_error(one, two)
    if degrees == "published":
        df = one.n + two.n - 2.0
    difference = one.mean - two.mean
    above = float(stdtr(df, -(difference + margin) / error))
    below = float(stdtr(df, (difference - margin) / error))
    reach = float(stdtrit(df, 1 - alpha)) * error
    interval = (difference - reach, difference + reach)
    p = max(above, below)
    equivalent = p < alpha
    sentence = (
        f"The means are {'' if equivalent else 'not shown to be '}equivalent within "
        f"{show(margin)}: TOST p = {show(p)}, df = {show(df)}; {1 - 2 * alpha:.0%} interval of the "
        f"difference {show_interval(interval)}."
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
        n=(one.n, two.n),
        assumption="independent runs, means near normal, a margin chosen before looking"
        + ("; equal variances, for these degrees of freedom" if degrees == "published" else ""),
        sentence=sentence,
    )
