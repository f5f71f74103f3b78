"""What a GPU itself adds to the spread: plain repeats of the seed-free run of `variance`.

    python -m benchmarks.device_repeats --data DATA --store STORE

waits until the store has that run, trains it again and again with torch's own layers and flags, and
writes the scores beside it after every repeat. `benchmarks.time_limited_runs` starts it beside the
workers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.results_plan import Entry, list_entries
from seedless.numerics.determinism import set_environment_variables
from seedless.studies.catalog import open_study
from seedless.studies.engine.grid import Grid, Point
from seedless.studies.engine.results import Results
from seedless.studies.engine.store import Store
from seedless.studies.published import variance

POLL_SECONDS = 1.0
MODULE = "benchmarks.device_repeats"


def find_seed_free(grid: Grid) -> Point:
    """Return the seed-free run of the usual fold, which is repeated."""
    return next(point for point in grid.points if point.block == variance.FOLD)


def repeat(entry: Entry, store: Store) -> list[float] | None:
    """Wait for the seed-free run, and return the scores of its plain repeats; None on a CPU."""
    grid = open_study(entry.study).plan(entry.options).grid
    point = find_seed_free(grid)
    while store.state(point) not in ("done", "failed"):
        time.sleep(POLL_SECONDS)
    return variance.measure_device(Results(grid, (store.read(point),), entry.options))


@contextmanager
def repeat_beside(entries: Sequence[Entry], data: Path | None, store: Store) -> Iterator[None]:
    """Let a process of its own repeat the run while the block is executed; end it with the block.

    Without `variance` among the entries, or without ``data``, nothing is started.
    """
    chosen = [entry for entry in entries if entry.study == "variance"]
    if data is None or not chosen or chosen[0].options.device == "cpu":
        yield
        return
    arguments = ["--data", str(data), "--store", str(store.folder)]
    process = subprocess.Popen([sys.executable, "-m", MODULE, *arguments])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Repeat the run and print the scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    arguments = parser.parse_args()
    set_environment_variables()
    (entry,) = (one for one in list_entries(arguments.data) if one.slug == "variance")
    print("plain repeats:", repeat(entry, Store(arguments.store)), flush=True)


if __name__ == "__main__":
    main()
