"""Write docs/speed.md from the recorded results: ``python -m benchmarks.speed``.

A result that is not recorded leaves its section out.
"""

from __future__ import annotations

import statistics

from benchmarks.pages import DOCS, read_records, render

PAGE = DOCS / "speed.md"


def make_page() -> str:
    """Return the page."""
    return render("speed.md", records=read_records(), median=statistics.median)


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    print(PAGE)
