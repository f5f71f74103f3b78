"""One run of a study, made or found: the same function in every engine.

    python -m seedless.studies.engine.worker STORE GRID.json [--again] [--number N --of M]
        [--until SECONDS]

goes through a grid and makes what no other process is at. Many may share a store.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from seedless.core.config import Config, parse_config
from seedless.core.errors import SeedlessError
from seedless.numerics.determinism import set_environment_variables
from seedless.studies.engine.grid import Point
from seedless.studies.engine.store import Store, explain_error

Say = Callable[[str], None]
MEMORY = 1 << 32  # bytes of records that are kept for runs to come
MARGIN = 1.2  # a run may take so much longer than the longest before it


class Worker:
    """Makes runs one after another; data are read, sorted and scaled once for all of them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._data: dict[str, Any] = {}

    def make(self, point: Point, *, again: bool = False) -> bool:
        """Make a run unless it is there; return False where another process is at it.

        A run that fails is recorded as failed, and tried again only where ``again`` says so.
        """
        with self.store.claim(point) as mine:
            if not mine:
                return False
            state = self.store.state(point)
            if state == "done":
                self.store.check(point)
                return True
            if state == "failed":
                if not again:
                    return True
                self.store.forget_failure(point)
            try:
                self._train(point)
            except (SeedlessError, RuntimeError, MemoryError, OSError) as error:
                self.store.record_failure(point, explain_error(error))
            _free_memory()
        return True

    def _train(self, point: Point) -> None:
        from seedless.runs.folder import CONFIG
        from seedless.runs.resume import resume_run
        from seedless.runs.train import train_run

        run = self.store.place(point)
        if (run / CONFIG).exists():
            resume_run(run, preparer=self._prepare)
        else:
            train_run(point.config, run, preparer=self._prepare)

    def _prepare(self, config: Config) -> Any:
        from seedless.data.loading import load
        from seedless.runs.prepare import prepare
        from seedless.runs.records import SortedData

        key = config.data.model_dump_json()
        if key not in self._data:
            fresh = SortedData(load(config.data))
            kept = sum(ready.data.X.nbytes for ready in self._data.values())
            if kept + fresh.data.X.nbytes > MEMORY:
                self._data.clear()
            self._data[key] = fresh
        return prepare(config, self._data[key])


def _free_memory() -> None:
    """Give a GPU's memory back: a run's captured steps hold theirs until they are collected."""
    import gc

    import torch

    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()


def work_through(
    store: Store,
    points: Sequence[Point],
    *,
    again: bool = False,
    number: int = 0,
    of: int = 1,
    until: float | None = None,
) -> None:
    """Make what is missing of a grid, as the ``number``-th of so many workers beside each other.

    Runs that were there at the beginning are checked, each by one of the workers. ``until``, a time
    of `time.monotonic`: no run is begun that would hardly end by then.
    """
    worker, longest = Worker(store), 0.0
    there = {point.key for point in points if store.state(point) == "done"}
    for place, point in enumerate(points):
        if store.state(point) == "done":
            if point.key in there and place % of == number:
                worker.make(point)
            continue
        began = time.monotonic()
        if until is not None and began + MARGIN * longest > until:
            break
        worker.make(point, again=again)
        longest = max(longest, time.monotonic() - began)


def write_points(points: Sequence[Point], file: Path) -> None:
    """Write points for other processes to read."""
    rows = [[p.arm, p.replicate, p.config.model_dump(), p.block, p.part] for p in points]
    file.write_text(json.dumps(rows), encoding="utf-8")


def read_points(file: Path) -> list[Point]:
    """Return points as they were written."""
    rows = json.loads(file.read_text(encoding="utf-8"))
    return [Point(arm, name, parse_config(values), *rest) for arm, name, values, *rest in rows]


def main() -> None:
    """Work through a grid."""
    set_environment_variables()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("grid", type=Path)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("--until", type=float)
    given = parser.parse_args()
    try:
        work_through(
            Store(given.store),
            read_points(given.grid),
            again=given.again,
            number=given.number,
            of=given.of,
            until=given.until,
        )
    except SeedlessError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
