"""Worker processes: one way to build their command and environment, to watch them, and to end them.

A worker is a module of this package in a Python process of its own:

    with Workers() as workers:
        workers.start("seedless", ["train", "demo", "--out", "runs/a"], capture=True)
        workers.start("seedless", ["train", "demo", "--out", "runs/b"], capture=True)
        results = workers.wait()

Leaving the block, also by Ctrl-C or an error, terminates every worker that still runs.
`worker_requests.py` has workers that answer one request.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from seedless.core.errors import RunError

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
MEETING_FILE = "SEEDLESS_MEETING_FILE"  # where the processes of a group meet: core/rendezvous.py
# By these a process finds the group it belongs to. A worker belongs to none, unless it is told so.
GROUP_VARIABLES = ("RANK", "WORLD_SIZE", MEETING_FILE, "SLURM_STEP_NUM_TASKS")
POLL_SECONDS = 0.05

# The value of CUDA_VISIBLE_DEVICES with which a worker sees one device; None leaves it unchanged.
Slot = str | None
Variables = Mapping[str, str | None]
_File = IO[bytes]


def build_command(module: str, arguments: Sequence[str] = ()) -> list[str]:
    """Return the command line that runs a module of this package."""
    # Without -P, Python puts the current directory first on the import path: a file there with the
    # name of one of our imports would be executed in place of it. The whole import path of a worker
    # is made by `list_import_path`.
    return [sys.executable, "-P", "-m", module, *arguments]


def build_environment(
    variables: Variables | None = None, slot: Slot = None, untrusted: Sequence[Path] = ()
) -> dict[str, str]:
    """Return a worker's environment: this process's, with some variables changed.

    The variables by which this process belongs to a group of processes are left out.

    Args:
        variables: new values by name; None removes a variable.
        slot: the CUDA device the worker sees, or None for those that this process sees.
        untrusted: folders that nothing is imported from.
    """
    changes = {**dict.fromkeys(GROUP_VARIABLES), **(variables or {})}
    if slot is not None:
        changes[VISIBLE_DEVICES] = slot
    unchanged = {name: value for name, value in os.environ.items() if name not in changes}
    new = {name: value for name, value in changes.items() if value is not None}
    path = os.pathsep.join(list_import_path(untrusted))
    # With PYTHONSAFEPATH, processes that the worker starts do as -P says, too.
    return {**unchanged, **new, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def list_import_path(untrusted: Sequence[Path] = ()) -> list[str]:
    """Return the import path of a worker: this process's, without what others may have written.

    Left out are the current directory, every entry that is relative to it ("" is one, which Python
    adds in `python -c` and in a notebook), and the ``untrusted`` folders with all folders in them.
    The place that this package itself was imported from stays in any case.
    """
    package, here = Path(__file__).resolve().parents[2], Path.cwd().resolve()
    refused = [Path(folder).resolve() for folder in untrusted]
    kept = {}
    for entry in sys.path:
        place = Path(entry).resolve()
        is_foreign = place == here or any(place.is_relative_to(folder) for folder in refused)
        # An entry with a colon in it would be read as two, of which the second may be relative.
        if os.path.isabs(entry) and os.pathsep not in entry and not is_foreign:
            kept[entry] = place
    if package not in kept.values():
        kept[str(package)] = package
    return list(kept)


def list_device_slots(devices: Sequence[int] | None = None) -> list[Slot]:
    """Return for each CUDA device the slot of a worker that is to see only this device.

    Args:
        devices: their numbers in this process; by default all. With at most one device there is
            nothing to divide, and the only slot is None.
    """
    import torch

    count = torch.cuda.device_count()
    if devices is None:
        if count <= 1:
            return [None]
        devices = range(count)
    if not devices or len(set(devices)) != len(devices):
        raise RunError(f"expected CUDA devices, each once, got {list(devices)}")
    for device in devices:
        if device not in range(count):
            raise RunError(f"there is no CUDA device {device}: torch finds {count} here")
    visible = os.environ.get(VISIBLE_DEVICES, "").split(",")
    names = [name.strip() for name in visible if name.strip()]
    return [names[device] if names else str(device) for device in devices]


@dataclass(frozen=True)
class WorkerResult:
    """How a worker ended.

    Attributes:
        command: module and arguments.
        exit_code: negative for a worker that a signal ended.
        stdout, stderr: what it printed, where that was captured.
        seconds: from its start to its end.
    """

    command: str
    exit_code: int
    stdout: str
    stderr: str
    seconds: float

    def check(self, allowed: Sequence[int] = (0,)) -> Self:
        """Return this result, or raise an error with the worker's last line if it failed."""
        if self.exit_code in allowed:
            return self
        lines = self.stderr.strip().splitlines()
        reason = lines[-1].removeprefix("error: ") if lines else describe_exit(self.exit_code)
        raise RunError(f"`{self.command}` failed: {reason}")


def describe_exit(code: int) -> str:
    """Return an exit code in words."""
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}; was it killed, or out of memory?"
    return f"it ended with exit code {code}"


class WorkerProcess:
    """A process that was started by `Workers.start`."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], files: Sequence[_File]) -> None:
        self.name, self.process = name, process
        self._files = files
        self._began = time.perf_counter()
        self._result: WorkerResult | None = None

    def poll(self) -> WorkerResult | None:
        """Return how the worker ended, or None while it runs."""
        if self._result is None and (code := self.process.poll()) is not None:
            seconds = time.perf_counter() - self._began
            stdout, stderr = map(_read_back, self._files) if self._files else ("", "")
            self._result = WorkerResult(self.name, code, stdout, stderr, seconds)
        return self._result


class Workers:
    """Starts worker processes, and terminates those that still run when its block is left."""

    def __init__(self) -> None:
        self.workers: list[WorkerProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        processes = [worker.process for worker in self.workers]
        for process in processes:
            process.terminate()  # does nothing to one that has ended
        try:
            for process in processes:
                process.wait()
            for worker in self.workers:
                worker.poll()  # closes its files
        except BaseException:  # a second Ctrl-C: the user will not wait for them
            for process in processes:
                process.kill()
            raise

    def start(
        self,
        module: str,
        arguments: Sequence[str] = (),
        *,
        slot: Slot = None,
        capture: bool = False,
    ) -> WorkerProcess:
        """Start a module of this package in a process of its own.

        Args:
            module: what ``python -m`` runs; "seedless" is the command line.
            arguments: its command line.
            slot: the CUDA device it sees.
            capture: keep what it prints for its result, instead of passing it on.
        """
        # Files, not pipes: a pipe that nobody reads while we watch would fill and stop the worker.
        count = 2 if capture else 0
        files = [tempfile.TemporaryFile() for _ in range(count)]  # noqa: SIM115  # `poll` closes it
        process = subprocess.Popen(
            build_command(module, arguments),
            env=build_environment(slot=slot),
            stdin=subprocess.DEVNULL,
            stdout=files[0] if capture else None,
            stderr=files[1] if capture else None,
        )
        worker = WorkerProcess(" ".join([module, *arguments]), process, files)
        self.workers.append(worker)
        return worker

    def wait(
        self, watch: Callable[[], None] = lambda: None, seconds: float = POLL_SECONDS
    ) -> list[WorkerResult]:
        """Wait for every worker, calling ``watch`` between two polls; return how each ended."""
        while any(worker.poll() is None for worker in self.workers):
            watch()
            time.sleep(seconds)
        watch()
        return [result for worker in self.workers if (result := worker.poll()) is not None]


def _read_back(file: _File) -> str:
    """Return all that was written to a file of captured output, and close it."""
    with file:
        file.seek(0)
        return file.read().decode(errors="replace")
