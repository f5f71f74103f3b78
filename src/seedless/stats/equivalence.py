"""Tests of equivalence: do two means differ by less than a margin that does not matter?

TOST, two one-sided tests (Schuirmann 1987): the null hypotheses "the difference is at most -margin"
and "it is at least +margin" are both rejected, or equivalence is not shown.
"""

import math
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, format_interval, format_number
from seedless.stats.samples import Values, check_share, find_moments, read_two
from seedless.stats.t_tests import find_welch_error, paired_t_test


@dataclass(frozen=True, kw_only=True)
class Equivalence(Answer):
    """The result of two one-sided tests.

    Attributes:
        p_above_lower: of the hypothesis that the difference is at most -margin.
        p_below_upper: of the hypothesis that it is at least +margin.
        p: the larger of the two.
        interval: of the difference, at level 1 - 2 alpha.
        equivalent: whether p < alpha; then the interval lies within -margin and +margin.
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
    """Test whether two means differ by less than ``margin``, with the unpooled standard error.

    Args:
        a: the first sample.
        b: the second.
        margin: the largest difference that does not matter; chosen before the results are seen.
        degrees: "welch", or "published" for n1 + n2 - 2, which is too many where variances differ.
        alpha: the significance level of each one-sided test.

    >>> tost([0.95, 0.96, 0.97], [0.94, 0.95, 0.96], margin=0.05).equivalent
    True
    """
    _check_margin(margin, alpha)
    if degrees not in ("welch", "published"):
        raise StatsError(f"degrees: expected 'welch' or 'published', got {degrees!r}")
    one, two = (find_moments(sample) for sample in read_two(a, b))
    error, df = find_welch_error(one, two)
    if degrees == "published":
        df = one.n + two.n - 2.0
    return _test_both_sides(
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
    test = paired_t_test(a, b)
    return _test_both_sides(
        "paired TOST",
        test.difference,
        test.standard_error,
        test.df,
        margin=margin,
        alpha=alpha,
        degrees="pairs",
        n=test.n,
        assumption="independent pairs, the mean of their differences near normal, a margin chosen "
        "before looking",
    )


def _check_margin(margin: float, alpha: float) -> None:
    if not (math.isfinite(margin) and margin > 0):
        raise StatsError(f"margin: expected a positive number, got {margin!r}")
    check_share(2 * alpha, "twice alpha")


def _test_both_sides(
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
    # [Step 1] H0: difference <= -margin, rejected where t = (difference + margin) / error is large.
    above = float(stdtr(df, -(difference + margin) / error))
    # [Step 2] H0: difference >= margin, rejected where t = (difference - margin) / error is small.
    below = float(stdtr(df, (difference - margin) / error))
    # [Step 3] Both must be rejected, so the larger p decides.
    reach = float(stdtrit(df, 1 - alpha)) * error
    interval = (difference - reach, difference + reach)
    p = max(above, below)
    equivalent = p < alpha
    sentence = (
        f"The means are {'' if equivalent else 'not shown to be '}equivalent within "
        f"{format_number(margin)}: {test} p = {format_number(p)}, df = {format_number(df)}; "
        f"{1 - 2 * alpha:.0%} interval of the difference {format_interval(interval)}."
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
