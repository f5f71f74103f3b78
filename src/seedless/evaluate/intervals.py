"""Confidence intervals of shares, of areas under the ROC curve, and of differences.

Ends are rounded to nine decimals: further digits depend on the math library, not on the data.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError

LEVEL = 0.95
DIGITS = 9
_BLOCK = 1024  # products summed at a time: their sum fits in 64 bits


@dataclass(frozen=True)
class Interval:
    """From ``low`` to ``high``; ``method`` names how it was computed."""

    low: float
    high: float
    method: str

    def as_list(self) -> list[float]:
        """Return both ends, for JSON."""
        return [self.low, self.high]


@dataclass(frozen=True)
class Comparison:
    """Two areas on the same records: ``difference`` is the first minus the second.

    ``z`` and ``p`` (two-sided) are None where the variance of the difference is zero and the
    difference is not: then its uncertainty is not known.
    """

    first: float
    second: float
    difference: float
    interval: Interval | None
    z: float | None
    p: float | None


def quantile(level: float) -> float:
    """Return z with ``level`` of a normal distribution between -z and z."""
    if not 0 < level < 1:
        raise DataError(f"expected a level between 0 and 1, such as 0.95, got {level}")
    return NormalDist().inv_cdf((1 + level) / 2)


def wilson_interval(successes: int, trials: int, level: float = LEVEL) -> Interval | None:
    """Return Wilson's score interval of a share (1927); None without trials.

    With share p, n trials and z the normal quantile:
    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n).

    >>> wilson_interval(8, 10).as_list()
    [0.490162472, 0.943317849]
    """
    if trials == 0:
        return None
    return _round(*_wilson_ends(successes / trials, trials, level), "wilson")


def _wilson_ends(share: float, trials: int, level: float) -> tuple[float, float]:
    """Return both ends of Wilson's interval; a share of 0 or 1 is an end itself."""
    z = quantile(level)
    centre = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = 0.0 if share == 0 else (centre - half) / scale
    high = 1.0 if share == 1 else (centre + half) / scale
    return low, high


def pair_interval(area: float, positives: int, negatives: int, level: float = LEVEL) -> Interval:
    """Return Clopper and Pearson's interval of an area, from disjoint pairs of records.

    min(P, N) pairs of a positive and a negative can be formed that share no record. In each the
    positive has the higher score with a probability equal to the area, independently of the others.
    The interval treats the area as the share of these pairs. For areas of 0 and 1 it is exact, but
    wide: for 1 it is (alpha / 2)^(1 / pairs) to 1.
    """
    pairs = min(positives, negatives)
    tail = (1 - level) / 2
    won = area * pairs
    if won >= pairs:
        return _round(math.exp(math.log(tail) / pairs), 1.0, "pairs")
    if won <= 0:
        return _round(0.0, 1 - math.exp(math.log(tail) / pairs), "pairs")
    from scipy.special import betaincinv

    low = float(betaincinv(won, pairs - won + 1, tail))
    high = float(betaincinv(won + 1, pairs - won, 1 - tail))
    return _round(low, high, "pairs")


def area_interval(area: float, positives: int, negatives: int, level: float = LEVEL) -> Interval:
    """Return Wilson's interval of an area, for classes of few positives.

    The variance of an area A is at most A (1 - A) / min(P, N), whatever the scores' distributions
    (Birnbaum and Klose 1957), which is that of a share of min(P, N) pairs. Wilson's interval takes
    the variance at the true value and not at the one found, so that it also holds for areas of 0
    and 1. It is narrower than `pair_interval`, and its coverage is not guaranteed but simulated:
    `benchmarks.interval_coverage`.

    >>> area_interval(0.92, 5, 295).as_list()
    [0.482022117, 0.993012612]
    """
    pairs = min(positives, negatives)
    if pairs < 1:
        raise DataError(f"expected a positive and a negative, got {positives} and {negatives}")
    return _round(*_wilson_ends(area, pairs, level), "wilson of pairs")


def delong_interval(
    scores: NDArray[np.float64], truth: NDArray[np.uint8], level: float = LEVEL
) -> Interval | None:
    """Return an interval of the area under the ROC curve: DeLong's variance on the logit scale.

    The interval of logit(A) is logit(A) -+ t sd / (A (1 - A)); transformed back it stays within 0
    and 1. t is Student's, with Satterthwaite's degrees of freedom for a sum of two variances, since
    the variance is itself estimated, from a handful of positives where a class is rare. Where the
    variance is zero or unknown (an area of 0 or 1, all scores equal, one positive), the result is
    that of `pair_interval`. None without positives or without negatives.
    """
    wins, positives, negatives = count_wins(scores, truth)
    if positives == 0 or negatives == 0:
        return None
    area = wins / (2 * positives * negatives)
    parts = delong_covariance(scores, scores, truth)
    variance = 0.0 if parts is None else sum(parts)
    if parts is None or variance == 0 or not 0 < area < 1:
        return pair_interval(area, positives, negatives, level)
    freedom = variance**2 / (parts[0] ** 2 / (positives - 1) + parts[1] ** 2 / (negatives - 1))
    centre = math.log(area / (1 - area))
    half = _student(level, freedom) * math.sqrt(variance) / (area * (1 - area))
    return _round(_expit(centre - half), _expit(centre + half), "delong")


def compare_areas(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    truth: NDArray[np.uint8],
    level: float = LEVEL,
) -> Comparison | None:
    """Return DeLong's test (1988) of two models' areas on the same records.

    z = (A1 - A2) / sqrt(var A1 + var A2 - 2 cov(A1, A2)); the interval is difference -+ z sd, cut
    to -1 and 1. None without positives or without negatives.
    """
    wins, positives, negatives = count_wins(first, truth)
    if positives == 0 or negatives == 0:
        return None
    pairs = 2 * positives * negatives
    other_wins = count_wins(second, truth)[0]
    a, b, difference = wins / pairs, other_wins / pairs, (wins - other_wins) / pairs
    own, other, shared = (
        delong_covariance(x, y, truth)
        for x, y in ((first, first), (second, second), (first, second))
    )
    if own is None or other is None or shared is None:
        return Comparison(a, b, difference, None, None, None)
    variance = sum(own) + sum(other) - 2 * sum(shared)
    if variance <= 1e-15:  # zero but for rounding: both rank every pair alike
        certain = difference == 0
        return Comparison(
            a, b, difference, None, 0.0 if certain else None, 1.0 if certain else None
        )
    deviation = math.sqrt(variance)
    half = quantile(level) * deviation
    interval = _round(max(-1.0, difference - half), min(1.0, difference + half), "delong")
    z = difference / deviation
    return Comparison(a, b, difference, interval, z, math.erfc(abs(z) / math.sqrt(2)))


def difference_interval(
    first: float, around: Interval, second: float, around_second: Interval
) -> Interval:
    """Return an interval of ``first - second`` from the intervals of two independent numbers.

    The method of variance estimates recovery (Zou and Donner, 2008); with Wilson's intervals it is
    Newcombe's tenth method.
    """
    difference = first - second
    below = math.hypot(first - around.low, around_second.high - second)
    above = math.hypot(around.high - first, second - around_second.low)
    return _round(difference - below, difference + above, "recovered")


def count_wins(scores: NDArray[np.float64], truth: NDArray[np.uint8]) -> tuple[int, int, int]:
    """Return twice the number of pairs in order (a tie is half a pair), positives and negatives."""
    wins, _ = _count_pairs(scores, truth)
    positives = len(wins)
    return int(wins.sum()), positives, len(truth) - positives


def _count_pairs(
    scores: NDArray[np.float64], truth: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return twice the negatives below each positive, and twice the positives above each negative.

    A tie counts once.
    """
    above, below = scores[truth == 1], scores[truth == 0]
    pos, neg = np.sort(above), np.sort(below)
    wins = np.searchsorted(neg, above, "left") + np.searchsorted(neg, above, "right")
    losses = np.searchsorted(pos, below, "left") + np.searchsorted(pos, below, "right")
    return wins, 2 * len(pos) - losses


def delong_covariance(
    first: NDArray[np.float64], second: NDArray[np.float64], truth: NDArray[np.uint8]
) -> tuple[float, float] | None:
    """Return the two parts of DeLong's covariance (1988) of two areas: S10 / P and S01 / N.

    S10 is the sample covariance of each positive's share of negatives below it, S01 that of each
    negative's share of positives above. All sums are of integers, so exact. With the same scores
    twice, the parts add up to the variance of the area. None with fewer than two positives or
    negatives.
    """
    one, other = _count_pairs(first, truth), _count_pairs(second, truth)
    positives, negatives = len(one[0]), len(one[1])
    if positives < 2 or negatives < 2:
        return None
    return (
        _sample_covariance(one[0], other[0]) / (2 * negatives) ** 2 / positives,
        _sample_covariance(one[1], other[1]) / (2 * positives) ** 2 / negatives,
    )


def _sample_covariance(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    n = len(a)
    starts = range(0, n, _BLOCK)
    products = sum(int((a[s : s + _BLOCK] * b[s : s + _BLOCK]).sum()) for s in starts)
    return (n * products - int(a.sum()) * int(b.sum())) / (n * (n - 1))


def _student(level: float, freedom: float) -> float:
    """Return t with ``level`` of Student's distribution between -t and t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def _expit(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0


def _round(low: float, high: float, method: str) -> Interval:
    return Interval(round(low, DIGITS), round(high, DIGITS), method)
