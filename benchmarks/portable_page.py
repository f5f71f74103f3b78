"""Fill docs/portable.md from the table of ops and the recorded costs: none is typed by hand.

    python -m benchmarks.portable_page

The costs are those of `benchmarks/results/portable-cpu.json` and `portable-cuda.json`, which hold
under ``models`` the seconds of a step of each in both arithmetics, and the ``batch``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.measure import RESULTS
from seedless.numerics.portable.table import EXACT, HANDLERS, INTEGER
from seedless.train.arithmetic import ARITHMETICS

PAGE = RESULTS.parent.parent / "docs" / "portable.md"


def describe_ops() -> str:
    """Return the table of ops."""
    rows = {"replaced": HANDLERS, "as they are": EXACT, "on integers": INTEGER}
    lines = ["| | ops |", "|---|---|"]
    for name, ops in rows.items():
        lines.append(f"| {name}, {len(ops)} | {', '.join(f'`{op}`' for op in sorted(ops))} |")
    return "\n".join(lines)


def describe_cost() -> str:
    """Return a table of every recorded device, or a sentence where none is."""
    files = [RESULTS / f"portable-{place}.json" for place in ("cpu", "cuda")]
    files = [file for file in files if file.exists()]
    if not files:
        return "No measurement is recorded yet."
    notes: list[str] = []
    lines = ["| where | a training step of | native, ms | portable, ms | ratio |", "|" + "---|" * 5]
    for file in files:
        record = json.loads(file.read_text())
        found = record["results"]
        notes.append(f"{file.stem.removeprefix('portable-')}: {describe_record(record)}")
        link = f"[{file.stem.removeprefix('portable-')}](../benchmarks/results/{file.name})"
        for name, row in found["models"].items():
            form = " graph" * ("native graph" in row["seconds"])
            plain, ours = (row["seconds"][f"{kind}{form}"] * 1e3 for kind in ARITHMETICS)
            lines.append(
                f"| {link} | {name}, batch {found['batch']} | {plain:.0f} | {ours:.0f} "
                f"| {ours / plain:.1f} |"
            )
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)])


def describe_record(record: Mapping[str, Any]) -> str:
    """Return what a measurement was made with and on, in a line."""
    there = record["environment"]
    device = f"{there['cpu']['model']}, {there['cpu']['capability']}"
    if there["devices"]:
        device = there["devices"][0]["name"]
    threads, torch = there["threads"]["intraop"], there["packages"]["torch"]
    return f"{device}, {threads} threads, torch {torch}; medians of `{record['command']}`"


def make_page(text: str) -> str:
    """Return the page with both parts that are not typed filled in."""
    for mark, part in (("ops", describe_ops()), ("cost", describe_cost())):
        before, rest = text.split(f"<!-- {mark} -->")
        after = rest.split(f"<!-- /{mark} -->")[1]
        text = f"{before}<!-- {mark} -->\n{part}\n<!-- /{mark} -->{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(make_page(PAGE.read_text()))
