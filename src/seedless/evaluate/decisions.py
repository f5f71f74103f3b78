"""From probabilities to calls, and what the calls are worth.

A class is called where its probability is at or above its threshold. The threshold is the one of
the highest F1 on the records it is chosen on, the lowest of several that are equal: of two that
score alike, the more sensitive. It is always a probability that a record had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DEFAULT = 0.5  # where there is no threshold, because there was nothing to choose it on

Threshold = float | None


@dataclass(frozen=True)
class Counts:
    """Calls against truth: true and false positives, false and true negatives.

    A rate is None where its denominator is zero, and all are None for a class without positives or
    without negatives: there is nothing to be right or wrong about.
    """

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def both_kinds(self) -> bool:
        """Whether there are positives and negatives."""
        return self.tp + self.fn > 0 and self.fp + self.tn > 0

    @property
    def sensitivity(self) -> float | None:
        """Share of the positives that are called."""
        return self._divide(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> float | None:
        """Share of the negatives that are not called."""
        return self._divide(self.tn, self.tn + self.fp)

    @property
    def precision(self) -> float | None:
        """Share of the calls that are positives."""
        return self._divide(self.tp, self.tp + self.fp)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of sensitivity and precision: 2 TP / (2 TP + FP + FN)."""
        return self._divide(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    def _divide(self, part: int, whole: int) -> float | None:
        return part / whole if whole and self.both_kinds else None

    def as_dict(self) -> dict[str, Any]:
        """Return counts and rates as plain values."""
        rates = ("sensitivity", "specificity", "precision", "f1")
        return {
            **{name: getattr(self, name) for name in rates},
            **{name: getattr(self, name) for name in ("tp", "fp", "fn", "tn")},
        }


def choose_threshold(scores: NDArray[np.float64], truth: NDArray[np.uint8]) -> Threshold:
    """Return the threshold of the highest F1, the lowest of equals; None without both kinds."""
    positives = int(truth.sum())
    if positives in (0, len(truth)):
        return None
    values, called, found = count_by_threshold(scores, truth)
    # Quotients of small integers: equal F1 are equal floats, so a tie is seen as one.
    f1 = 2 * found / (called + positives)
    best = np.flatnonzero(f1 == f1.max())
    return float(values[best[-1]])


def choose_thresholds(
    probabilities: NDArray[np.float64], labels: NDArray[np.uint8]
) -> tuple[Threshold, ...]:
    """Return a threshold for each of the K classes."""
    columns = range(labels.shape[1])
    return tuple(choose_threshold(probabilities[:, k], labels[:, k]) for k in columns)


def count_by_threshold(
    scores: NDArray[np.float64], truth: NDArray[np.uint8]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct scores, falling, and how many records and positives reach each."""
    values, inverse = np.unique(-scores, return_inverse=True)
    called = np.bincount(inverse, minlength=len(values)).cumsum()
    found = np.bincount(inverse[truth == 1], minlength=len(values)).cumsum()
    return -values, called, found


def call(probabilities: NDArray[np.float64], thresholds: Sequence[Threshold]) -> NDArray[np.uint8]:
    """Return (n, K) calls of 0 and 1; a class without a threshold is called at 0.5."""
    limits = np.array([DEFAULT if value is None else value for value in thresholds])
    return (probabilities >= limits).astype(np.uint8)


def call_one(probabilities: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return (n, K) calls of the most probable class alone, the first of equals."""
    calls = np.zeros(probabilities.shape, dtype=np.uint8)
    calls[np.arange(len(calls)), probabilities.argmax(axis=1)] = 1
    return calls


def count(calls: NDArray[np.uint8], truth: NDArray[np.uint8]) -> Counts:
    """Count calls (n,) against truth (n,)."""
    tp = int((calls & truth).sum())
    fp, fn = int(calls.sum()) - tp, int(truth.sum()) - tp
    return Counts(tp, fp, fn, len(truth) - tp - fp - fn)


def exact_match(calls: NDArray[np.uint8], labels: NDArray[np.uint8]) -> float:
    """Return the share of records whose calls are right for every class.

    For calls of one class a record, this is the accuracy.
    """
    return int((calls == labels).all(axis=1).sum()) / len(labels)


def hamming_loss(calls: NDArray[np.uint8], labels: NDArray[np.uint8]) -> float:
    """Return the share of all n x K calls that are wrong."""
    return int((calls != labels).sum()) / labels.size
