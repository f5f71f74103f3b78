"""Write docs/reference/doctor-bench.md from the records: ``python -m benchmarks.doctor.page``."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.doctor.catalog import list_pairs
from benchmarks.pages import DOCS, Record, read_records, render

PAGE = DOCS / "reference" / "doctor-bench.md"
FILES = {"CPU": "doctor", "GPU": "doctor-gpu"}


def make_page(recorded: Mapping[str, Record] | None = None) -> str:
    """Return the page, with every record that exists."""
    found = read_records() if recorded is None else recorded
    return render(
        "doctor-bench.md",
        files=FILES,
        gpu_pairs=len(list_pairs("cuda")),
        records={place: found[file] for place, file in FILES.items() if file in found},
        overhead=found.get("doctor-overhead"),
        rival=found.get("doctor-rival"),
    )


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    print(PAGE)
