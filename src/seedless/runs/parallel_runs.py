"""Train several configurations at the same time, each in a process of its own.

A run's bits do not depend on other processes, so concurrent runs give the bits they give alone.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from seedless.core.checks import check_integer
from seedless.core.config import override
from seedless.core.config_files import open_config
from seedless.core.errors import RunError, SeedlessError
from seedless.core.processes import (
    POLL_SECONDS,
    Slot,
    WorkerProcess,
    WorkerResult,
    Workers,
    list_device_slots,
)
from seedless.runs.validation import open_validated

TAIL = 20  # last lines of standard error in a result


@dataclass(frozen=True)
class TrainingJob:
    """One `seedless train CONFIG --out OUT`, with settings such as "train.epochs=3"."""

    config: str
    out: Path
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """How a job ended; ``digest`` is that of its weights in its receipt, None if it failed."""

    job: TrainingJob
    exit_code: int
    digest: str | None
    seconds: float
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether the run is finished."""
        return self.exit_code == 0 and self.digest is not None


def train_many(
    jobs: Sequence[TrainingJob], *, runs_per_device: int = 1, devices: Sequence[int] | None = None
) -> list[Result]:
    """Train jobs concurrently and return how each ended, in their order; one may fail alone.

    Args:
        jobs: each with its own folder.
        runs_per_device: how many may run on one device at a time; the CPU counts as one.
        devices: CUDA devices by their number in this process; by default all there are.
    """
    check_integer("runs_per_device", runs_per_device, 1, error=RunError)
    places = [job.out.absolute() for job in jobs]
    for place in places:
        if places.count(place) > 1:
            raise RunError(f"two jobs would write {place}; give each a folder of its own")
    free: dict[str, list[Slot]] = {
        "cuda": list_device_slots(devices) * runs_per_device,
        "cpu": [None] * runs_per_device,
    }
    waiting = {number: find_device(job) for number, job in enumerate(jobs)}
    running: dict[int, tuple[str, Slot, WorkerProcess]] = {}
    results: dict[int, Result] = {}
    with Workers() as workers:
        while waiting or running:
            # [Step 1] Take the results of the jobs that ended, and free their places.
            for number, (kind, slot, worker) in list(running.items()):
                if (ended := worker.poll()) is not None:
                    results[number] = read_result(jobs[number], ended)
                    free[kind].append(slot)
                    del running[number]
            # [Step 2] Give every free place to the first job that waits for one of its kind.
            for number, kind in list(waiting.items()):
                if free[kind]:
                    slot = free[kind].pop(0)
                    running[number] = (kind, slot, start_job(workers, jobs[number], slot))
                    del waiting[number]
            time.sleep(POLL_SECONDS)
    return [results[number] for number in range(len(jobs))]


def find_device(job: TrainingJob) -> str:
    """Return "cuda" or "cpu"; a job with a wrong configuration fails when it is started."""
    try:
        device = override(open_config(job.config), job.settings).execution.device
    except SeedlessError:
        return "cpu"
    has_cuda = torch.cuda.device_count() > 0
    return "cuda" if device == "cuda" or (device == "auto" and has_cuda) else "cpu"


def start_job(workers: Workers, job: TrainingJob, slot: Slot) -> WorkerProcess:
    """Start one job in a fresh process."""
    settings = [part for setting in job.settings for part in ("--set", setting)]
    command = ["train", job.config, "--out", str(job.out), "--json", *settings]
    return workers.start("seedless", command, slot=slot, capture=True)


def read_result(job: TrainingJob, ended: WorkerResult) -> Result:
    """Return how a job ended, with the digest of its receipt."""
    digest = None
    tail = "\n".join(ended.stderr.splitlines()[-TAIL:])
    if ended.exit_code == 0:
        try:
            digest = str(open_validated(job.out).claims["weights"]["digest"])
        except RunError as error:
            tail = f"{tail}\n{error}".strip()
    return Result(job, ended.exit_code, digest, ended.seconds, tail)
