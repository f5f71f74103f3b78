"""ROC and precision-recall curves, with the points that make a corner and no others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.evaluate.decisions import count_by_threshold


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of a curve, and the threshold each is reached at.

    For ROC, ``x`` is 1 - specificity and ``y`` sensitivity, from (0, 0) at an infinite threshold to
    (1, 1). For precision-recall, ``x`` is sensitivity (recall) and ``y`` precision; precision
    without a call is undefined, so the curve begins at its first call.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    thresholds: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.x)


def draw_roc(scores: NDArray[np.float64], truth: NDArray[np.uint8]) -> Curve | None:
    """Return the ROC curve; None without both kinds.

    A point on the straight line between its neighbours is left out: the curve and the area under
    it stay the same, exactly.
    """
    values, tp, fp, positives, negatives = _count(scores, truth)
    if positives == 0 or negatives == 0:
        return None
    tp, fp = np.concatenate([[0], tp]), np.concatenate([[0], fp])
    keep = _find_corners(fp, tp)
    limits = np.concatenate([[np.inf], values])
    return Curve(fp[keep] / negatives, tp[keep] / positives, limits[keep])


def _count(
    scores: NDArray[np.float64], truth: NDArray[np.uint8]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], int, int]:
    values, called, found = count_by_threshold(scores, truth)
    positives = int(truth.sum())
    return values, found, called - found, positives, len(truth) - positives


def _find_corners(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say which points of a path are not on the line between the points beside them.

    Steps are integers, so that no rounding makes or hides a corner; a step is never (0, 0).
    """
    dx, dy = np.diff(x), np.diff(y)
    turns = dx[:-1] * dy[1:] != dy[:-1] * dx[1:]
    return np.concatenate([[True], turns, [True]])
