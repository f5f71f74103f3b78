"""Write docs/reference/portable-ops.md: ``python -m benchmarks.portable_page``.

The ops are those of the registry. The costs are those of `results/portable-*.json`: under
``models`` and ``ops`` the seconds of each in both arithmetics, or their ratios alone, and the
``batch``. The parts of a step on a CPU are those of `results/portable-parts-cpu.json`; steps on a
GPU before and since products were one kernel those of `results/portable-steps-cuda.json`; what
kernels need that of `results/kernel-resources.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.pages import DOCS, Record, read_records, render
from seedless.portable.ops.registry import EXACT, INTEGER, REPLACED
from seedless.train.arithmetic import ARITHMETICS

PAGE = DOCS / "reference" / "portable-ops.md"
PLACES = ("cpu", "cuda")
REST = "torch's other ops, and Python"  # as `portable_cpu` calls what no kernel computes


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
        parts=_list_parts(recorded.get("portable-parts-cpu")),
        earlier=recorded.get("portable-cpu-earlier"),
        fused=recorded.get("portable-steps-cuda"),
        needs=recorded.get("kernel-resources"),
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


def _list_parts(record: Record | None) -> list[dict[str, Any]]:
    """Return a row for each model: the shares of a portable step's processor time, and the floor.

    The floor is what the library's float64 products of the step take, in native steps.
    """
    rows = []
    for name, found in record["results"]["models"].items() if record else ():
        parts, whole = found["parts"], sum(found["parts"].values())
        shares = {
            "products": parts.get("multiply_on_cpu", 0.0) / whole,
            "rest": parts[REST] / whole,
        }
        shares["kernels"] = 1.0 - sum(shares.values())
        floor = found["products"]["float64"] / found["seconds"]["native"]
        rows.append({"name": name, "floor": floor, **shares})
    return rows


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    print(PAGE)
