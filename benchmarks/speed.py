"""Write docs/speed.md from the recorded results: ``python -m benchmarks.speed``.

A result that is not recorded leaves its section out.
"""

from __future__ import annotations

import statistics

from benchmarks.pages import DOCS, Record, read_records, render

PAGE = DOCS / "speed.md"


def make_page() -> str:
    """Return the page."""
    return render(
        "speed.md",
        records=read_records(),
        median=statistics.median,
        pair_with_strongest=pair_with_strongest,
    )


def pair_with_strongest(found: Record) -> list[tuple[Record, Record]]:
    """Return for each precision the strongest rival's row and that of our fastest step.

    Records made before the strongest rival was measured have none.
    """
    rows = {row["name"]: row for row in found["rows"] if row["ms_per_step"] is not None}
    fastest: dict[str, Record] = {}
    for row in sorted(rows.values(), key=lambda row: row["ms_per_step"], reverse=True):
        if row["kind"] == "ours" and row.get("strongest"):
            fastest[row["precision"]] = row
    return [
        (rows[fastest[precision]["strongest"]], fastest[precision])
        for precision in ("fp32", "tf32", "bf16")
        if precision in fastest
    ]


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    print(PAGE)
