"""Example records of a run's test set, drawn with what the model says and what it rests on."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError, RunError
from seedless.evaluate.gradcam import explain_classes
from seedless.evaluate.predictions import Predictions, read_predictions
from seedless.report.paper import draw_ecg
from seedless.report.picture import draw_image
from seedless.runs.folder import read_config
from seedless.runs.opening import OpenRun, open_run
from seedless.runs.prepare import USER_MODEL

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_examples(run: Path, count: int = 2) -> list[tuple[str, str]]:
    """Draw a test record of each of the rarest classes: (caption, PNG in base64).

    Tinted is what the probability of that class rests on, by Grad-CAM. A run of `fit`, or one
    whose data are not here as they were, has no examples.
    """
    predictions = read_predictions(run)
    given = read_config(run).model.name == USER_MODEL
    if given or "test" not in predictions.splits or count < 1:
        return []
    try:
        finished = open_run(run)
    except (DataError, RunError):
        return []
    pictures = []
    for place, k in choose_records(predictions, count):
        sample = np.asarray(finished.records[place])
        wanted = sample[None] if finished.scale is None else finished.scale.apply(sample[None])
        found = explain_classes(finished.run.model, wanted, k)
        figure = _draw(sample, finished, found.maps[0])
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
        picture = base64.b64encode(buffer.getvalue()).decode()
        pictures.append((describe(predictions, place, k), picture))
    return pictures


def choose_records(predictions: Predictions, count: int) -> list[tuple[int, int]]:
    """Return (row, class): the first test record of each of the classes with fewest positives."""
    labels = predictions.splits["test"].labels
    order = np.argsort(labels.sum(axis=0), kind="stable")
    rare = [int(k) for k in order if labels[:, k].any()]
    return [(int(np.flatnonzero(labels[:, k])[0]), k) for k in rare[:count]]


def describe(predictions: Predictions, place: int, k: int) -> str:
    """Return a caption: labels, the three highest probabilities, and what is tinted."""
    classes, test = predictions.classes, predictions.splits["test"]
    truth = [name for name, hot in zip(classes, test.labels[place], strict=True) if hot]
    top = np.argsort(-test.probabilities[place], kind="stable")[:3]
    said = ", ".join(f"{classes[t]} {test.probabilities[place, t]:.2f}" for t in top)
    labelled = ", ".join(truth) or "nothing"
    return (
        f"{test.ids[place]}: labelled {labelled}; the model says {said}. Tinted: what "
        f"{classes[k]} rests on (Grad-CAM)"
    )


def _draw(sample: NDArray[np.float32], run: OpenRun, emphasis: NDArray[np.float32]) -> Figure:
    if run.leads is not None and run.fs is not None:
        return draw_ecg(sample, run.leads, run.fs, emphasis=emphasis)
    return draw_image(sample, emphasis=emphasis)
