"""Churn between finished runs: `evaluate/churn.py` compares, here the runs are opened."""

import os
from pathlib import Path

from seedless.core.errors import DataError
from seedless.core.files import AnyPath, match_paths
from seedless.evaluate.churn import Churn, compare_decisions
from seedless.evaluate.predictions import FILE, Predictions, read_predictions
from seedless.proof.receipt import FILE as RECEIPT
from seedless.runs.validation import open_validated


def churn(*runs: AnyPath, split: str = "test", thresholds: str = "own") -> Churn:
    """Return which records two or more finished runs decide differently.

    Args:
        runs: the run folders, patterns such as "runs/a-*", or files of predictions; over the same
            records and classes.
        split: "test", "validation" or "train".
        thresholds: "own" for the thresholds that each run chose on its validation split, or "half"
            for 0.5 everywhere. A multi-class task has none: the most probable class is taken.

    >>> seedless.churn("runs/a", "runs/b").exact.rate  # doctest: +SKIP
    0.042
    """
    paths = [path for run in runs for path in match_paths(run) or [Path(run)]]
    if len({path.resolve() for path in paths}) < len(paths):
        raise DataError("expected different runs, got one of them twice")
    predictions = {os.fspath(path): open_predictions(path) for path in paths}
    if thresholds == "half" and any(one.task == "multi-class" for one in predictions.values()):
        raise DataError(
            "half, or 0.5 everywhere, is for multi-label tasks: here the decision is the most "
            "probable class"
        )
    return compare_decisions(predictions, split, thresholds)


def open_predictions(place: AnyPath) -> Predictions:
    """Return the predictions of a finished run, or of a file that belongs to none."""
    path = Path(place)
    if path.name == FILE and (path.parent / RECEIPT).exists():
        path = path.parent
    return read_predictions(path) if path.is_file() else open_validated(path).read_predictions()
