"""Workers on this machine: processes that share a store.

Each worker goes through the whole grid and executes the runs that no other has claimed, so one
process executes many runs and loads data and compiles once. The bits of a run do not depend on
which process executes it, or after which other runs.
"""

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
POLL_SECONDS = 0.3  # between two looks at the store


def run_local(
    store: Store,
    points: Sequence[Point],
    *,
    runs_per_device: int = 1,
    processes: int = 1,
    again: bool = False,
    limit: float | None = None,
    watch: Watch = lambda: None,
) -> None:
    """Execute all points with workers on this machine.

    Args:
        runs_per_device: how many workers each device has.
        processes: how many processes train a run.
        again: try runs that failed before.
        limit: seconds; no run is started that would probably end later, and runs that were started
            are finished. Without a limit it returns when every run is finished or has failed.
        watch: called every `POLL_SECONDS`.
    """
    if runs_per_device < 1:
        raise StudyError(f"expected runs_per_device of at least 1, got {runs_per_device}")
    check_devices(list_unfinished(store, points))
    until = None if limit is None else time.monotonic() + limit
    while True:
        # [Step 1] Let the workers go through the grid once.
        codes = _start_workers(store, points, runs_per_device, processes, again, until, watch)
        # [Step 2] Return when nothing is left, or when the time is over.
        left = list_unfinished(store, points)
        over = until is not None and time.monotonic() + POLL_SECONDS >= until
        if not left or (until is not None and not any(codes)) or over:
            return
        # [Step 3] Runs that nobody executes were left by a worker that died: report it.
        unclaimed = [point for point in left if not store.is_claimed(point)]
        if unclaimed and any(codes):
            raise StudyError(
                f"{len(left)} of {len(points)} runs are not finished, the first is "
                f"{left[0].label}; the workers ended with exit codes {sorted(set(codes))}. Run the "
                "study again: finished runs are not repeated"
            )
        # [Step 4] The other runs are executed by workers of another command. Wait for them; if
        # such a command dies, its runs lose their locks and our workers go through the grid again.
        again = False  # what failed before has been tried now
        while left and not unclaimed:
            watch()
            time.sleep(POLL_SECONDS)
            left = list_unfinished(store, points)
            unclaimed = [point for point in left if not store.is_claimed(point)]


def check_devices(points: Iterable[Point]) -> None:
    """Refuse runs on a device that this machine lacks, before each is recorded as failed."""
    on_cuda = [point for point in points if point.config.execution.device == "cuda"]
    if on_cuda and not torch.cuda.device_count():
        raise StudyError(
            f"{len(on_cuda)} unfinished runs need a CUDA device, and torch finds none here: "
            "execute them on a machine that has one, or with --device cpu"
        )


def uses_cuda(points: Iterable[Point]) -> bool:
    """Return whether a run would be executed on a GPU of this machine."""
    devices = {point.config.execution.device for point in points}
    return bool(devices - {"cpu"}) and torch.cuda.device_count() > 0


def order_by_replicate(points: Iterable[Point]) -> list[Point]:
    """Return points with the first replicate of every arm first.

    A study that is stopped then has some seeds of every arm instead of all seeds of some arms.
    """
    points = list(points)
    order = {name: place for place, name in enumerate(dict.fromkeys(p.replicate for p in points))}
    return sorted(points, key=lambda point: order[point.replicate])


def list_unfinished(store: Store, points: Iterable[Point]) -> list[Point]:
    """Return the points that are neither finished nor failed."""
    return [point for point in points if store.state(point) in ("begun", "waiting")]


def _start_workers(
    store: Store,
    points: Sequence[Point],
    runs_per_device: int,
    processes: int,
    again: bool,
    until: float | None,
    watch: Watch,
) -> list[int]:
    """Let one worker per slot go through the points; return their exit codes."""
    slots = [slot for slot in list_device_slots() for _ in range(runs_per_device)]
    slots = slots[: max(1, len(points))]
    with TemporaryDirectory() as folder, Workers() as workers:
        file = Path(folder) / "grid.json"
        write_points(points, file)
        for number, slot in enumerate(slots):
            arguments = [str(store.folder), str(file)]
            arguments += ["--number", str(number), "--of", str(len(slots))]
            arguments += ["--processes", str(processes)]
            arguments += ["--again"] if again else []
            arguments += [] if until is None else ["--until", str(until)]
            workers.start("seedless.studies.engine.worker", arguments, slot=slot)
        return [result.exit_code for result in workers.wait(watch, POLL_SECONDS)]
