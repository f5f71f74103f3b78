"""Decisions from probabilities, and how often they are right.

The decision for a class is 1 where its probability is at or above its threshold. The threshold is
the one with the highest F1 on the records it is chosen on; of several with equal F1, the lowest,
which is the most sensitive. It is always the probability of a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DEFAULT_THRESHOLD = 0.5  # where there is no threshold, because there was nothing to choose it on

Threshold = float | None


@dataclass(frozen=True)
class Counts:
    """Decisions compared with labels: true and false positives, false and true negatives.

    A rate is None where its denominator is zero, and all are None for a class without positives or
    without negatives.
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
        """Share of the positives that are decided as positive: TP / (TP + FN)."""
        return self._divide(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> float | None:
        """Share of the negatives that are decided as negative: TN / (TN + FP)."""
        return self._divide(self.tn, self.tn + self.fp)

    @property
    def precision(self) -> float | None:
        """Share of the positive decisions that are right: TP / (TP + FP)."""
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
    """Return the threshold of the highest F1, the lowest of equals.

    None without positives or without negatives.
    """
    positives = int(truth.sum())
    if positives in (0, len(truth)):
        return None
    values, reached, positive = count_by_threshold(scores, truth)
    # Quotients of small integers: equal F1 are equal floats, so a tie is seen as one.
    f1 = 2 * positive / (reached + positives)
    best = np.flatnonzero(f1 == f1.max())
    return float(values[best[-1]])


def choose_thresholds(
    probabilities: NDArray[np.float64], labels: NDArray[np.uint8]
) -> tuple[Threshold, ...]:
    """Return a threshold for each of the K classes of (n, K) probabilities and labels."""
    columns = range(labels.shape[1])
    return tuple(choose_threshold(probabilities[:, k], labels[:, k]) for k in columns)


def count_by_threshold(
    scores: NDArray[np.float64], truth: NDArray[np.uint8]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct scores, descending, and how many records and positives reach each."""
    values, inverse = np.unique(-scores, return_inverse=True)
    reached = np.bincount(inverse, minlength=len(values)).cumsum()
    positive = np.bincount(inverse[truth == 1], minlength=len(values)).cumsum()
    return -values, reached, positive


def apply_thresholds(
    probabilities: NDArray[np.float64], thresholds: Sequence[Threshold]
) -> NDArray[np.uint8]:
    """Return (n, K) decisions of 0 and 1; a class without a threshold is decided at 0.5."""
    limits = np.array([DEFAULT_THRESHOLD if value is None else value for value in thresholds])
    return (probabilities >= limits).astype(np.uint8)


def pick_most_probable(probabilities: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return (n, K) decisions with a 1 for the most probable class alone, the first of equals."""
    decisions = np.zeros(probabilities.shape, dtype=np.uint8)
    decisions[np.arange(len(decisions)), probabilities.argmax(axis=1)] = 1
    return decisions


def count_outcomes(decisions: NDArray[np.uint8], truth: NDArray[np.uint8]) -> Counts:
    """Return the counts of decisions (n,) compared with labels (n,)."""
    tp = int((decisions & truth).sum())
    fp, fn = int(decisions.sum()) - tp, int(truth.sum()) - tp
    return Counts(tp, fp, fn, len(truth) - tp - fp - fn)


def exact_match(decisions: NDArray[np.uint8], labels: NDArray[np.uint8]) -> float:
    """Return the share of records whose decisions are right for every class.

    With one class for each record, this is the accuracy.
    """
    return int((decisions == labels).all(axis=1).sum()) / len(labels)


def hamming_loss(decisions: NDArray[np.uint8], labels: NDArray[np.uint8]) -> float:
    """Return the share of all n x K decisions that are wrong."""
    return int((decisions != labels).sum()) / labels.size
