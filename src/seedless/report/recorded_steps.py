"""The steps and operations of two recorded runs of a script, side by side.

The records are those of `seedless doctor`: plain dicts, one for each line that a process wrote.
Every function here returns rows for a template. Later differences may only follow from the first,
so rows are shown around the first one, and what is left out is counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedless.core.bounded_reading import shorten
from seedless.report.run_view import as_mapping

# The values of a step in the order in which they are computed, and their names on the page.
VALUE_NAMES = {
    "weights_before": "weights before",
    "optimizer_state_before": "optimizer before",
    "indices": "indices",
    "batch": "batch",
    "input": "input",
    "output": "output",
    "loss": "loss",
    "gradients": "gradients",
    "rate": "rate",
    "scale": "loss scale",
    "weights": "weights",
    "optimizer_state": "optimizer",
    "buffers": "buffers",
}
# What a data loader has read. It may read ahead, so in a resumed run it may stand in other steps.
LOADER_VALUES = ("indices", "batch")
OBSERVED_VALUES = (*LOADER_VALUES, "input", "output")  # an evaluation changes these alone
STEPS_AROUND = 8
OPS_AROUND = 6
MISSING = "none"

Record = Mapping[str, Any]


@dataclass(frozen=True)
class DoctorRun:
    """A recorded run with its name on the page.

    Attributes:
        label: as "run 1", or the setting in which it differs on purpose.
        records: the lines of all its processes as dicts, in the order of the files, the main
            process first; each process begins with a line of kind "process".
        steps_before: for a resumed run, the steps of the unbroken run before its first one.
    """

    label: str
    records: Sequence[Record]
    steps_before: int = 0


def take_kind(records: Iterable[Record], *kinds: str) -> list[Record]:
    """Return the records of these kinds, in order."""
    return [record for record in records if record.get("kind") in kinds]


def split_processes(run: DoctorRun) -> list[list[Record]]:
    """Return the records of each process of a run."""
    processes: list[list[Record]] = []
    for record in run.records:
        if record.get("kind") == "process" or not processes:
            processes.append([])
        processes[-1].append(record)
    return processes


def name_process(process: Sequence[Record]) -> str:
    """Return a process as "main", "rank 1" or "worker 0"."""
    first = process[0] if process else {}
    if first.get("role") == "worker":
        return f"worker {first.get('worker_id')}"
    return f"rank {first.get('rank')}" if (first.get("world_size") or 1) != 1 else "main"


def find_main(run: DoctorRun, rank: int | None = None) -> list[Record]:
    """Return the records of the process that trains; with ``rank``, of the one with that rank."""
    mains = [p for p in split_processes(run) if p[0].get("role", "main") == "main"]
    ranked = [p for p in mains if rank is None or p[0].get("rank") == rank] or mains
    return next((p for p in ranked if list_steps(p)), ranked[0] if ranked else [])


def list_steps(process: Sequence[Record], steps_before: int = 0) -> dict[int, Record]:
    """Return the steps of a process by number; backward passes where it has no optimizer."""
    steps = take_kind(process, "step", "replay") or take_kind(process, "backward")
    return {
        record["step"] + steps_before: record
        for record in steps
        if isinstance(record.get("step"), int)
    }


@dataclass(frozen=True)
class StepTable:
    """Which values of which steps are equal.

    Attributes:
        columns: the names of the values.
        rows: for each step its number, its cells and the losses of both runs. A cell has a
            ``standing`` ("same", "differs", "absent" in both), the ``digests`` of both runs, and
            ``first`` for the first that differs.
        total: steps that at least one of the runs has.
        differing: those in which at least one value differs; in a resumed run those of the data
            loader do not count.
        changed: those in which more differs than what is only looked at, as in an evaluation.
    """

    columns: list[str]
    rows: list[dict[str, Any]]
    total: int
    differing: int
    changed: int


def tabulate_steps(runs: Sequence[DoctorRun], rank: int | None, first: int | None) -> StepTable:
    """Return the table of the steps around ``first``, the first step that differs."""
    left, right = (list_steps(find_main(run, rank), run.steps_before) for run in runs)
    numbers = sorted(left.keys() | right.keys())
    if runs[1].steps_before:  # a resumed run has no steps before the one it goes on from
        numbers = [number for number in numbers if number > runs[1].steps_before]
    pairs = {
        n: tuple(as_mapping(one.get(n, {}).get("values")) for one in (left, right)) for n in numbers
    }
    used = {name for pair in pairs.values() for values in pair for name in values}
    columns = [name for name in VALUE_NAMES if name in used]
    shown = _take_around(numbers, numbers.index(first) if first in pairs else 0, STEPS_AROUND)
    marked = False
    rows = []
    for number in shown:
        cells = []
        for name in columns:
            a, b = (values.get(name) for values in pairs[number])
            standing = "absent" if a is None and b is None else "same" if a == b else "differs"
            cells.append(
                {
                    "standing": standing,
                    "digests": (show_digest(a), show_digest(b)),
                    "first": standing == "differs" and not marked,
                }
            )
            marked = marked or standing == "differs"
        losses = [
            show_numbers(as_mapping(one.get(number, {}).get("shown")).get("loss"))
            for one in (left, right)
        ]
        rows.append({"step": number, "cells": cells, "losses": losses})
    is_resumed = runs[1].steps_before > 0
    judged = [name for name in columns if not (is_resumed and name in LOADER_VALUES)]
    counts = [
        sum(any(a.get(name) != b.get(name) for name in names) for a, b in pairs.values())
        for names in (judged, [name for name in judged if name not in OBSERVED_VALUES])
    ]
    return StepTable([VALUE_NAMES[name] for name in columns], rows, len(numbers), *counts)


def _take_around(items: Sequence[Any], place: int, count: int) -> Sequence[Any]:
    """Return the items from ``count`` before a place to ``count`` after it."""
    return items[max(place - count, 0) : place + count + 1]


def show_digest(value: Any) -> str:
    """Return a digest, or a list of them with its length, as one line."""
    if isinstance(value, list | tuple):
        return f"{len(value)}: {shorten(' '.join(map(str, value[:8])), 160)}"
    return MISSING if value is None else shorten(str(value), 80)


def show_numbers(values: Any) -> str:
    """Return up to three numbers with all digits that a float32 has."""
    items = values if isinstance(values, list | tuple) else [] if values is None else [values]
    shown = [f"{x:.9g}" if isinstance(x, int | float) else shorten(str(x), 20) for x in items[:3]]
    return ", ".join(shown) + (", ..." if len(items) > 3 else "")


def compare_ops(pairs: Sequence[tuple[Record | None, Record | None]]) -> dict[str, Any]:
    """Return the operations around the first that differs, and how many agree before it."""
    place = next((n for n, (a, b) in enumerate(pairs) if not _same_op(a, b)), None)
    rows = []
    for number in _take_around(range(len(pairs)), place or 0, OPS_AROUND):
        a, b = pairs[number]
        shown = a or b or {}
        rows.append(
            {
                "number": number + 1,
                "names": [_name_op(record) for record in (a, b)],
                "module": shorten(str(shown.get("module") or ""), 120),
                "phase": shorten(str(shown.get("phase") or ""), 40),
                "line": shorten(str(shown.get("line") or ""), 160),
                "shapes": _show_shapes(shown.get("shapes")),
                "draws": shorten(str(shown.get("draws") or ""), 40),
                "same": _same_op(a, b),
                "first": number == place,
            }
        )
    return {
        "rows": rows,
        "agreed": len(pairs) if place is None else place,
        "total": len(pairs),
        "draws": any(row["draws"] for row in rows),
    }


def _same_op(a: Record | None, b: Record | None) -> bool:
    """Return whether two operations are the same, with the same inputs, settings and outputs."""
    if a is None or b is None:
        return False
    parts = ("phase", "module", "op", "inputs", "settings", "outputs")
    return all(a.get(part) == b.get(part) for part in parts)


def _name_op(record: Record | None) -> str:
    if record is None:
        return "nothing"
    return shorten(str(record.get("op") or ""), 120)


def _show_shapes(shapes: Any) -> str:
    if not isinstance(shapes, list | tuple):
        return ""
    return shorten(
        ", ".join("x".join(map(str, s)) or "scalar" for s in shapes if isinstance(s, list | tuple)),
        80,
    )
