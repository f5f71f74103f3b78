"""Write docs/reference/portable-ops.md: ``python -m benchmarks.portable_page``.

The ops are those of the registry. The costs are those of `results/portable-*.json`: under
``models`` and ``ops`` the seconds of each in both arithmetics, or their ratios alone, and the
``batch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.pages import DOCS, Record, read_records, render
from seedless.portable.ops.registry import EXACT, INTEGER, REPLACED
from seedless.train.arithmetic import ARITHMETICS

PAGE = DOCS / "reference" / "portable-ops.md"
PLACES = ("cpu", "cuda")


def make_page(records: Mapping[str, Record] | None = None) -> str:
    """Return the page, with the costs of every device that is recorded."""
    recorded = read_records() if records is None else records
    costs = {p: recorded[f"portable-{p}"] for p in PLACES if f"portable-{p}" in recorded}
    ops = list(dict.fromkeys(op for one in costs.values() for op in one["results"]["ops"]))
    kinds = {"replaced": REPLACED, "unchanged": EXACT, "on integers": INTEGER}
    return render(
        "portable-ops.md",
        kinds={kind: sorted(names) for kind, names in kinds.items()},
        costs=costs,
        single=ops,
        steps=[row for place, one in costs.items() for row in _list_steps(place, one["results"])],
    )


def _list_steps(place: str, results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each model: milliseconds in both arithmetics, where recorded, and ratio."""
    rows = []
    for name, row in results["models"].items():
        form = " graph" if "native graph" in row["ratio"] else ""  # as a CUDA graph, where it was
        seconds = [row.get("seconds", {}).get(f"{kind}{form}") for kind in ARITHMETICS]
        shown = ["" if value is None else f"{value * 1e3:.0f}" for value in seconds]
        ratio = row["ratio"][f"portable{form}"]
        label = f"{name}, batch {results['batch']}"
        rows.append({"place": place, "label": label, "milliseconds": shown, "ratio": ratio})
    return rows


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    print(PAGE)
