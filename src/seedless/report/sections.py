"""The values of each section of the page, computed from runs for the templates."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from seedless.core.config import flatten
from seedless.core.dataset import NEGATIVE_LOSS
from seedless.core.digests import get_hex
from seedless.evaluate.auc import FEW_POSITIVES
from seedless.report.facts import as_number, find_scores, has_own_loss
from seedless.report.learning_curves import (
    Series,
    choose_roles,
    draw_curves,
    draw_fingerprint,
)
from seedless.report.render import mark_safe
from seedless.report.run_view import (
    RunView,
    TrailEntry,
    as_mapping,
    find_difference,
    same_bits,
)

RATES = ("sensitivity", "specificity", "precision", "f1")


def show_run(run: RunView, first: RunView) -> dict[str, Any]:
    """Return a run's name, hashes and fingerprint, and whether its bits are the first run's."""
    hashes = run.hashes
    return {
        "label": run.label,
        "hashes": hashes,
        "fingerprint": mark_safe(draw_fingerprint(hashes[0][1])) if hashes else "",
        "same": None if run is first else same_bits(first, run),
    }


def show_control(control: RunView, first: RunView) -> dict[str, Any]:
    """Return a control run: the bit flipped, the first epoch that differs, and its score."""
    pairs = list(zip(first.trail, control.trail, strict=False))
    setting = control.settings.get("control") or {}
    flipped = str(setting.get("flip_bit") or "").rsplit(":", 2)
    return {
        **show_run(control, first),
        "flipped": flipped if len(flipped) == 3 else None,
        "step": setting.get("at_step"),
        "epoch": find_difference(first, control),
        "differing": sum(a.state != b.state for a, b in pairs),
        "entries": len(pairs),
        "scores": (_selected(first).get("score"), _selected(control).get("score")),
    }


def _selected(run: RunView) -> Mapping[str, Any]:
    return run.metrics.get("selected") or run.predicate.get("selected") or {}


def _list_own_loss(run: RunView) -> list[tuple[Any, str]]:
    """Return (value, name) of the loss of a run with a loss of its own; none of another."""
    split, scores = find_scores(run)
    name = f"loss, {split}"
    return [(as_number(scores.get("loss")), name)] if has_own_loss(run) else []


def list_facts(run: RunView) -> list[tuple[str, str]]:
    """Return the most important numbers of a run as (number, what it counts)."""
    records = (run.predicate.get("data") or {}).get("records") or {}
    test = run.metrics.get("test") or {}
    last, epoch = run.trail[-1], _selected(run).get("epoch")
    model = run.predicate.get("model") or {}
    # Multi-label records without a label are counted here, but not trained on; how many they are
    # the receipt does not say.
    ordering = as_mapping(run.settings.get("order"))
    is_multi_label = (run.predicate.get("data") or {}).get("task") == "multi-label"
    some_left_out = is_multi_label and not ordering.get("keep_unlabelled")
    numbers: list[tuple[Any, str]] = [
        (model.get("parameters"), "parameters"),
        (records.get("train"), "training records" + (", labelled or not" if some_left_out else "")),
        (last.epoch, "epochs" if epoch is None else f"epochs, number {epoch} selected"),
        (last.step, "steps"),
        (test.get("macro_auc"), "macro AUC, test"),
        *_list_own_loss(run),
    ]
    return [
        (f"{value:.3f}" if isinstance(value, float) else f"{value:,}", name)
        for value, name in numbers
        if value is not None
    ]


def tabulate_digests(runs: Sequence[RunView], controls: Sequence[RunView]) -> list[dict[str, Any]]:
    """Return a row for each entry of the longest trail, compared with the entries of the first."""
    columns = [*runs, *controls]
    rows = []
    for place in range(max(len(run.trail) for run in columns)):
        entries = [run.trail[place] if place < len(run.trail) else None for run in columns]
        known = next(entry for entry in entries if entry)
        cells = [
            {"digest": get_hex(entry.state) if entry else "", "standing": standing}
            for entry, standing in zip(entries, _compare_states(entries), strict=True)
        ]
        rows.append({"epoch": known.epoch, "step": known.step, "cells": cells})
    return rows


def _compare_states(entries: Sequence[TrailEntry | None]) -> list[str]:
    """Return for each entry how its state compares with that of the first run."""
    first = entries[0]
    return ["first" if first else "differs"] + [
        "same" if entry and first and entry.state == first.state else "differs"
        for entry in entries[1:]
    ]


def list_curves(runs: Sequence[RunView], controls: Sequence[RunView]) -> list[tuple[str, str, Any]]:
    """Return (name, note, drawing) of each learning curve."""
    lines = list(zip([*runs, *controls], _choose_roles(runs, controls), strict=True))
    loss = [Series(r.label, tuple((x.epoch, x.loss) for x in r.log), role) for r, role in lines]
    selected = _selected(runs[0])
    epoch = selected.get("epoch") if all(same_bits(runs[0], run) for run in runs[1:]) else None
    metric = str(selected.get("metric", "score")).replace("_", " ").replace("auc", "AUC")
    sign, note = 1, "the best epoch is selected"
    if metric == NEGATIVE_LOSS:  # the score that selects weights; a reader wants the loss
        metric, sign, note = "loss", -1, "the epoch of the lowest is selected"
    score = [
        Series(r.label, tuple((x.epoch, sign * _value(x.score)) for x in r.log), role)
        for r, role in lines
    ]
    drawings = [
        ("Training loss", "mean over each epoch", draw_curves("Training loss", loss)),
        (
            f"Validation {metric}",
            note,
            draw_curves(f"validation {metric}", score, epoch),
        ),
    ]
    return [(name, note, mark_safe(drawing)) for name, note, drawing in drawings if drawing]


def list_legend(runs: Sequence[RunView], controls: Sequence[RunView]) -> list[tuple[str, str, str]]:
    """Return (look of its line, label, note) of each run, where there are several."""
    everyone = [*runs, *controls]
    roles = _choose_roles(runs, controls)
    notes = ["on top of it" if role == "repeat" else "" for role in roles]
    labels = [run.label for run in everyone]
    return list(zip(roles, labels, notes, strict=True)) if len(everyone) > 1 else []


def _choose_roles(runs: Sequence[RunView], controls: Sequence[RunView]) -> list[str]:
    same = [True, *(same_bits(runs[0], run) for run in runs[1:])]
    return choose_roles(same, len(controls))


def _value(score: float | None) -> float:
    return math.nan if score is None else score


def list_classes(run: RunView) -> list[dict[str, Any]]:
    """Return the values of each class of the test set, in the order of the dataset."""
    classes = (run.metrics.get("test") or {}).get("classes") or {}
    order = {name: n for n, name in enumerate((run.predicate.get("data") or {}).get("classes", ()))}
    return [
        {
            "name": name,
            "positives": score.get("positives"),
            "auc": score.get("auc"),
            "place": f"{100 * (score.get('auc') or 0.0):.1f}%",
            "interval": score.get("auc_interval"),
            "reach": _reach(score.get("auc_interval")),
            "rates": [_percent(score.get(rate)) for rate in RATES],
            "few": (score.get("positives") or 0) < FEW_POSITIVES,
        }
        for name, score in sorted(classes.items(), key=lambda c: order.get(c[0], len(order)))
    ]


def _reach(interval: Sequence[float] | None) -> tuple[str, str] | None:
    """Return the left end and the width of an interval on a bar from 0 to 1."""
    if not interval:
        return None
    low, high = interval
    return f"{100 * low:.1f}%", f"{100 * (high - low):.1f}%"


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.0f} %"


def group_values(values: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return nested values as tables of (dotted key, text); single values come first."""
    single = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    tables = [("", single), *((k, v) for k, v in values.items() if isinstance(v, Mapping))]
    groups = [(name, list(format_settings(table).items())) for name, table in tables]
    return [(name, rows) for name, rows in groups if rows]


def format_settings(values: Mapping[str, Any]) -> dict[str, str]:
    """Return nested values as texts by dotted key, without those that are not set."""
    return {key: _format(value) for key, value in flatten(values).items() if value is not None}


def _format(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def list_differing(
    settings: Sequence[Mapping[str, Any]],
) -> tuple[list[str], list[dict[str, str]]]:
    """Return the dotted keys in which runs differ, and each run's settings as text."""
    tables = [format_settings(one) for one in settings]
    keys = sorted({key for table in tables for key in table})
    return [key for key in keys if len({table.get(key) for table in tables}) > 1], tables


def list_changes(
    runs: Sequence[RunView], part: str
) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return (label, [(key, value of the first, its value)]) of runs that differ from the first."""
    tables = [format_settings(getattr(run, part)) for run in runs]
    changes = []
    for run, table in zip(runs[1:], tables[1:], strict=True):
        keys = sorted({*tables[0], *table})
        texts = [(key, tables[0].get(key, "not set"), table.get(key, "not set")) for key in keys]
        changes.append((run.label, [text for text in texts if text[1] != text[2]]))
    return [(label, rows) for label, rows in changes if rows]
