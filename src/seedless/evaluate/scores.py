"""All scores of a split in `metrics.json`, computed from the predictions alone.

They can be computed again to the bit from the predictions, and validation of a run does so.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError
from seedless.evaluate.auc import score_classes
from seedless.evaluate.bootstrap import bootstrap_areas
from seedless.evaluate.calibration import calibration_error, mean_calibration_error
from seedless.evaluate.decisions import (
    Threshold,
    apply_thresholds,
    choose_thresholds,
    count_outcomes,
    exact_match,
    hamming_loss,
    pick_most_probable,
)
from seedless.evaluate.intervals import Interval, delong_interval
from seedless.evaluate.predictions import Predictions, SplitPredictions

RANK_DIGITS = 4  # decimals of an effective rank
RESAMPLES = 400  # enough for two decimals of an interval, in little time
MIN_RESAMPLES = 40  # the fewest that an interval needs
FULL_SCORES = 1_500_000  # records times classes of a split up to which all resamples are made

# Splits on which thresholds are chosen, the preferred one first; never the test split.
SOURCES = ("validation", "train")


def choose_resamples(scores: int) -> int:
    """Return how many resamples an interval of a split gets that has so many scores.

    The time to validate a run is bounded, and the interval of so large a split is narrow.

    >>> choose_resamples(1_500_000), choose_resamples(3_000_000), choose_resamples(10**9)
    (400, 200, 40)
    """
    return max(MIN_RESAMPLES, min(RESAMPLES, RESAMPLES * FULL_SCORES // max(scores, 1)))


def score_predictions(
    predictions: Predictions, resamples: int | None = None
) -> dict[str, dict[str, Any]]:
    """Return the scores of each split, as plain values.

    ``resamples``: for the interval of the macro AUC; by default `choose_resamples`.
    """
    source, thresholds = find_thresholds(predictions)
    return {
        name: score_split(
            scored, predictions.classes, predictions.task, thresholds, source, resamples
        )
        for name, scored in predictions.splits.items()
    }


def find_thresholds(predictions: Predictions) -> tuple[str | None, tuple[Threshold, ...]]:
    """Return the split thresholds are chosen on, and one for each class."""
    for source in SOURCES:
        if source in predictions.splits:
            scored = predictions.splits[source]
            return source, choose_thresholds(scored.probabilities, scored.labels)
    return None, (None,) * len(predictions.classes)


def score_split(
    scored: SplitPredictions,
    classes: Sequence[str],
    task: str,
    thresholds: Sequence[Threshold],
    source: str | None,
    resamples: int | None = None,
) -> dict[str, Any]:
    """Return the scores of one split; ``source`` names where the thresholds were chosen."""
    probabilities, labels = scored.probabilities, scored.labels
    resamples = choose_resamples(labels.size) if resamples is None else resamples
    scores = score_classes(probabilities, labels, classes)
    decisions = apply_thresholds(probabilities, thresholds)
    for k, name in enumerate(classes):
        column, truth = probabilities[:, k], labels[:, k]
        counts = count_outcomes(decisions[:, k], truth).as_dict()
        if thresholds[k] is None:
            counts = dict.fromkeys(counts)
        scores["classes"][name] |= {
            "auc_interval": _list(delong_interval(column, truth)),
            "ece": calibration_error(column, truth),
            "threshold": thresholds[k],
            **counts,
        }
    scores |= {
        "macro_auc_interval": _list(bootstrap_areas(probabilities, labels, resamples).macro),
        "ece": mean_calibration_error(probabilities, labels),
        "effective_rank": None if scored.features is None else effective_rank(scored.features),
        "thresholds_from": source,
    }
    if task == "multi-class":
        return {**scores, "accuracy": exact_match(pick_most_probable(probabilities), labels)}
    return {
        **scores,
        "exact_match": exact_match(decisions, labels),
        "hamming": hamming_loss(decisions, labels),
    }


def effective_rank(features: NDArray[np.float32]) -> float | None:
    """Return the effective rank of features (n, D): exp(H), from 1 to min(n, D).

    H is the entropy of the singular values divided by their sum (Roy and Vetterli, 2007). The
    matrix is taken as the head receives it, not centred, as in the definition. None where all
    features are zero.

    The singular values come from LAPACK, whose last bits depend on processor and threads; the
    result is rounded to four decimals, some seven orders of magnitude above them.
    """
    if features.ndim != 2 or features.size == 0:
        raise DataError(f"expected features (n, D), got shape {features.shape}")
    if not np.isfinite(features).all():
        raise DataError("expected finite features, found NaN or infinity")
    values = np.linalg.svd(features.astype(np.float64), compute_uv=False).tolist()
    total = math.fsum(values)
    if total == 0:
        return None
    shares = [value / total for value in values if value > 0]
    entropy = -math.fsum(share * math.log(share) for share in shares)
    return round(math.exp(entropy), RANK_DIGITS)


def _list(interval: Interval | None) -> list[float] | None:
    return None if interval is None else interval.as_list()
