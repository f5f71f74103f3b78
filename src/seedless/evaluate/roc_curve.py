"""ROC curves, reduced to the points at which they turn."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.evaluate.decisions import count_by_threshold


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of an ROC curve, and the threshold of each.

    ``x`` is 1 - specificity and ``y`` sensitivity, from (0, 0) at an infinite threshold to (1, 1).
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    thresholds: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.x)


def draw_roc(scores: NDArray[np.float64], truth: NDArray[np.uint8]) -> Curve | None:
    """Return the ROC curve of scores (n,) and labels (n,); None without positives or negatives.

    A point on the straight line between its neighbours is left out: the curve and the area under
    it stay exactly the same.
    """
    positives = int(truth.sum())
    negatives = len(truth) - positives
    if positives == 0 or negatives == 0:
        return None
    values, reached, positive = count_by_threshold(scores, truth)
    tp, fp = np.concatenate([[0], positive]), np.concatenate([[0], reached - positive])
    keep = _find_corners(fp, tp)
    limits = np.concatenate([[np.inf], values])
    return Curve(fp[keep] / negatives, tp[keep] / positives, limits[keep])


def _find_corners(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which points of a path are not on the line between their neighbours.

    Coordinates are integers, so that no rounding makes or hides a corner.
    """
    dx, dy = np.diff(x), np.diff(y)
    turns = dx[:-1] * dy[1:] != dy[:-1] * dx[1:]
    return np.concatenate([[True], turns, [True]])
