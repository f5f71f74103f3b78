"""Step times that other processes disturb little: rivals take turns, and medians are compared."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.pages import RESULTS
from seedless.numerics.environment import capture_environment


def take_turns(
    rivals: Mapping[str, Callable[[], Any]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return each rival's median seconds; every round runs all, in alternating order.

    With ``clock=time.process_time`` they are seconds of processor time, of all threads together.
    """
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for name in rivals:
        rivals[name]()  # warm up
    for turn in range(rounds):
        names = list(rivals) if turn % 2 == 0 else list(reversed(rivals))
        for name in names:
            start = clock()
            rivals[name]()
            times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def as_graph(work: Callable[[], Any], times: int = 1) -> Callable[[], None]:
    """Return a function that launches CUDA work as one graph, ``times`` times, and waits for it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()

    def replay(_inputs: object = work) -> None:  # holds the memory that the graph reads
        for _ in range(times):
            graph.replay()
        torch.cuda.synchronize()

    return replay


def tally_kernels(call: Callable[[], Any], times: int) -> tuple[Counter[str], Counter[str]]:
    """Return how often each CUDA kernel runs in so many calls, and its microseconds in all."""
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(times):
            call()
        torch.cuda.synchronize()
    number: Counter[str] = Counter()
    microseconds: Counter[str] = Counter()
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            number[event.name] += 1
            microseconds[event.name] += event.device_time_total
    return number, microseconds


def write_results(name: str, command: str, results: Any, folder: Path = RESULTS) -> Path:
    """Write results with the command that made them and the environment they were made in."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    content = {"command": command, "environment": capture_environment(), "results": results}
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
    return path
