"""The HTML page of a script's run or of a recorded loop: curves, digests, files, differences.

It is made like the page of a run: one file that loads nothing from elsewhere and runs no script,
and equal inputs give equal bytes. A recorded loop may hold any value under any name, so everything
is looked at before it is shown.
"""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seedless.core.bounded_reading import shorten
from seedless.core.digests import digest_value, get_hex
from seedless.report.contents import add_contents
from seedless.report.learning_curves import Series, choose_roles, draw_curves
from seedless.report.page import Headline
from seedless.report.render import mark_safe, render
from seedless.report.run_view import as_mapping
from seedless.report.sections import format_settings, group_values

MAX_POINTS = 500  # of a curve: more cannot be seen
STEPS_AROUND = 8  # rows of the table before and after the first difference
MAX_FILES = 200  # rows of a table of files

Trail = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class LoopView:
    """A run with the name it has on the page. It holds no path, so that a page shows none.

    Attributes:
        label: its name.
        trails: the lines of each of its processes, the start first.
        receipt: of a script's run; empty for a recorded loop, which has none.
        data: the files that a script read: path, size and digest.
    """

    label: str
    trails: Mapping[int, Trail]
    receipt: Mapping[str, Any] = field(default_factory=dict)
    data: Sequence[Mapping[str, Any]] = ()

    @property
    def steps(self) -> Trail:
        """The lines of the steps of its first process."""
        return self.trails[min(self.trails)][1:]

    @property
    def start(self) -> Mapping[str, Any]:
        """Line 0 of its first process."""
        return self.trails[min(self.trails)][0]

    @property
    def script(self) -> Mapping[str, Any]:
        """Command, sources and outputs of a script; empty for a recorded loop."""
        return as_mapping(as_mapping(self.receipt.get("predicate")).get("script"))


@dataclass(frozen=True)
class FirstDifference:
    """Where a run differs first from the first run; ``step`` None: before the first step."""

    label: str
    step: int | None
    names: tuple[str, ...]


def render_loop_page(
    runs: Sequence[LoopView], differences: Sequence[FirstDifference | None], *, title: str
) -> str:
    """Return the page of one or more recorded runs as text.

    Args:
        runs: the runs; the first is shown in full.
        differences: for each run after the first, where it differs first from it, or None.
        title: of the page.
    """
    first = runs[0]
    found = [difference for difference in differences if difference is not None]
    script, environment = first.script, as_mapping(first.start.get("environment"))
    tables = [format_settings(as_mapping(run.start.get("environment"))) for run in runs]
    labels = [run.label for run in runs]
    roles = choose_roles([True, *(difference is None for difference in differences)])
    page = render(
        "loop.html",
        title=title,
        headline=choose_headline(runs, found),
        command=shorten(shlex.join(map(str, script.get("command", ()))), 2_000),
        facts=list_facts(first, f"last loss{f' of {first.label}' if len(runs) > 1 else ''}"),
        differences=[
            (one.label, _describe_place(one), shorten(", ".join(one.names), 400)) for one in found
        ],
        labels=labels,
        agreeing=[
            run.label
            for run, difference in zip(runs[1:], differences, strict=True)
            if difference is None
        ],
        curves=list_curves(runs, roles),
        legend=list(zip(roles, labels, [""] * len(runs), strict=True)) if len(runs) > 1 else [],
        steps=tabulate_steps(runs, found),
        total=len(first.steps),
        outputs=_list_outputs(script),
        sources=_list_files(as_mapping(script.get("sources")).items()),
        data=_list_files((str(file["path"]), file["digest"]) for file in first.data),
        unobserved=[str(name) for name in script.get("unobserved", ())],
        changed=[str(name) for name in script.get("changed", ())],
        settings=group_values({} if script else as_mapping(first.start.get("settings"))),
        environment=group_values(environment),
        environment_changes=[
            (run.label, _list_changes(tables[0], table))
            for run, table in zip(runs[1:], tables[1:], strict=True)
            if _list_changes(tables[0], table)
        ],
        receipts=[
            (run.label, json.dumps(run.receipt, indent=2, ensure_ascii=False))
            for run in runs
            if run.receipt
        ],
    )
    return add_contents(page)


def choose_headline(runs: Sequence[LoopView], found: Sequence[FirstDifference]) -> Headline:
    """Return the headline; it never claims more than the digests on the page show."""
    steps = sum(len(trail) - 1 for trail in runs[0].trails.values())
    if len(runs) == 1:
        kind = "script" if runs[0].receipt else "training loop"
        return Headline("plain", "", f"A {kind} of {steps:,} steps, as it was recorded")
    if not found:
        return Headline("plain", "=", f"{len(runs)} runs that recorded the same values")
    first = min(found, key=lambda one: -1 if one.step is None else one.step)
    return Headline("bad", "≠", f"The runs differ first {_describe_place(first)}")


def list_facts(run: LoopView, last_loss: str = "last loss") -> list[tuple[str, str]]:
    """Return the most important numbers of a run as (number, what it counts)."""
    script = run.script
    losses = [value for _, value in _list_points(run, "loss")]
    counts = {"step": sum(len(trail) - 1 for trail in run.trails.values())}
    counts["process"] = len(run.trails)
    if script:
        counts |= {"source file": len(script["sources"]), "data file": len(run.data)}
        counts["output"] = len(script["outputs"])
    plurals = {"process": "processes"}
    numbers = [
        (f"{count:,}", name if count == 1 else plurals.get(name, f"{name}s"))
        for name, count in counts.items()
    ]
    return [*numbers, (f"{losses[-1]:.4g}", last_loss)] if losses else numbers


def list_curves(runs: Sequence[LoopView], roles: Sequence[str]) -> list[tuple[str, Any]]:
    """Return (name, drawing) of the curves of loss and learning rate, where they were recorded."""
    drawings = []
    for name, key in (("Loss", "loss"), ("Learning rate", "rate")):
        series = [
            Series(run.label, tuple(_thin(_list_points(run, key))), role)
            for run, role in zip(runs, roles, strict=True)
        ]
        if drawing := draw_curves(name, [one for one in series if one.points], unit="step"):
            drawings.append((name, mark_safe(drawing)))
    return drawings


def tabulate_steps(
    runs: Sequence[LoopView], found: Sequence[FirstDifference]
) -> list[dict[str, Any]]:
    """Return rows around the first difference, or the first and last steps: step and digests.

    A row in whose place steps were left out before it has their number as ``skipped``.
    """
    by_step = [{line.get("step"): line for line in run.steps} for run in runs]
    steps = list(by_step[0])
    middle = next((one.step for one in found if one.step in by_step[0]), None)
    if middle is None:
        chosen = [*steps[:STEPS_AROUND], *steps[STEPS_AROUND:][-STEPS_AROUND:]]
    else:
        place = steps.index(middle)
        chosen = steps[max(0, place - STEPS_AROUND) : place + STEPS_AROUND + 1]
    rows = []
    places = [steps.index(step) for step in chosen]
    for number, step in enumerate(chosen):
        digests = [_digest_line(lines.get(step)) for lines in by_step]
        standing = ["first", *("same" if one == digests[0] else "differs" for one in digests[1:])]
        losses = [_find_number(as_mapping(lines.get(step)).get("loss")) for lines in by_step]
        shown = ["" if loss is None else f"{loss:.6g}" for loss in losses]
        cells = list(zip(digests, standing, shown, strict=True))
        skipped = places[number] - places[number - 1] - 1 if number else 0
        rows.append({"step": step, "cells": cells, "skipped": skipped})
    return rows


def _digest_line(line: Mapping[str, Any] | None) -> str:
    return "" if line is None else get_hex(digest_value(line["state"]))[:16]


def _list_points(run: LoopView, key: str) -> list[tuple[int, float]]:
    found = [(line.get("step"), _find_number(line.get(key))) for line in run.steps]
    return [(step, value) for step, value in found if type(step) is int and value is not None]


def _find_number(value: Any) -> float | None:
    """Return the first finite number in a value: a loop may state several losses or rates."""
    for _ in range(4):
        if isinstance(value, Mapping):
            value = next(iter(value.values()), None)
        elif isinstance(value, list):
            value = value[0] if value else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 2**1000 and math.isfinite(value) else None


def _thin(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return at most so many points of a curve, its first and last among them."""
    every = math.ceil(len(points) / MAX_POINTS)
    return [*points[:-1:every], *points[-1:]] if every > 1 else list(points)


def _describe_place(difference: FirstDifference) -> str:
    return "before the first step" if difference.step is None else f"at step {difference.step}"


def _list_outputs(script: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    outputs = as_mapping(script.get("outputs"))
    return [
        (name, f"{outputs[name]['size']:,}", get_hex(outputs[name]["digest"]))
        for name in list(outputs)[:MAX_FILES]
    ]


def _list_files(files: Any) -> list[tuple[str, str]]:
    rows = [(path, get_hex(digest)) for path, digest in files]
    more = len(rows) - MAX_FILES
    return rows[:MAX_FILES] + [(f"and {more:,} more", "")] * (more > 0)


def _list_changes(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[tuple[str, str, str]]:
    keys = sorted({*ours, *theirs})
    texts = [(key, ours.get(key, "not set"), theirs.get(key, "not set")) for key in keys]
    return [text for text in texts if text[1] != text[2]]
