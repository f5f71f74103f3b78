"""Several runs at once, each in a process of its own: on every device as many as it is given.

A run's bits depend on nothing it shares with its neighbours, so runs at once end in the bits they
have alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import torch

from seedless.core.config import override
from seedless.core.errors import RunError, SeedlessError
from seedless.core.presets import open_config
from seedless.proof.receipt import read_receipt

VISIBLE = "CUDA_VISIBLE_DEVICES"
TAIL = 20  # lines of standard error that are kept

# What a run is given of a device: the value of CUDA_VISIBLE_DEVICES, or None to leave it alone.
Slot = str | None


@dataclass(frozen=True)
class Job:
    """One `seedless train CONFIG --out OUT`, with settings such as "train.epochs=3"."""

    config: str
    out: Path
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """How a job ended; ``digest`` of its trained weights, as its receipt says, where it has one."""

    job: Job
    exit_code: int
    digest: str | None
    seconds: float
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether the run is finished."""
        return self.exit_code == 0 and self.digest is not None


def train_many(
    jobs: Sequence[Job], *, runs_per_device: int = 1, devices: Sequence[int] | None = None
) -> list[Result]:
    """Run jobs side by side and return how each ended, in their order; one may fail alone.

    Args:
        jobs: each with a folder of its own.
        runs_per_device: how many may run on one device at a time; the CPU counts as one.
        devices: CUDA devices by their number in this process; by default all there are.
    """
    if isinstance(runs_per_device, bool) or runs_per_device < 1:
        raise RunError(f"expected runs_per_device of at least 1, got {runs_per_device!r}")
    places = [job.out.absolute() for job in jobs]
    for place in places:
        if places.count(place) > 1:
            raise RunError(f"two jobs would write {place}; give each a folder of its own")
    slots: dict[str, list[Slot]] = {"cuda": list_slots(devices), "cpu": [None]}
    free: dict[str, SimpleQueue[Slot]] = {kind: SimpleQueue() for kind in slots}
    for kind, names in slots.items():
        for name in names * runs_per_device:
            free[kind].put(name)
    stopped = threading.Event()

    def take_turn(job: Job) -> Result:
        queue = free[find_device(job)]
        slot = queue.get()
        try:
            return Result(job, 1, None, 0.0, "stopped") if stopped.is_set() else run_job(job, slot)
        finally:
            queue.put(slot)

    with ThreadPoolExecutor(max(1, len(jobs))) as pool:
        try:
            return list(pool.map(take_turn, jobs))
        except BaseException:  # Ctrl-C reaches the processes too; those that wait never start
            stopped.set()
            raise


def list_slots(devices: Sequence[int] | None) -> list[Slot]:
    """Return what each CUDA device is called in a process that shall see it alone."""
    there = torch.cuda.device_count()
    if devices is None:
        if there <= 1:
            return [None]
        devices = range(there)
    if not devices or len(set(devices)) != len(devices):
        raise RunError(f"expected CUDA devices, each once, got {list(devices)}")
    for device in devices:
        if device not in range(there):
            raise RunError(f"there is no CUDA device {device}: torch finds {there} here")
    names = [name.strip() for name in os.environ.get(VISIBLE, "").split(",") if name.strip()]
    return [names[device] if names else str(device) for device in devices]


def find_device(job: Job) -> str:
    """Return "cuda" or "cpu"; a job whose configuration is wrong says so when it runs."""
    try:
        asked = override(open_config(job.config), job.settings).execution.device
    except SeedlessError:
        return "cpu"
    there = torch.cuda.device_count() > 0
    return "cuda" if asked == "cuda" or (asked == "auto" and there) else "cpu"


def run_job(job: Job, slot: Slot = None) -> Result:
    """Run one job to its end in a fresh process."""
    environment = dict(os.environ) if slot is None else {**os.environ, VISIBLE: slot}
    settings = [part for setting in job.settings for part in ("--set", setting)]
    command = ["train", job.config, "--out", str(job.out), "--json", *settings]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "seedless", *command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    seconds = time.perf_counter() - began
    digest = None
    tail = "\n".join(done.stderr.splitlines()[-TAIL:])
    if done.returncode == 0:
        try:
            digest = str(read_receipt(job.out)["predicate"]["weights"]["digest"])
        except (RunError, KeyError, TypeError) as error:
            tail = f"{tail}\n{error}".strip()
    return Result(job, done.returncode, digest, seconds, tail)
