"""Bootstrap intervals of areas under the ROC curve, without a seed.

The Bayesian bootstrap (Rubin, 1981): a resample gives each record a weight, exponential with mean
one, and the area of a class is that of the weighted records. Within a class the weights of the
positives, divided by their sum, and those of the negatives are two independent flat Dirichlet
samples: positives and negatives are resampled separately, and neither can vanish. A record has one
weight for all classes, so that the macro mean keeps the correlation between classes.

Weights are whole 64ths, looked up in a table by 16 bits of Philox, a function of (row, resample).
All sums are of integers and exact: equal inputs give equal intervals on every machine, and two
models scored on the same rows get the same resamples.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError
from seedless.evaluate.auc import area_under_curve
from seedless.evaluate.intervals import DIGITS, LEVEL, Interval, area_interval, pair_interval
from seedless.numerics.counter_random import WORD_MASK, draw_uniform, philox, split_uint64

RARE = 100  # positives or negatives of a class: below, percentiles cover too rarely
UNIT = 64  # a weight of one, in steps of 1/64
_KEY = int.from_bytes(hashlib.blake2b(b"seedless.bootstrap", digest_size=8).digest(), "little")
_CHUNK = 1 << 18  # weights in memory at a time
_CACHED = 1 << 13  # blocks computed at a time: they fit in the processor's cache


@dataclass(frozen=True)
class Bootstrap:
    """Intervals of the macro mean and of each class; None where there is no area."""

    macro: Interval | None
    classes: tuple[Interval | None, ...]
    resamples: int


def bootstrap_areas(
    probabilities: NDArray[np.float64],
    labels: NDArray[np.uint8],
    resamples: int = 2000,
    level: float = LEVEL,
) -> Bootstrap:
    """Return intervals of the macro and per-class areas of (n, K) scores and labels.

    They are percentiles of the resamples, but for classes with fewer than `RARE` positives or
    negatives: percentiles of so few records contain the true area too rarely, and these classes
    have the interval of `area_interval`.

    With m the smaller number of positives and negatives, weights alone understate the variance by
    (m - 1) / (m + 1): deviations are scaled by the root of its inverse. Where that is not possible
    (one positive), or where all resamples agree (an area A of 0 or 1), the bootstrap would claim
    certainty. There a class of at least `RARE` has the interval of `pair_interval`, and its part of
    the macro mean varies as the posterior of m disjoint pairs, Beta(m A + 1/2, m (1 - A) + 1/2),
    moved to mean A.
    """
    if resamples < 40:
        raise DataError(f"expected at least 40 resamples for an interval, got {resamples}")
    # [Step 1] The area of every class in every resample.
    areas = resample_areas(probabilities, labels, resamples)
    sums, observed = np.zeros(resamples), []
    classes: list[Interval | None] = [None] * labels.shape[1]
    for k in range(labels.shape[1]):
        scores, truth = probabilities[:, k], labels[:, k]
        area = area_under_curve(scores, truth)
        if area is None:
            continue
        observed.append(area)
        # [Step 2] Correct the spread for the number of records, and take the percentiles.
        rarer = min(int(truth.sum()), int(len(truth) - truth.sum()))
        if rarer < 2 or areas[:, k].min() == areas[:, k].max():
            spread = _draw_pairs(area, rarer, k, resamples)
        else:
            spread = _scale_spread(areas[:, k], area, rarer)
        if rarer < RARE:
            classes[k] = area_interval(area, rarer, rarer, level)
        elif areas[:, k].min() == areas[:, k].max():
            classes[k] = pair_interval(area, rarer, rarer, level)
        else:
            classes[k] = _take_percentiles(spread, area, level)
        sums += spread  # class by class: a library's sum over an axis may change its order
    # [Step 3] The macro mean of each resample has percentiles of its own.
    if not observed:
        return Bootstrap(None, tuple(classes), resamples)
    mean = math.fsum(observed) / len(observed)
    macro = _take_percentiles(sums / len(observed), mean, level)
    return Bootstrap(macro, tuple(classes), resamples)


def take_class_percentiles(
    scores: NDArray[np.float64],
    truth: NDArray[np.uint8],
    resamples: int = 2000,
    level: float = LEVEL,
) -> Interval | None:
    """Return the percentile interval of one class, however few positives it has.

    Its coverage is measured in `benchmarks.interval_coverage`. None without an area.
    """
    area = area_under_curve(scores, truth)
    if area is None:
        return None
    areas = resample_areas(scores[:, None], truth[:, None], resamples)[:, 0]
    rarer = min(int(truth.sum()), int(len(truth) - truth.sum()))
    if rarer < 2 or areas.min() == areas.max():
        return pair_interval(area, rarer, rarer, level)
    return _take_percentiles(_scale_spread(areas, area, rarer), area, level)


def resample_areas(
    probabilities: NDArray[np.float64], labels: NDArray[np.uint8], resamples: int
) -> NDArray[np.float64]:
    """Return the area of each class in each resample: (resamples, K), NaN where there is none."""
    n, k = labels.shape
    areas = np.full((resamples, k), np.nan)
    ranked = {
        column: _RankedClass.rank(probabilities[:, column], labels[:, column])
        for column in range(k)
        if 0 < int(labels[:, column].sum()) < n
    }
    step = max(1, _CHUNK // n)
    for start in range(0, resamples, step):
        rows = np.arange(start, min(start + step, resamples))
        weights = draw_weights(n, rows)
        for column, ranks in ranked.items():
            areas[rows, column] = ranks.compute_areas(weights)
    return areas


def draw_weights(n: int, resamples: NDArray[np.int64]) -> NDArray[np.int16]:
    """Return the weight of each of ``n`` records in these resamples: (len(resamples), n)."""
    low, high = (np.int64(word) for word in split_uint64(_KEY))
    blocks = np.arange((n + 7) // 8, dtype=np.int64)  # eight records to a block of 128 bits
    words = np.empty((len(resamples), len(blocks), 8), dtype=np.uint16)
    step = max(1, _CACHED // len(blocks))
    for start in range(0, len(resamples), step):
        rows = resamples[start : start + step, None].astype(np.int64)
        drawn_words = philox((blocks & WORD_MASK, blocks >> 32, rows, np.int64(0)), (low, high))
        for number, word in enumerate(drawn_words):
            words[start : start + step, :, 2 * number] = word & 0xFFFF
            words[start : start + step, :, 2 * number + 1] = word >> 16
    return _weights()[words.reshape(len(resamples), -1)[:, :n]]


@lru_cache(maxsize=1)
def _weights() -> NDArray[np.int16]:
    """Return the quantiles of an exponential distribution in 64ths, at least one: (65536,)."""
    exact = (-math.log((bits + 0.5) / 65536) * UNIT for bits in range(65536))
    return np.array([max(1, round(value)) for value in exact], dtype=np.int16)


@dataclass(frozen=True, eq=False)
class _RankedClass:
    """The records of a class, ranked once for all resamples.

    ``positives`` and ``negatives`` are rows in the order of their scores; of each positive,
    ``below`` is the number of negatives with a lower score and ``up_to`` with a lower or equal one.
    """

    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]
    below: NDArray[np.int64]
    up_to: NDArray[np.int64]

    @classmethod
    def rank(cls, scores: NDArray[np.float64], truth: NDArray[np.uint8]) -> _RankedClass:
        positives, negatives = np.flatnonzero(truth == 1), np.flatnonzero(truth == 0)
        positives = positives[np.argsort(scores[positives], kind="stable")]
        negatives = negatives[np.argsort(scores[negatives], kind="stable")]
        counts = (
            np.searchsorted(scores[negatives], scores[positives], s) for s in ("left", "right")
        )
        return cls(positives, negatives, *counts)

    @property
    def tied(self) -> bool:
        """Whether a positive and a negative have the same score."""
        return bool((self.below != self.up_to).any())

    def compute_areas(self, weights: NDArray[np.int16]) -> NDArray[np.float64]:
        """Return the area for each row of weights: (b, n) -> (b,).

        A = sum over positives of w_i (W(below_i) + W(up_to_i)) / (2 sum w_i W), where W(j) is the
        weight of the j lowest negatives: pairs in order count once and ties half.
        """
        wide = np.int32 if weights.shape[1] < 1 << 20 else np.int64
        sums = np.zeros((len(weights), len(self.negatives) + 1), dtype=wide)
        np.cumsum(weights[:, self.negatives], axis=1, dtype=wide, out=sums[:, 1:])
        own = weights[:, self.positives].astype(np.int64)
        half = sums[:, self.below]
        half += sums[:, self.up_to] if self.tied else half
        won = own * half
        total: NDArray[np.float64] = won.sum(axis=1) / (2 * own.sum(axis=1) * sums[:, -1])
        return total


def _scale_spread(areas: NDArray[np.float64], centre: float, rarer: int) -> NDArray[np.float64]:
    """Scale deviations from the area, so that their variance is right for few records.

    Weighted means of m records have (m - 1) / (m + 1) of the variance of sample means.
    """
    factor = math.sqrt((rarer + 1) / (rarer - 1))
    return np.clip(centre + factor * (areas - centre), 0.0, 1.0)


def _draw_pairs(centre: float, pairs: int, column: int, count: int) -> NDArray[np.float64]:
    """Return areas that vary about ``centre`` as Jeffreys' posterior of a share of pairs does."""
    from scipy.special import betaincinv

    won = centre * pairs
    uniform = draw_uniform(column, "seedless.bootstrap.pairs", count)
    spread = betaincinv(won + 0.5, pairs - won + 0.5, uniform) - (won + 0.5) / (pairs + 1)
    areas: NDArray[np.float64] = np.clip(centre + spread, 0.0, 1.0)
    return areas


def _take_percentiles(values: NDArray[np.float64], centre: float, level: float) -> Interval:
    """Return the interval without the same number of resamples at either end.

    It is extended to the observed value where that is outside.
    """
    ranked = np.sort(values)
    out = int((1 - level) / 2 * len(ranked))
    low, high = min(float(ranked[out]), centre), max(float(ranked[-1 - out]), centre)
    return Interval(round(low, DIGITS), round(high, DIGITS), "bootstrap")
