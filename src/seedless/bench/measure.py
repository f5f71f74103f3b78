"""Step times that other processes disturb little: rivals take turns, and medians are compared."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from seedless.bench.flags import run_with_flags
from seedless.bench.rivals import Rival, Runner
from seedless.core.digests import digest

REPEATED = 3  # steps of each of the two runs whose digests are compared

Say = Callable[[str], None]


@dataclass(eq=False)
class Measured:
    """The measurements of one rival; ``error`` where it does not run here.

    Attributes:
        first_seconds: of the first step, including compilation, graph capture and autotuning.
        peak_bytes: the GPU memory it needs at its highest, without the samples.
        digest: the weights after `REPEATED` steps from the start.
        repeats: whether a second fresh copy came to the same weights.
        seconds: of a step, one value for each round.
    """

    rival: Rival
    first_seconds: float | None = None
    peak_bytes: int | None = None
    digest: str | None = None
    repeats: bool | None = None
    seconds: list[float] = field(default_factory=list)
    error: str | None = None

    @property
    def median(self) -> float | None:
        """Median seconds of a step."""
        return statistics.median(self.seconds) if self.seconds else None


def measure(
    rivals: Sequence[Rival],
    batches: Sequence[Tensor],
    *,
    steps: int,
    rounds: int,
    say: Say = lambda _: None,
) -> list[Measured]:
    """Measure rivals: each starts once, then they take turns of ``steps`` steps, round by round.

    Args:
        rivals: in the order of the first round; every second round reverses it.
        batches: training rows (B,) on the device, used again and again.
    """
    device = batches[0].device
    measured, runners = [Measured(rival) for rival in rivals], {}
    for one in measured:
        say(f"starting {one.rival.name}")
        try:
            with run_with_flags(one.rival.set_flags):
                runners[one] = start(one, batches, device)
                digests = [repeat(one.rival, batches) for _ in range(2)]
        except RuntimeError as error:  # such as memory, a missing compiler, a refused operation
            one.error = (str(error).strip().splitlines() or [type(error).__name__])[0]
            runners.pop(one, None)
            continue
        one.digest, one.repeats = digests[0], digests[0] == digests[1]
    for turn in range(rounds):
        say(f"round {turn + 1} of {rounds}")
        for one in measured if turn % 2 == 0 else reversed(measured):
            if one in runners:
                with run_with_flags(one.rival.set_flags):
                    one.seconds.append(time_steps(runners[one], batches, steps, device))
    return measured


def start(one: Measured, batches: Sequence[Tensor], device: torch.device) -> Runner:
    """Make a runner and its first steps; record their time and memory."""
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
    for rows in batches:
        runner.step(rows)
    _wait(device)
    if device.type == "cuda":
        one.peak_bytes = torch.cuda.max_memory_allocated(device) - before
    return runner


def repeat(rival: Rival, batches: Sequence[Tensor]) -> str:
    """Return the digest of the weights after a few steps of a fresh copy."""
    runner = rival.make()
    for number in range(REPEATED):
        runner.step(batches[number % len(batches)])
    return digest(runner.model)


def time_steps(
    runner: Runner, batches: Sequence[Tensor], steps: int, device: torch.device
) -> float:
    """Return the seconds of a step, over ``steps`` of them after one that is not counted."""
    runner.step(batches[-1])
    _wait(device)
    began = time.perf_counter()
    for number in range(steps):
        runner.step(batches[number % len(batches)])
    _wait(device)
    return (time.perf_counter() - began) / steps


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
