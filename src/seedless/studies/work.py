"""One run of a study, made or found: the same function in every engine.

    python -m seedless.studies.work STORE GRID.json

goes through a grid and makes what no other process is at. Many may share a store.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from seedless.core.config import Config, DataConfig, parse_config
from seedless.core.dataset import Dataset
from seedless.core.errors import SeedlessError
from seedless.numerics.environment import prepare_process
from seedless.studies.grid import Point
from seedless.studies.store import Store, explain_error

Say = Callable[[str], None]


class Worker:
    """Makes runs one after another; the data of the last one are kept for the next."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._data: tuple[DataConfig, Dataset] | None = None

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
        return True

    def _train(self, point: Point) -> None:
        from seedless.pipeline.folder import CONFIG
        from seedless.pipeline.run import resume_run, train_run

        run = self.store.place(point)
        if (run / CONFIG).exists():
            resume_run(run, make=self._prepare)
        else:
            train_run(point.config, run, make=self._prepare)

    def _prepare(self, config: Config) -> Any:
        from seedless.data.load import load
        from seedless.pipeline.prepare import prepare

        if self._data is None or self._data[0] != config.data:
            self._data = (config.data, load(config.data))
        return prepare(config, self._data[1])


def work_through(store: Store, points: Sequence[Point], *, again: bool = False) -> None:
    """Make what is missing of a grid, from this process's place on, whatever others do."""
    worker = Worker(store)
    for point in points:
        worker.make(point, again=again)


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
    prepare_process()
    folder, file, *rest = sys.argv[1:]
    work_through(Store(Path(folder)), read_points(Path(file)), again="--again" in rest)


if __name__ == "__main__":
    main()
