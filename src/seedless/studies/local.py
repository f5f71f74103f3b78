"""The local engine: worker processes of this machine that share a store.

Each goes through the whole grid and makes what no other is at, so a process executes many runs and
loads data and compiles once. A run's bits do not depend on which process makes it, or after what.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from seedless.core.errors import StudyError
from seedless.pipeline.many import VISIBLE, list_slots
from seedless.studies.grid import Point
from seedless.studies.store import Store
from seedless.studies.work import write_points

Watch = Callable[[], None]
PAUSE = 0.3  # seconds between two looks at the store


def run_local(
    store: Store,
    points: Sequence[Point],
    *,
    runs_per_device: int = 1,
    again: bool = False,
    watch: Watch = lambda: None,
) -> None:
    """Make all points; a worker that dies leaves its run to the others, or to the next time."""
    if runs_per_device < 1:
        raise StudyError(f"expected runs_per_device of at least 1, got {runs_per_device}")
    slots = [slot for slot in list_slots(None) for _ in range(runs_per_device)]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "grid.json"
        # Every worker begins at another place, so that they seldom meet.
        workers = []
        for number, slot in enumerate(slots[: max(1, len(points))]):
            start = number * len(points) // len(slots)
            mine = file.with_name(f"grid-{number}.json")
            write_points([*points[start:], *points[:start]], mine)
            environment = dict(os.environ) if slot is None else {**os.environ, VISIBLE: slot}
            environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
            command = [sys.executable, "-m", "seedless.studies.work", str(store.folder), str(mine)]
            workers.append(
                subprocess.Popen([*command, *(["--again"] if again else [])], env=environment)
            )
        try:
            while any(worker.poll() is None for worker in workers):
                watch()
                time.sleep(PAUSE)
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()
        watch()
    left = [point for point in points if store.state(point) in ("begun", "waiting")]
    if left:
        codes = sorted({worker.returncode for worker in workers})
        raise StudyError(
            f"{len(left)} of {len(points)} runs are not finished, the first is {left[0].label}; "
            f"the workers ended with exit codes {codes}. Run the study again: what is done stays"
        )
