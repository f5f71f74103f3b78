"""The values of the section on answers: accuracy, kappa and the confusion matrix of one run."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.evaluate.agreement import are_grades, compute_kappa, count_confusions
from seedless.evaluate.intervals import wilson_interval
from seedless.report.run_view import RunView

MAX_MATRIX_CLASSES = 16  # a larger matrix is no picture: its most frequent confusions are listed
MAX_LISTED_CONFUSIONS = 20


def show_answers(run: RunView) -> dict[str, Any] | None:
    """Return the answers of a multi-class run on its test records; None for any other run."""
    predictions = run.predictions
    if predictions is None or predictions.task != "multi-class":
        return None
    split = next((name for name in ("test", "validation") if name in predictions.splits), None)
    if split is None:
        return None
    scored = predictions.splits[split]
    counts = count_confusions(scored.probabilities, scored.labels)
    right, total = int(counts.trace()), int(counts.sum())
    interval = wilson_interval(right, total)
    kappa, weighted = compute_kappa(counts), compute_kappa(counts, weighted=True)
    classes = predictions.classes
    return {
        "split": split,
        "right": right,
        "n": total,
        "accuracy": f"{right / total:.3f}",
        "interval": "" if interval is None else f"[{interval.low:.3f}, {interval.high:.3f}]",
        "largest": f"{counts.sum(axis=1).max() / total:.3f}",
        "kappa": "not defined" if kappa is None else f"{kappa:.3f}",
        "weighted": f"{weighted:.3f}" if weighted is not None and are_grades(classes) else None,
        "classes": classes,
        "rows": _make_rows(counts, classes) if len(classes) <= MAX_MATRIX_CLASSES else [],
        "confused": _list_confused(counts, classes) if len(classes) > MAX_MATRIX_CLASSES else [],
    }


def _make_rows(counts: NDArray[np.int64], classes: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return a row for each class: how many of its records get which answer."""
    rows = []
    for k, name in enumerate(classes):
        total = int(counts[k].sum())
        cells = [
            {
                "count": int(count),
                "share": f"{count / total:.3f}" if total else "0",
                "right": answer == k,
            }
            for answer, count in enumerate(counts[k])
        ]
        rows.append({"name": name, "total": total, "cells": cells})
    return rows


def _list_confused(counts: NDArray[np.int64], classes: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the most frequent wrong answers."""
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_LISTED_CONFUSIONS]
    places = [divmod(int(place), len(classes)) for place in order]
    return [
        {
            "label": classes[row],
            "answer": classes[column],
            "count": int(wrong[row, column]),
            "of": int(counts[row].sum()),
        }
        for row, column in places
        if wrong[row, column]
    ]
