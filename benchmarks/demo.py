"""Run the demo and draw its digests: ``python -m benchmarks.demo``.

Writes results/demo.json and docs/assets/demo.svg, the picture of the README. ``--draw`` only draws
the picture again from the record.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import write_results
from benchmarks.pages import DOCS, read_records, render
from seedless.analysis.demo import run_demo

PICTURE = DOCS / "assets" / "demo.svg"


def measure() -> None:
    """Run the demo and record the digest of every state and the verdict."""
    with TemporaryDirectory() as folder:
        demo = run_demo(Path(folder) / "demo", ["execution.arithmetic=native"])
    results = {
        "identical": demo.identical,
        "control_differs_at_epoch": demo.control_differs,
        "verify": dict(demo.verdict),
        "digests": [list(row) for row in demo.digests],
    }
    print(write_results("demo", "python -m benchmarks.demo", results))


def draw() -> str:
    """Return the picture, an SVG without scripts, fonts or links."""
    return render("demo.svg", found=read_records()["demo"]["results"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", action="store_true", help="draw the recorded demo, run nothing")
    if not parser.parse_args().draw:
        measure()
    PICTURE.write_text(draw(), encoding="utf-8")
    print(PICTURE)
