"""A worker: executes the runs of a grid that no other process executes, local or on Ray.

    python -m seedless.studies.engine.worker STORE GRID.json [--again] [--number N --of M]
        [--until SECONDS] [--processes N]

goes through a whole grid. Many workers may share a store.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seedless.core.config import Config, parse_config
from seedless.core.errors import SeedlessError
from seedless.numerics.determinism import set_environment_variables
from seedless.studies.engine.grid import Point
from seedless.studies.engine.store import Store, explain_error

MAX_DATA_BYTES = 1 << 32  # of records that stay in memory for the next runs
TIME_MARGIN = 1.2  # a run may take so much longer than the longest before it


class Worker:
    """Executes runs one after another; data are read, sorted and scaled once for all of them.

    With ``processes`` above 1 every run is trained by so many processes of its own, which read the
    data themselves.
    """

    def __init__(self, store: Store, processes: int = 1) -> None:
        self.store = store
        self.processes = processes
        self._data: dict[str, Any] = {}

    def execute(self, point: Point, *, again: bool = False) -> bool:
        """Execute a run unless it is finished; return False where another process executes it.

        A run that fails is recorded as failed. ``again`` tries a run that failed before.
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
                self.store.remove_failure(point)
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

        run = self.store.run_folder(point)
        if self.processes > 1:
            train_on_processes(point.config, run, self.processes)
        elif (run / CONFIG).exists():
            resume_run(run, preparer=self._prepare)
        else:
            train_run(point.config, run, preparer=self._prepare)

    def _prepare(self, config: Config) -> Any:
        from seedless.data.loading import load
        from seedless.data.model_inputs import SortedData
        from seedless.runs.prepare import prepare

        key = config.data.model_dump_json()
        if key not in self._data:
            fresh = SortedData(load(config.data))
            cached = sum(ready.data.X.nbytes for ready in self._data.values())
            if cached + fresh.data.X.nbytes > MAX_DATA_BYTES:
                self._data.clear()
            self._data[key] = fresh
        return prepare(config, self._data[key])


def train_on_processes(config: Config, run: Path, processes: int) -> None:
    """Train a run, or continue one, on several processes of this machine."""
    from seedless.core.local_group import run_processes
    from seedless.core.rendezvous import check_group_settings
    from seedless.runs.folder import CONFIG

    check_group_settings(config, processes)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "run.toml"
        file.write_text(config.to_toml(), encoding="utf-8")
        begun = (run / CONFIG).exists()
        command = ["resume", str(run)] if begun else ["train", str(file), "--out", str(run)]
        run_processes([*command, "--json"], processes, quiet=True)


def _free_memory() -> None:
    """Release GPU memory: a captured step holds its memory until Python collects it."""
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
    processes: int = 1,
) -> None:
    """Execute the missing runs of a grid, as worker ``number`` of ``of`` that run at the same time.

    ``until``: a time of `time.monotonic`; no run is started that would probably end later.
    ``processes``: how many processes train a run.
    """
    worker, longest = Worker(store, processes), 0.0
    finished_before = {point.key for point in points if store.state(point) == "done"}
    for place, point in enumerate(points):
        # [Step 1] A run that was finished before is checked by exactly one of the workers.
        if store.state(point) == "done":
            if point.key in finished_before and place % of == number:
                worker.execute(point)
            continue
        # [Step 2] Stop where the next run, if it takes as long as the longest, would end too late.
        began = time.monotonic()
        if until is not None and began + TIME_MARGIN * longest > until:
            break
        # [Step 3] Execute the run, unless another worker holds its lock.
        worker.execute(point, again=again)
        longest = max(longest, time.monotonic() - began)


def write_points(points: Sequence[Point], file: Path) -> None:
    """Write points to a JSON file for worker processes."""
    rows = [[p.arm, p.replicate, p.config.model_dump(), p.block, p.part] for p in points]
    file.write_text(json.dumps(rows), encoding="utf-8")


def read_points(file: Path) -> list[Point]:
    """Return the points that `write_points` wrote."""
    rows = json.loads(file.read_text(encoding="utf-8"))
    return [Point(arm, name, parse_config(values), *rest) for arm, name, values, *rest in rows]


def main() -> None:
    """Go through a grid as the command line says."""
    set_environment_variables()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("grid", type=Path)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("--until", type=float)
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    try:
        work_through(
            Store(arguments.store),
            read_points(arguments.grid),
            again=arguments.again,
            number=arguments.number,
            of=arguments.of,
            until=arguments.until,
            processes=arguments.processes,
        )
    except SeedlessError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
