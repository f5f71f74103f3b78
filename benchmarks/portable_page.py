"""Fill docs/how-to/portable.md from the table of ops and the recorded costs.

    python -m benchmarks.portable_page

The costs are those of `benchmarks/results/portable-*.json`, which hold under ``models`` and ``ops``
the seconds of each in both arithmetics, or their ratios alone, and the ``batch``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS
from seedless.portable.ops.registry import EXACT, INTEGER, REPLACED
from seedless.train.arithmetic import ARITHMETICS

PLACES = ("cpu", "cuda")
PAGE = RESULTS.parent.parent / "docs" / "how-to" / "portable.md"


def describe_ops() -> str:
    """Return the table of ops."""
    rows = {"replaced": REPLACED, "as they are": EXACT, "on integers": INTEGER}
    lines = ["| | ops |", "|---|---|"]
    for name, ops in rows.items():
        lines.append(f"| {name}, {len(ops)} | {', '.join(f'`{op}`' for op in sorted(ops))} |")
    return "\n".join(lines)


def describe_cost() -> str:
    """Return tables of steps and of ops with every recorded device, or a sentence without one."""
    files = [RESULTS / f"portable-{place}.json" for place in PLACES]
    records = {file: json.loads(file.read_text()) for file in files if file.exists()}
    if not records:
        return "No measurement is recorded yet."
    steps = ["| where | a training step of | native, ms | portable, ms | ratio |", "|" + "---|" * 5]
    for file, record in records.items():
        found, link = (
            record["results"],
            f"[{name_place(file)}](../../benchmarks/results/{file.name})",
        )
        for name, row in found["models"].items():
            form = " graph" * ("native graph" in row["ratio"])
            seconds = [row.get("seconds", {}).get(f"{kind}{form}") for kind in ARITHMETICS]
            times = " | ".join("" if s is None else f"{s * 1e3:.0f}" for s in seconds)
            ratio = row["ratio"][f"portable{form}"]
            steps.append(f"| {link} | {name}, batch {found['batch']} | {times} | {ratio:.1f} |")
    notes = [f"- {name_place(file)}: {describe_record(one)}" for file, one in records.items()]
    return "\n".join([*steps, "", *describe_single(records), "", *notes])


def describe_single(records: Mapping[Path, Mapping[str, Any]]) -> list[str]:
    """Return a table of single ops, forward and backward: portable over native."""
    ops = list(dict.fromkeys(op for one in records.values() for op in one["results"]["ops"]))
    lines = [
        "| one op, forward and backward: ratio | " + " | ".join(map(name_place, records)) + " |",
        "|---|" + "--:|" * len(records),
    ]
    for op in ops:
        found = [one["results"]["ops"].get(op) for one in records.values()]
        shown = " | ".join("" if row is None else f"{row['ratio']:.1f}" for row in found)
        lines.append(f"| {op} | {shown} |")
    return lines


def name_place(file: Path) -> str:
    """Return what a record is called on the page."""
    return file.stem.removeprefix("portable-")


def describe_record(record: Mapping[str, Any]) -> str:
    """Return what a measurement was made with and on, in a line."""
    there = record["environment"]
    device = f"{there['cpu']['model']}, {there['cpu']['capability']}"
    if there["devices"]:
        device = there["devices"][0]["name"]
    threads, torch = there["threads"]["intraop"], there["packages"]["torch"]
    note = f". {record['note']}" if "note" in record else ""
    note = note.replace("(../benchmarks/", "(../../benchmarks/")  # as seen from this page
    return f"{device}, {threads} threads, torch {torch}; medians of `{record['command']}`{note}"


def make_page(text: str) -> str:
    """Return the page with both parts that are not typed filled in."""
    for mark, part in (("ops", describe_ops()), ("cost", describe_cost())):
        before, rest = text.split(f"<!-- {mark} -->")
        after = rest.split(f"<!-- /{mark} -->")[1]
        text = f"{before}<!-- {mark} -->\n{part}\n<!-- /{mark} -->{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(make_page(PAGE.read_text()))
