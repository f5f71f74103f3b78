"""The local engine: worker processes of this machine that share a store.

Each goes through the whole grid and makes what no other is at, so a process executes many runs and
loads data and compiles once. A run's bits do not depend on which process makes it, or after what.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from seedless.core.errors import StudyError
from seedless.core.processes import Workers, list_device_slots
from seedless.studies.engine.grid import Point
from seedless.studies.engine.store import Store
from seedless.studies.engine.worker import write_points

Watch = Callable[[], None]
PAUSE = 0.3  # seconds between two looks at the store


def run_local(
    store: Store,
    points: Sequence[Point],
    *,
    runs_per_device: int = 1,
    again: bool = False,
    limit: float | None = None,
    watch: Watch = lambda: None,
) -> None:
    """Make all points; a worker that dies leaves its run to the others, or to the next time.

    Runs that other processes are at are waited for, and taken over where such a process dies.
    ``limit``, in seconds: no run is begun that would hardly end by then, and those at work are left
    to end; what is missing then is left for another time.
    """
    if runs_per_device < 1:
        raise StudyError(f"expected runs_per_device of at least 1, got {runs_per_device}")
    refuse_absent(list_unfinished(store, points))
    until = None if limit is None else time.monotonic() + limit
    while True:
        codes = _work(store, points, runs_per_device, again, until, watch)
        left = list_unfinished(store, points)
        over = until is not None and time.monotonic() + PAUSE >= until
        if not left or (until is not None and not any(codes)) or over:
            return
        free = [point for point in left if not store.held(point)]
        if free and any(codes):
            raise StudyError(
                f"{len(left)} of {len(points)} runs are not finished, the first is "
                f"{left[0].label}; the workers ended with exit codes {sorted(set(codes))}. Run the "
                "study again: what is done stays"
            )
        again = False  # what failed now was tried
        while left and not free:
            watch()
            time.sleep(PAUSE)
            left = list_unfinished(store, points)
            free = [point for point in left if not store.held(point)]


def refuse_absent(points: Iterable[Point]) -> None:
    """Refuse runs of a device that is not here, before each of them is recorded as failed."""
    asking = [point for point in points if point.config.execution.device == "cuda"]
    if asking and not torch.cuda.device_count():
        raise StudyError(
            f"{len(asking)} runs are still to be made on a CUDA device, and torch finds none here: "
            "make them where one is, or with --device cpu"
        )


def order_by_replicate(points: Iterable[Point]) -> list[Point]:
    """Return points with the first replicate of every arm first.

    So a study that is stopped has some seeds of every arm, and not every seed of some arms.
    """
    points = list(points)
    order = {name: place for place, name in enumerate(dict.fromkeys(p.replicate for p in points))}
    return sorted(points, key=lambda point: order[point.replicate])


def list_unfinished(store: Store, points: Iterable[Point]) -> list[Point]:
    """Return the points that are neither finished nor failed."""
    return [point for point in points if store.state(point) in ("begun", "waiting")]


def _work(
    store: Store,
    points: Sequence[Point],
    runs_per_device: int,
    again: bool,
    until: float | None,
    watch: Watch,
) -> list[int]:
    """Have workers go through the points once; return their exit codes."""
    slots = [slot for slot in list_device_slots() for _ in range(runs_per_device)]
    slots = slots[: max(1, len(points))]
    with TemporaryDirectory() as folder, Workers() as workers:
        file = Path(folder) / "grid.json"
        write_points(points, file)
        for number, slot in enumerate(slots):
            arguments = [str(store.folder), str(file)]
            arguments += ["--number", str(number), "--of", str(len(slots))]
            arguments += ["--again"] if again else []
            arguments += [] if until is None else ["--until", str(until)]
            workers.start("seedless.studies.engine.worker", arguments, slot=slot)
        return [result.exit_code for result in workers.wait(watch, PAUSE)]
