"""Bootstrap intervals of areas under the ROC curve, without a seed.

The Bayesian bootstrap (Rubin, 1981): a resample gives each record a weight, exponential with mean
one, and each class's area is that of the weighted records. Within a class the positives' weights,
divided by their sum, and the negatives' are two independent flat Dirichlet draws: positives and
negatives are resampled separately, and neither kind can vanish. A record has one weight for all
classes, so the macro mean keeps what the classes have in common.

Weights are whole 64ths taken from a table by 16 bits of Philox, a function of (row, resample). All
sums are then of integers and exact: equal inputs give equal intervals, on every machine, and two
models scored on the same rows are resampled alike.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError
from seedless.evaluate.intervals import DIGITS, LEVEL, Interval, pair_interval
from seedless.evaluate.ranking import area_under_curve
from seedless.numerics.counter_random import WORD_MASK, draw_uniform, philox, split_uint64

UNIT = 64  # one, in the weights' steps
_KEY = int.from_bytes(hashlib.blake2b(b"seedless.bootstrap", digest_size=8).digest(), "little")
_CHUNK = 1 << 18  # weights held at a time
_CACHED = 1 << 13  # blocks drawn at a time: they stay in the processor's cache


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
    """Return percentile intervals of the macro and per-class areas of (n, K) scores and labels.

    With m the fewer of positives and negatives, weights alone understate the variance by
    (m - 1) / (m + 1): deviations are stretched by the root of its inverse. Where that says nothing
    (one positive) or all resamples agree (an area of 0 or 1), certainty would be claimed. There a
    class has the interval of `pair_interval`, and its part in the macro mean varies as widely as
    the posterior of m disjoint pairs: Beta(m A + 1/2, m (1 - A) + 1/2), moved to the mean A.
    """
    if resamples < 40:
        raise DataError(f"expected at least 40 resamples for an interval, got {resamples}")
    areas = resample_areas(probabilities, labels, resamples)
    sums, centres = np.zeros(resamples), []
    classes: list[Interval | None] = [None] * labels.shape[1]
    for k in range(labels.shape[1]):
        scores, truth = probabilities[:, k], labels[:, k]
        centre = area_under_curve(scores, truth)
        if centre is None:
            continue
        centres.append(centre)
        few = min(int(truth.sum()), int(len(truth) - truth.sum()))
        alike = few < 2 or areas[:, k].min() == areas[:, k].max()
        found = (
            _draw_pairs(centre, few, k, resamples) if alike else _widen(areas[:, k], centre, few)
        )
        sums += found  # one after the other: no sum whose order a library chooses
        classes[k] = (
            pair_interval(centre, few, few, level)
            if alike
            else _take_percentiles(found, centre, level)
        )
    if not centres:
        return Bootstrap(None, tuple(classes), resamples)
    mean = math.fsum(centres) / len(centres)
    return Bootstrap(_take_percentiles(sums / len(centres), mean, level), tuple(classes), resamples)


def resample_areas(
    probabilities: NDArray[np.float64], labels: NDArray[np.uint8], resamples: int
) -> NDArray[np.float64]:
    """Return the area of each class in each resample: (resamples, K), NaN where there is none."""
    n, k = labels.shape
    areas = np.full((resamples, k), np.nan)
    plans = {
        column: _Plan.of(probabilities[:, column], labels[:, column])
        for column in range(k)
        if 0 < int(labels[:, column].sum()) < n
    }
    step = max(1, _CHUNK // n)
    for start in range(0, resamples, step):
        rows = np.arange(start, min(start + step, resamples))
        weights = draw_weights(n, rows)
        for column, plan in plans.items():
            areas[rows, column] = plan.weigh(weights)
    return areas


def draw_weights(n: int, resamples: NDArray[np.int64]) -> NDArray[np.int16]:
    """Return the weight of each of ``n`` records in these resamples: (len(resamples), n)."""
    low, high = (np.int64(word) for word in split_uint64(_KEY))
    blocks = np.arange((n + 7) // 8, dtype=np.int64)  # eight records to a block of 128 bits
    words = np.empty((len(resamples), len(blocks), 8), dtype=np.uint16)
    step = max(1, _CACHED // len(blocks))
    for start in range(0, len(resamples), step):
        rows = resamples[start : start + step, None].astype(np.int64)
        found = philox((blocks & WORD_MASK, blocks >> 32, rows, np.int64(0)), (low, high))
        for number, word in enumerate(found):
            words[start : start + step, :, 2 * number] = word & 0xFFFF
            words[start : start + step, :, 2 * number + 1] = word >> 16
    return _weights()[words.reshape(len(resamples), -1)[:, :n]]


@lru_cache(maxsize=1)
def _weights() -> NDArray[np.int16]:
    """Return the quantiles of an exponential distribution in 64ths, at least one: (65536,)."""
    exact = (-math.log((bits + 0.5) / 65536) * UNIT for bits in range(65536))
    return np.array([max(1, round(value)) for value in exact], dtype=np.int16)


@dataclass(frozen=True, eq=False)
class _Plan:
    """A class sorted once: its positives, its negatives by score, and where the ones fall."""

    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]
    below: NDArray[np.int64]
    up_to: NDArray[np.int64]

    @classmethod
    def of(cls, scores: NDArray[np.float64], truth: NDArray[np.uint8]) -> _Plan:
        positives, negatives = np.flatnonzero(truth == 1), np.flatnonzero(truth == 0)
        positives = positives[np.argsort(scores[positives], kind="stable")]
        negatives = negatives[np.argsort(scores[negatives], kind="stable")]
        found = (
            np.searchsorted(scores[negatives], scores[positives], s) for s in ("left", "right")
        )
        return cls(positives, negatives, *found)

    @property
    def tied(self) -> bool:
        """Whether a positive and a negative have the same score."""
        return bool((self.below != self.up_to).any())

    def weigh(self, weights: NDArray[np.int16]) -> NDArray[np.float64]:
        """Return the area under each row of weights: (b, n) -> (b,)."""
        wide = np.int32 if weights.shape[1] < 1 << 20 else np.int64
        sums = np.zeros((len(weights), len(self.negatives) + 1), dtype=wide)
        np.cumsum(weights[:, self.negatives], axis=1, dtype=wide, out=sums[:, 1:])
        own = weights[:, self.positives].astype(np.int64)
        half = sums[:, self.below]
        half += sums[:, self.up_to] if self.tied else half
        won = own * half
        total: NDArray[np.float64] = won.sum(axis=1) / (2 * own.sum(axis=1) * sums[:, -1])
        return total


def _widen(areas: NDArray[np.float64], centre: float, few: int) -> NDArray[np.float64]:
    """Stretch deviations from the area, so that their variance is right for so few records.

    Weights of m records spread (m - 1) / (m + 1) as far as the sample variance says they should.
    """
    stretch = math.sqrt((few + 1) / (few - 1))
    return np.clip(centre + stretch * (areas - centre), 0.0, 1.0)


def _draw_pairs(centre: float, pairs: int, column: int, count: int) -> NDArray[np.float64]:
    """Draw areas as widely spread about theirs as Jeffreys' posterior of a share of pairs won."""
    from scipy.special import betaincinv

    won = centre * pairs
    uniform = draw_uniform(column, "seedless.bootstrap.pairs", count)
    spread = betaincinv(won + 0.5, pairs - won + 0.5, uniform) - (won + 0.5) / (pairs + 1)
    found: NDArray[np.float64] = np.clip(centre + spread, 0.0, 1.0)
    return found


def _take_percentiles(values: NDArray[np.float64], centre: float, level: float) -> Interval:
    """Return the interval that leaves out the same number of resamples at either end.

    It is extended to the number it is about, should that lie outside.
    """
    ranked = np.sort(values)
    out = int((1 - level) / 2 * len(ranked))
    low, high = min(float(ranked[out]), centre), max(float(ranked[-1 - out]), centre)
    return Interval(round(low, DIGITS), round(high, DIGITS), "bootstrap")
