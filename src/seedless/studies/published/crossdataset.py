"""Models of six leads on recordings of other devices and people, without training on any.

Asked about atrial fibrillation, the class all sets share. Where no set is named, simulated records
that no model has seen stand in, and are called so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from seedless.core.config import Config
from seedless.data.catalog import CATALOG
from seedless.studies.engine.figures import DOT, INK, MARK, style_axes
from seedless.studies.engine.grid import Grid, Point, make_grid
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study, seed_points, tabulate_arms
from seedless.studies.engine.table import Table, format_mean
from seedless.studies.protocols.external_datasets import (
    CLASS,
    ExternalDataset,
    ExternalScore,
    describe_dataset,
    evaluate_runs,
    list_external_datasets,
    read_score_of_class,
)
from seedless.studies.protocols.standardize import NOTE, is_standardized

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
Rows = dict[tuple[str, str], tuple[ExternalScore, ...]]


def make(options: StudyOptions) -> Grid:
    """Both models on the limb leads, paired by seed."""
    list_external_datasets(options)  # a set that is not there is said before any model is trained
    points: list[Point] = []
    for model in MODELS:

        def build(seed: int, model: str = model) -> Config:
            return options.ecg(
                model={"name": model},
                data={"leads": "6"},
                init=choose_init("mixed"),
                order={"name": "seeded", "seed": seed},
            )

        points += seed_points(model, options.count, build)
    return make_grid("crossdataset", ("model.name",), points)


def judge(results: Results) -> Rows:
    """Return what every finished run is worth on every set, its own test set first."""
    found: Rows = {}
    for model in MODELS:
        done = [one for one in results.of(model) if one.metrics is not None]
        own = [(one.run, one.metrics.get("test")) for one in done if one.metrics is not None]
        found[OWN, model] = tuple(
            read_score_of_class(test, f"{run}'s test set") for run, test in own
        )
        runs = tuple((one.run, one.weights or "") for one in done)
        for other in choose_form(results):
            found[other.name, model] = evaluate_runs(runs, other)
    names = dict.fromkeys(name for name, _ in found)
    return {(name, model): found[name, model] for name in names for model in MODELS}


def choose_form(results: Results) -> tuple[ExternalDataset, ...]:
    """Return the other sets, to be brought into the form the training records are in."""
    others = list_external_datasets(results.options)
    if results.options.simulated or not is_standardized(results.grid.points[0].config):
        return others
    return tuple(replace(other, standard=True) for other in others)


def tabulate(results: Results) -> list[Table]:
    """Return AUC and positive calls of each model on each set."""
    remarks = {other.name: other.kind.remark for other in list_external_datasets(results.options)}
    rows, values = [], []
    for (name, model), verdicts in judge(results).items():
        areas, calls = _areas(verdicts), _calls(verdicts)
        auc, rate = PUBLISHED.get((name, model), (None, None))
        first = verdicts[0] if verdicts else None
        rows.append(
            (
                f"{name} / {model}",
                "" if first is None else str(first.n),
                "" if first is None else str(first.positives),
                str(len(verdicts)),
                format_mean(areas),
                "" if auc is None else f"{auc:.3f}",
                "" if auc is None or not areas else f"{sum(areas) / len(areas) - auc:+.4f}",
                _show_calls(calls),
                "" if rate is None else f"{rate:.1%}",
                "" if rate is None or not calls else f"{sum(calls) / len(calls) - rate:+.1%}",
                remarks.get(name, "") or _find_part(name, first),
            )
        )
        values.append({"set": name, "model": model, "auc": areas, "calls": calls})
    columns = (
        *("", "windows", CLASS, "runs", f"{CLASS} AUC", "published", "difference"),
        *("positive calls", "published", "difference", "remark"),
    )
    notes = [
        "Nothing of a run changes: its weights, its scale and its thresholds, chosen by F1 on its "
        "own validation records. The published threshold is not known, and no interval was given.",
    ]
    there = [other for other in list_external_datasets(results.options) if other.path is not None]
    if there:
        told = " ".join(describe_dataset(other) for other in there)
        notes.append(f"{told} ± is over seeds; few people say little about others.")
    if results.options.simulated:
        notes.append("The models were trained on simulated ECGs: approximate on real ones.")
    elif results.options.data.endswith(".npz"):
        standard = all(other.standard for other in choose_form(results))
        plain = "Arrays of one's own have a scale of their own: others are in millivolts."
        notes.append(NOTE if standard else plain)
    stand_ins = [name for name in remarks if name in STAND_INS]
    if stand_ins:
        notes.append(
            f"{' and '.join(stand_ins)} stand in for AFDB, of which no record is here: other "
            "patients, devices and, where a remark says so, leads. AFDB's published values are "
            f"{_tell_published('afdb')}; nothing here is to be set beside them."
        )
    title = f"{CLASS} without training on the set, six leads"
    arms = tabulate_arms("Test macro AUC of the six-lead models", results)
    return [Table(title, columns, tuple(rows), tuple(notes), tuple(values)), arms]


def _show_calls(calls: Sequence[float]) -> str:
    """Return the mean share of positive calls, and the least and the most of a run."""
    if not calls:
        return "none"
    spread = f" ({min(calls):.0%} to {max(calls):.0%})" if len(calls) > 1 else ""
    return f"{sum(calls) / len(calls):.1%}{spread}"


def _tell_published(name: str) -> str:
    return " and ".join(f"{PUBLISHED[name, model][0]:.3f} ({model})" for model in MODELS)


def _find_part(name: str, verdict: ExternalScore | None) -> str:
    """Say where a published set is there in part alone."""
    entry = CATALOG.get(name.removesuffix("-original"))
    whole = None if entry is None else (entry.sizes or {}).get("test")
    if whole is None or verdict is None or verdict.n >= whole:
        return ""
    return f"approximate: {verdict.n:,} of {whole:,} records"


def _areas(verdicts: Sequence[ExternalScore]) -> list[float]:
    return [one.auc for one in verdicts if one.auc is not None]


def _calls(verdicts: Sequence[ExternalScore]) -> list[float]:
    return [one.calls for one in verdicts if one.calls is not None]


def draw(results: Results) -> Figure:
    """Return AUC and positive calls side by side, every run a point."""
    from matplotlib.figure import Figure

    found = judge(results)
    height = 1.5 + 0.34 * len(found)
    figure = Figure(figsize=(9.0, height), dpi=120, facecolor="white")
    left = figure.add_axes((0.3, 0.7 / height, 0.32, 1 - 1.15 / height))
    right = figure.add_axes((0.66, 0.7 / height, 0.32, 1 - 1.15 / height))
    keys = list(reversed(found))
    for place, key in enumerate(keys):
        known = PUBLISHED.get(key, (None, None))
        true = [one.positives / one.n for one in found[key][:1]]
        _draw_row(left, place, key[1], _areas(found[key]), known[0])
        _draw_row(right, place, key[1], _calls(found[key]), known[1])
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
)
