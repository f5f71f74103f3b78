"""Models of six leads on recordings of other devices and people, without training on any.

Scored for atrial fibrillation, the class that all datasets have. Without --other, simulated records
that no model was trained on take the place of a dataset, and are named as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seedless.data.catalog import CATALOG
from seedless.studies.engine.arm_tables import tabulate_arms
from seedless.studies.engine.figures import DOT, INK, MARK, make_axes, style_axes
from seedless.studies.engine.grid import Grid, Point, make_grid, offset_points
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table, format_mean
from seedless.studies.shared.external_datasets import (
    CLASS,
    STANDARDIZED_NOTE,
    ExternalDataset,
    ExternalScore,
    describe_dataset,
    evaluate_runs,
    is_standardized,
    list_external_datasets,
    read_score_of_class,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODELS = ("baseline", "conformer")
OWN = "its own test set"
STAND_INS = ("mitdb", "cpsc2021")
# AUC and share of positive calls, by set and model.
PUBLISHED: dict[tuple[str, str], tuple[float, float | None]] = {
    ("afdb", "baseline"): (0.952, 0.341),
    ("afdb", "conformer"): (0.932, 0.229),
    ("cpsc2018", "baseline"): (0.979, None),
    ("cpsc2018", "conformer"): (0.979, None),
    ("cpsc2018-original", "baseline"): (0.979, None),
    ("cpsc2018-original", "conformer"): (0.979, None),
    ("chapman", "baseline"): (0.991, None),
    ("chapman", "conformer"): (0.984, None),
}
Key = tuple[str, str]  # dataset, model


@dataclass(frozen=True)
class Measured:
    """The external datasets with a description of each, and the scores of every model on them."""

    datasets: tuple[ExternalDataset, ...]
    descriptions: tuple[str, ...]
    scores: dict[Key, tuple[ExternalScore, ...]]


def make(options: StudyOptions) -> Grid:
    """Return both models on the limb leads in golden order, each with the head it declares.

    This is the published protocol; replicates take other epochs' permutations of the order.
    """
    list_external_datasets(options)  # a missing dataset is an error before any model is trained

    points: list[Point] = []
    for model in MODELS:
        config = options.ecg(
            model={"name": model},
            data={"leads": "6"},
            init=choose_init("mixed"),
            order={"name": "golden"},
        )
        points += offset_points(model, options.count, config)
    return make_grid("crossdataset", ("model.name", "init.heads"), points)


def measure(results: Results) -> Measured:
    """Return the scores of every finished run on every dataset, on its own test set first."""
    datasets = list_external_datasets(results.options)
    if not results.options.simulated and is_standardized(results.grid.points[0].config):
        datasets = tuple(replace(dataset, standardized=True) for dataset in datasets)
    scores: dict[Key, tuple[ExternalScore, ...]] = {}
    for model in MODELS:
        tests = [(one.run, one.metrics) for one in results.outcomes_of(model)]
        scores[OWN, model] = tuple(
            read_score_of_class(metrics.get("test"), f"the test set of {run}")
            for run, metrics in tests
            if metrics is not None
        )
    for dataset in datasets:
        for model in MODELS:
            runs = [one.run for one in results.outcomes_of(model) if one.ok]
            scores[dataset.name, model] = evaluate_runs(runs, dataset)
    real = [dataset for dataset in datasets if dataset.path is not None]
    return Measured(datasets, tuple(map(describe_dataset, real)), scores)


def tabulate(results: Results) -> list[Table]:
    """Return AUC and positive calls of each model on each set."""
    measured: Measured = results.measured
    remarks = {dataset.name: dataset.source.remark for dataset in measured.datasets}
    rows, values = [], []
    for (name, model), scores in measured.scores.items():
        areas, calls = list_areas(scores), list_calls(scores)
        auc, rate = PUBLISHED.get((name, model), (None, None))
        same = results.options.as_published
        first = scores[0] if scores else None
        rows.append(
            (
                f"{name} / {model}",
                "" if first is None else str(first.n),
                "" if first is None else str(first.positives),
                str(len(scores)),
                format_mean(areas),
                "" if auc is None else f"{auc:.3f}",
                f"{sum(areas) / len(areas) - auc:+.4f}" if same and auc and areas else "",
                _format_calls(calls),
                "" if rate is None else f"{rate:.1%}",
                f"{sum(calls) / len(calls) - rate:+.1%}" if same and rate and calls else "",
                remarks.get(name, "") or _describe_part(name, first),
            )
        )
        values.append({"set": name, "model": model, "auc": areas, "calls": calls})
    columns = (
        *("", "windows", CLASS, "runs", f"{CLASS} AUC", "published", "difference"),
        *("positive calls", "published", "difference", "remark"),
    )
    title = f"{CLASS} without training on the set, six leads"
    notes = tuple(_list_notes(results, [name for name in remarks if name in STAND_INS]))
    arms = tabulate_arms("Test macro AUC of the six-lead models", results)
    return [Table(title, columns, tuple(rows), notes, tuple(values)), arms]


def _list_notes(results: Results, stand_ins: Sequence[str]) -> list[str]:
    """Return the notes below the table: what the scores rest on, and what they do not show."""
    measured: Measured = results.measured
    notes = [
        "Nothing of a run changes: its weights, its scale and its thresholds, chosen by F1 on its "
        "own validation records. The published threshold is not known, and no interval was given.",
    ]
    if measured.descriptions:
        text = " ".join(measured.descriptions)
        notes.append(f"{text} ± is over offsets of the order; few people say little about others.")
    if results.options.simulated:
        notes.append("The models were trained on simulated ECGs: approximate on real ones.")
    elif results.options.data.endswith(".npz"):
        standardized = all(dataset.standardized for dataset in measured.datasets)
        plain = "Arrays of one's own have a scale of their own: others are in millivolts."
        notes.append(STANDARDIZED_NOTE if standardized else plain)
    if stand_ins:
        notes.append(
            f"{' and '.join(stand_ins)} stand in for AFDB, of which no record is here: other "
            "patients, devices and, where a remark says so, leads. AFDB's published values are "
            f"{_format_published('afdb')}; nothing here is to be set beside them."
        )
    return notes


def _format_calls(calls: Sequence[float]) -> str:
    """Return the mean share of positive calls, with the smallest and the largest of a run."""
    if not calls:
        return "none"
    spread = f" ({min(calls):.0%} to {max(calls):.0%})" if len(calls) > 1 else ""
    return f"{sum(calls) / len(calls):.1%}{spread}"


def _format_published(name: str) -> str:
    return " and ".join(f"{PUBLISHED[name, model][0]:.3f} ({model})" for model in MODELS)


def _describe_part(name: str, score: ExternalScore | None) -> str:
    """Return a remark where only a part of a published dataset is there."""
    entry = CATALOG.get(name.removesuffix("-original"))
    whole = None if entry is None else (entry.sizes or {}).get("test")
    if whole is None or score is None or score.n >= whole:
        return ""
    return f"approximate: {score.n:,} of {whole:,} records"


def list_areas(scores: Sequence[ExternalScore]) -> list[float]:
    """Return the AUCs that are defined."""
    return [one.auc for one in scores if one.auc is not None]


def list_calls(scores: Sequence[ExternalScore]) -> list[float]:
    """Return the shares of positive calls that are defined."""
    return [one.calls for one in scores if one.calls is not None]


def draw(results: Results) -> Figure:
    """Return AUC and positive calls side by side, every run a point."""
    scores: dict[Key, tuple[ExternalScore, ...]] = results.measured.scores
    height = 1.5 + 0.34 * len(scores)
    figure, left = make_axes(9.0, height, (0.3, 0.7 / height, 0.32, 1 - 1.15 / height))
    right = figure.add_axes((0.66, 0.7 / height, 0.32, 1 - 1.15 / height))
    keys = list(reversed(scores))
    for place, key in enumerate(keys):
        known = PUBLISHED.get(key, (None, None))
        true = [one.positives / one.n for one in scores[key][:1]]
        _draw_row(left, place, key[1], list_areas(scores[key]), known[0])
        _draw_row(right, place, key[1], list_calls(scores[key]), known[1])
        right.plot(true, [place] * len(true), "|", color=INK, markersize=11)
    for axes in (left, right):
        axes.set_yticks(range(len(keys)))
        axes.set_ylim(-0.6, len(keys) - 0.4)
    left.set_yticklabels([f"{name} / {model}" for name, model in keys], fontsize=8)
    right.set_yticklabels([])
    published = "◇ published, " if any(key in PUBLISHED for key in keys) else ""
    style_axes(figure, left, f"{CLASS} AUC", f"{published}| share that has it")
    style_axes(figure, right, f"share called {CLASS}")
    return figure


def _draw_row(
    axes: Axes, place: int, model: str, values: Sequence[float], known: float | None
) -> None:
    colour = MARK if model == "conformer" else DOT
    axes.plot(values, [place] * len(values), "o", color=colour, alpha=0.6, markeredgewidth=0)
    if known is not None:
        axes.plot(known, place, "D", markerfacecolor="none", color=INK, markersize=7)


STUDY = Study(
    "crossdataset",
    "Do models of six leads know atrial fibrillation in recordings they were never trained on?",
    make,
    tabulate,
    draw,
    ("other",),
    measure,
)
