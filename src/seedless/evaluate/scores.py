"""Everything a run's `metrics.json` says of a split, from its predictions alone.

Whoever holds the predictions can compute it again, to the bit: validation does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seedless.evaluate.bootstrap import bootstrap_areas
from seedless.evaluate.calibration import calibration_error, mean_calibration_error
from seedless.evaluate.decisions import (
    Threshold,
    call,
    call_one,
    choose_thresholds,
    count,
    exact_match,
    hamming_loss,
)
from seedless.evaluate.intervals import Interval, delong_interval
from seedless.evaluate.predictions import Predictions, Scored
from seedless.evaluate.ranking import score_classes
from seedless.evaluate.representation import effective_rank

RESAMPLES = 400  # enough for two decimals of an interval, and not felt at the end of a run

# Where thresholds are chosen: on validation, or where a run has none on what it was trained on.
# Never on test.
SOURCES = ("validation", "train")


def score_predictions(
    predictions: Predictions, resamples: int = RESAMPLES
) -> dict[str, dict[str, Any]]:
    """Return the scores of each split, as plain values."""
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
    scored: Scored,
    classes: Sequence[str],
    task: str,
    thresholds: Sequence[Threshold],
    source: str | None,
    resamples: int = RESAMPLES,
) -> dict[str, Any]:
    """Return the scores of one split; ``source`` names where the thresholds were chosen."""
    probabilities, labels = scored.probabilities, scored.labels
    found = score_classes(probabilities, labels, classes)
    calls = call(probabilities, thresholds)
    for k, name in enumerate(classes):
        scores, truth = probabilities[:, k], labels[:, k]
        counts = count(calls[:, k], truth).as_dict()
        if thresholds[k] is None:
            counts = dict.fromkeys(counts)
        found["classes"][name] |= {
            "auc_interval": _list(delong_interval(scores, truth)),
            "ece": calibration_error(scores, truth),
            "threshold": thresholds[k],
            **counts,
        }
    found |= {
        "macro_auc_interval": _list(bootstrap_areas(probabilities, labels, resamples).macro),
        "ece": mean_calibration_error(probabilities, labels),
        "effective_rank": None if scored.features is None else effective_rank(scored.features),
        "thresholds_from": source,
    }
    if task == "multi-class":
        return {**found, "accuracy": exact_match(call_one(probabilities), labels)}
    return {
        **found,
        "exact_match": exact_match(calls, labels),
        "hamming": hamming_loss(calls, labels),
    }


def _list(interval: Interval | None) -> list[float] | None:
    return None if interval is None else interval.as_list()
