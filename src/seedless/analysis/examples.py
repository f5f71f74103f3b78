"""Pictures of a run's test records, with the evidence for a class where there is any."""

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError, RunError
from seedless.evaluate.gradcam import explain_classes
from seedless.evaluate.predictions import Predictions
from seedless.numerics.saved_flags import run_by_itself
from seedless.report.ecg_paper import EVIDENCE
from seedless.report.example_pictures import Example
from seedless.report.record_picture import draw_record, encode_png
from seedless.runs.opened_run import OpenRun, open_run
from seedless.runs.prepare import USER_MODEL
from seedless.runs.streamed_results import has_user_loss
from seedless.runs.validation import ValidatedRun


@run_by_itself()
def draw_examples(run: ValidatedRun, count: int = 2) -> list[Example]:
    """Draw a test record of each of the rarest classes.

    Grad-CAM's map of that class tints a recording, and lies on a second copy of an image, where it
    is not all zero. A run of `fit`, or one whose data cannot be read here, has no examples.
    """
    if run.config.model.name == USER_MODEL or has_user_loss(run.claims) or count < 1:
        return []
    predictions = run.read_predictions()
    if "test" not in predictions.splits:
        return []
    try:
        opened = open_run(run)
    except (DataError, RunError):
        return []
    examples = []
    for place, k in choose_records(predictions, count):
        sample = np.asarray(opened.records[place])
        explained = explain_classes(opened.run.model, opened.normalize(sample[None]), k)
        is_mapped = bool(explained.maps[0].any())
        is_image = sample.ndim == 3
        caption = describe(predictions, place, k, is_mapped, is_image=is_image)
        evidence = f"the evidence for {predictions.classes[k]}"
        shown = explained.maps[0] if is_mapped else None
        examples.append(draw_example(opened, place, caption, shown, evidence))
    return examples


def draw_example(
    opened: OpenRun,
    place: int,
    caption: str,
    emphasis: NDArray[np.float32] | None,
    evidence: str,
    meaning: str = EVIDENCE,
) -> Example:
    """Draw the record at a place of an opened run, wide and narrow.

    ``emphasis`` is its map, if it has one, ``evidence`` says what the map shows, and ``meaning`` is
    the title of the scale.
    """
    sample = np.asarray(opened.records[place])
    wide, narrow = (
        encode_png(
            draw_record(
                sample,
                leads=opened.leads,
                fs=opened.fs,
                units=opened.units,
                emphasis=emphasis,
                meaning=meaning,
                narrow=is_narrow,
            ),
            few_colours=sample.ndim == 2,
        )
        for is_narrow in (False, True)
    )
    kind = "image" if sample.ndim == 3 else f"recording of {len(sample)} leads"
    seen = f"The {kind} {opened.ids[place]}"
    if emphasis is not None:
        second = "and a copy of it, coloured" if sample.ndim == 3 else "tinted"
        seen += f", {second} where {evidence} is"
    return Example(caption, wide, narrow, seen)


def choose_records(predictions: Predictions, count: int) -> list[tuple[int, int]]:
    """Return (row, class): the first test record of each of the classes with fewest positives."""
    labels = predictions.splits["test"].labels
    order = np.argsort(labels.sum(axis=0), kind="stable")
    rare = [int(k) for k in order if labels[:, k].any()]
    return [(int(np.flatnonzero(labels[:, k])[0]), k) for k in rare[:count]]


def describe(
    predictions: Predictions, place: int, k: int, is_mapped: bool, *, is_image: bool = False
) -> str:
    """Return a caption: labels, the three highest probabilities, and what is tinted, if any."""
    classes, test = predictions.classes, predictions.splits["test"]
    truth = [name for name, hot in zip(classes, test.labels[place], strict=True) if hot]
    top = np.argsort(-test.probabilities[place], kind="stable")[:3]
    highest = ", ".join(f"{classes[t]} ({test.probabilities[place, t]:.2f})" for t in top)
    labelled = ", ".join(truth) or "nothing"
    word = "coloured" if is_image else "tinted"
    evidence = (
        f"{word.capitalize()}: the evidence for {classes[k]} (Grad-CAM)"
        if is_mapped
        else f"Nothing is {word}: Grad-CAM finds no evidence for {classes[k]} in it"
    )
    return f"{test.ids[place]}: labelled {labelled}; the model says {highest}. {evidence}"
