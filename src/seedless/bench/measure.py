"""Step times that other processes disturb little: rivals take turns, and medians are compared."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from seedless.bench.flags import run_with_flags
from seedless.bench.other_load import OtherLoad
from seedless.bench.rivals import Rival, Runner
from seedless.bench.time_limit import TimeLimitExceeded, limit_time
from seedless.core.digests import digest

REPEATED = 3  # steps of each of the two runs whose digests are compared
DEFAULT_LIMIT = 600.0  # seconds that a rival may take in all

Say = Callable[[str], None]
Clock = Callable[[], float]


@dataclass(eq=False)
class Measured:
    """The measurements of one rival; ``error`` where it does not run here.

    Attributes:
        first_seconds: of the first step, including compilation, graph capture and autotuning.
        peak_bytes: the GPU memory it needs at its highest, without the samples.
        digest: the weights after `REPEATED` steps from the start.
        repeats: whether a second fresh copy came to the same weights.
        seconds: of a step, one value for each round.
        other_cores: that other programs kept busy in each round; empty where unknown.
        used: the seconds it has taken in all.
    """

    rival: Rival
    first_seconds: float | None = None
    peak_bytes: int | None = None
    digest: str | None = None
    repeats: bool | None = None
    seconds: list[float] = field(default_factory=list)
    other_cores: list[float] = field(default_factory=list)
    error: str | None = None
    used: float = 0.0

    @property
    def median(self) -> float | None:
        """Median seconds of a step."""
        return statistics.median(self.seconds) if self.seconds else None


Record = Callable[[Sequence[Measured]], None]


def measure(
    rivals: Sequence[Rival],
    batches: Sequence[Tensor],
    *,
    steps: int,
    rounds: int,
    limit: float = DEFAULT_LIMIT,
    clock: Clock = time.perf_counter,
    say: Say = lambda _: None,
    record: Record = lambda _: None,
) -> list[Measured]:
    """Measure rivals: they take turns of ``steps`` steps, round by round.

    In the first round each rival starts right before its turn, so that there is a figure even if
    the program is stopped before all have started.

    Args:
        rivals: in the order of the first round; every second round reverses it.
        batches: training rows (B,) on the device, used again and again.
        limit: the seconds a rival may take in all; a slower one has no more turns.
        clock: returns seconds, of which the difference is a step's time.
        record: called after every turn, with the rivals that have started.
    """
    device = batches[0].device
    measured, runners = [Measured(rival) for rival in rivals], {}
    for turn in range(rounds):
        say(f"round {turn + 1} of {rounds}")
        for one in measured if turn % 2 == 0 else reversed(measured):
            if one.error is not None:
                continue
            with _note_failure(one, limit), run_with_flags(one.rival.set_flags):
                if turn == 0:
                    say(f"starting {one.rival.name}")
                    runners[one] = start(one, batches, device)
                    one.repeats = repeat(one.rival, batches) == one.digest
                load = OtherLoad()
                one.seconds.append(time_steps(runners[one], batches, steps, device, clock))
                cores = load.measure()
                one.other_cores += [] if cores is None else [cores]
            if one.error is not None:
                runners.pop(one, None)
            record([other for other in measured if other.used])
    return measured


@contextmanager
def _note_failure(one: Measured, limit: float) -> Iterator[None]:
    """Turn an error or a lack of time into the row's error, and count the time."""
    began = time.perf_counter()
    try:
        with limit_time(limit - one.used):
            yield
    except TimeLimitExceeded:
        one.error = f"took longer than {limit:g} s"
    except Exception as error:  # such as memory, a missing compiler, a refused operation
        one.error = describe_error(error)
    one.used += time.perf_counter() - began


def describe_error(error: Exception) -> str:
    """Return the first line of an error's text, and the next one where that only announces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]


def start(one: Measured, batches: Sequence[Tensor], device: torch.device) -> Runner:
    """Make a runner and its first steps; record their time, memory and digest."""
    gc.collect()  # a captured step keeps its memory until Python collects it
    before = 0
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
    runner = one.rival.make()
    _wait(device)
    began = time.perf_counter()
    runner.step(batches[0])
    _wait(device)
    one.first_seconds = time.perf_counter() - began
    if device.type == "cuda" and not runner.captured:
        torch.cuda.reset_peak_memory_stats(device)  # without what autotuning tried
    for number in range(1, REPEATED):
        runner.step(batches[number % len(batches)])
    _wait(device)
    if device.type == "cuda":
        one.peak_bytes = torch.cuda.max_memory_allocated(device) - before
    one.digest = digest(runner.model)
    return runner


def repeat(rival: Rival, batches: Sequence[Tensor]) -> str:
    """Return the digest of the weights after a few steps of a fresh copy."""
    runner = rival.make()
    for number in range(REPEATED):
        runner.step(batches[number % len(batches)])
    return digest(runner.model)


def time_steps(
    runner: Runner,
    batches: Sequence[Tensor],
    steps: int,
    device: torch.device,
    clock: Clock = time.perf_counter,
) -> float:
    """Return the seconds of a step, over ``steps`` of them after one that is not counted."""
    runner.step(batches[-1])
    _wait(device)
    began = clock()
    for number in range(steps):
        runner.step(batches[number % len(batches)])
    _wait(device)
    return (clock() - began) / steps


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
