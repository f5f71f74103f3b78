"""How long the page of 20 runs takes, and how large it is: ``python -m benchmarks.report``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import RESULTS, write_results
from seedless.analysis.run_report import report
from seedless.core.config_files import open_config
from seedless.runs.train import train_run

RUNS = 20


def main() -> None:
    """Train, write the page, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    folder = parser.parse_args().out
    base = open_config("demo").change(train={"epochs": 1, "checkpoint_every": 1})
    with TemporaryDirectory() as place:
        runs = []
        for seed in range(RUNS):
            config = base.change(
                init={"basis": "kaiming", "seed": seed}, order={"name": "seeded", "seed": seed}
            )
            runs.append(train_run(config, Path(place) / f"seed-{seed:02d}").path)
        began = time.perf_counter()
        page = report(*runs, out=Path(place) / "page.html")
        seconds, size = time.perf_counter() - began, page.stat().st_size
    results = {"runs": RUNS, "seconds": seconds, "bytes": size}
    print(f"a page of {RUNS} runs takes {seconds:.1f} s and {size / 2**20:.2f} MiB")
    print(write_results("report", "python -m benchmarks.report", results, folder))


if __name__ == "__main__":
    main()
