"""Area under the ROC curve (AUC): the probability that a positive scores above a negative."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError

FEW_POSITIVES = 10  # of a class with fewer, one record moves the AUC by whole points


def area_under_curve(scores: NDArray[np.float64], truth: NDArray[np.uint8]) -> float | None:
    """Return the AUC of scores (n,) for labels (n,) of 0 and 1; a tie counts half.

    With R the sum of the positives' mid-ranks, P positives and N negatives, it is
    (R - P (P + 1) / 2) / (P N) (Mann and Whitney, 1947). None without positives or negatives.

    >>> area_under_curve(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1], np.uint8))
    0.75
    """
    if np.isnan(scores).any():
        raise DataError(f"NaN has no rank: {int(np.isnan(scores).sum())} of the scores are NaN")
    positives = int(truth.sum())
    negatives = len(truth) - positives
    if positives == 0 or negatives == 0:
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    mid_ranks = np.cumsum(counts) - (counts - 1) / 2
    # Mid-ranks are multiples of one half below 2^52, so this sum is exact in any order.
    rank_sum = float(mid_ranks[inverse][truth == 1].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def macro_auc(probabilities: NDArray[np.float64], labels: NDArray[np.uint8]) -> float | None:
    """Return the mean AUC over the classes that have both positives and negatives."""
    areas = [
        area
        for k in range(labels.shape[1])
        if (area := area_under_curve(probabilities[:, k], labels[:, k])) is not None
    ]
    return float(np.mean(areas)) if areas else None


def score_classes(
    probabilities: NDArray[np.float64], labels: NDArray[np.uint8], classes: Sequence[str]
) -> dict[str, Any]:
    """Return macro AUC, and for each class its AUC and number of positives, as plain values."""
    return {
        "n": len(labels),
        "macro_auc": macro_auc(probabilities, labels),
        "classes": {
            name: {
                "auc": area_under_curve(probabilities[:, k], labels[:, k]),
                "positives": int(labels[:, k].sum()),
            }
            for k, name in enumerate(classes)
        },
    }
