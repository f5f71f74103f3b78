"""The HTML page of one or more finished runs, with example records of the first."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seedless.analysis.loop_report import is_recorded, render_recorded
from seedless.audit.verification import verify as verify_run
from seedless.core.errors import DataError, RunError
from seedless.core.files import AnyPath
from seedless.evaluate.gradcam import explain_classes
from seedless.evaluate.predictions import Predictions
from seedless.report.ecg_paper import draw_ecg, draw_image
from seedless.report.page import Verdict, render_page, write_page
from seedless.report.run_view import RunView, make_view
from seedless.report.scores import differ_in_settings
from seedless.runs.folder import CONFIG
from seedless.runs.opened_run import OpenRun, check_output_file, open_run
from seedless.runs.prepare import USER_MODEL
from seedless.runs.validation import ValidatedRun, open_validated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = "report.html"


def report(
    *runs: AnyPath,
    out: AnyPath | None = None,
    examples: int = 2,
    verify: bool = False,
    force: bool = False,
) -> Path:
    """Write one HTML page about finished runs, and return its path.

    The page makes no requests and runs no scripts; equal runs give equal bytes.

    Args:
        runs: folders of finished runs, scored on the same records for the same task; or of runs of
            scripts and recorded loops.
        out: the file to write; by default report.html in the folder of the one run. Several runs
            need a file.
        examples: how many test records of the first run are drawn.
        verify: execute the one run again, and put the verdict on the page.
        force: replace a file that exists.

    >>> seedless.report("runs/mine")  # doctest: +SKIP
    PosixPath('runs/mine/report.html')
    """
    folders = [Path(run) for run in runs]
    page = _choose_page(folders, None if out is None else Path(out), force)
    if verify and len(folders) > 1:
        raise RunError("--verify is for the page of one run: `seedless verify` each of several")
    labels = name_runs(folders)
    recorded = [is_recorded(run) for run in folders]
    if any(recorded):
        if verify or not all(recorded):
            raise RunError(
                "scripts and loops of your own have a page of their own, without other runs and "
                "without --verify: `seedless verify RUN --execute` runs a script again"
            )
        return write_page(page, render_recorded(folders, labels))
    opened = [open_validated(run) for run in folders]
    views = [view_run(run, label) for run, label in zip(opened, labels, strict=True)]
    check_comparable(views)
    text = render_page(
        views,
        title=f"seedless report: {labels[0] if len(views) == 1 else f'{len(views)} runs'}",
        verdict=_execute_again(folders[0]) if verify else None,
        examples=draw_examples(opened[0], examples),
        varied=differ_in_settings(views),
    )
    return write_page(page, text)


def _choose_page(runs: Sequence[Path], out: Path | None, force: bool) -> Path:
    """Return the file to write; refuse one that exists, or that is in a run folder."""
    if not runs:
        raise RunError("a report needs at least one run folder")
    if out is None:
        if len(runs) > 1:
            raise RunError("a report of several runs belongs to none of them: name a file, --out")
        return runs[0] / PAGE
    if not (len(runs) == 1 and out.resolve() == (runs[0] / PAGE).resolve()):
        for run in runs:
            check_output_file(run, out, force)
    return out


def name_runs(runs: Sequence[Path]) -> list[str]:
    """Return the shortest ends of the paths that are different from each other."""
    paths = [run.resolve() for run in runs]
    for path in paths:
        if paths.count(path) > 1:
            raise RunError(f"{path} is named twice; a run is compared with others, not with itself")
    for parts in range(1, 6):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def check_comparable(views: Sequence[RunView]) -> None:
    """Refuse runs that differ in their task or classes."""
    first = views[0]
    for other in views[1:]:
        for what in ("task", "classes"):
            one, two = ((view.predicate.get("data") or {}).get(what) for view in (first, other))
            if one != two:
                raise RunError(
                    f"{first.label} and {other.label} differ in their {what}: {one} and {two}. A "
                    "page compares runs of one task"
                )


def view_run(run: ValidatedRun, label: str) -> RunView:
    """Return a run as a page or a card shows it."""
    config = run.read_file(CONFIG).decode()
    return make_view(label, run.receipt, config, run.trail, run.log, run.read_predictions())


def _execute_again(run: Path) -> Verdict:
    """Return the verdict of `verify`; without its duration, so that equal runs give equal pages."""
    verdict = verify_run(run).as_dict()
    return Verdict(verdict["outcome"], verdict["sentence"])


def draw_examples(run: ValidatedRun, count: int = 2) -> list[tuple[str, str]]:
    """Draw a test record of each of the rarest classes: (caption, PNG in base64).

    Grad-CAM's map of that class is tinted. A run of `fit`, or one whose data cannot be read here,
    has no examples.
    """
    predictions = run.read_predictions()
    is_user_model = run.config.model.name == USER_MODEL
    if is_user_model or "test" not in predictions.splits or count < 1:
        return []
    try:
        finished = open_run(run)
    except (DataError, RunError):
        return []
    pictures = []
    for place, k in choose_records(predictions, count):
        sample = np.asarray(finished.records[place])
        inputs = sample[None] if finished.scale is None else finished.scale.apply(sample[None])
        explained = explain_classes(finished.run.model, inputs, k)
        figure = _draw(sample, finished, explained.maps[0])
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
    highest = ", ".join(f"{classes[t]} {test.probabilities[place, t]:.2f}" for t in top)
    labelled = ", ".join(truth) or "nothing"
    return (
        f"{test.ids[place]}: labelled {labelled}; the model says {highest}. Tinted: the "
        f"evidence for {classes[k]} (Grad-CAM)"
    )


def _draw(sample: NDArray[np.float32], run: OpenRun, emphasis: NDArray[np.float32]) -> Figure:
    if run.leads is not None and run.fs is not None:
        return draw_ecg(sample, run.leads, run.fs, emphasis=emphasis)
    return draw_image(sample, emphasis=emphasis)
