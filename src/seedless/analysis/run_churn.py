"""Churn between finished runs: `evaluate/churn.py` compares, here the runs are opened."""

import os
from pathlib import Path

from seedless.core.errors import DataError
from seedless.core.files import AnyPath
from seedless.evaluate.churn import Churn, compare_decisions
from seedless.evaluate.predictions import FILE, Predictions, read_predictions
from seedless.proof.receipt import FILE as RECEIPT
from seedless.runs.validation import open_validated


def churn(*runs: AnyPath, split: str = "test", thresholds: str = "own") -> Churn:
    """Return which records two or more finished runs decide differently.

    Args:
        runs: the run folders, or files of predictions; over the same records and classes.
        split: "test", "validation" or "train".
        thresholds: "own" for the thresholds that each run chose on its validation split, or "half"
            for 0.5 everywhere.

    >>> seedless.churn("runs/a", "runs/b").exact.rate  # doctest: +SKIP
    0.042
    """
    if len({Path(run).resolve() for run in runs}) < len(runs):
        raise DataError("expected different runs, got one of them twice")
    predictions = {os.fspath(run): open_predictions(run) for run in runs}
    if thresholds == "half" and any(one.task == "multi-class" for one in predictions.values()):
        raise DataError(
            "--half is for multi-label tasks: here the decision is the most probable class"
        )
    return compare_decisions(predictions, split, thresholds)


def open_predictions(place: AnyPath) -> Predictions:
    """Return the predictions of a finished run, or of a file that belongs to none."""
    path = Path(place)
    if path.name == FILE and (path.parent / RECEIPT).exists():
        path = path.parent
    return read_predictions(path) if path.is_file() else open_validated(path).read_predictions()
