"""Where the time of a portable step goes on a CPU, next to the native step.

    python -m benchmarks.portable_cpu [--batch 16] [--rounds 5] [--models ...] [--out FOLDER]

One thread, and seconds of processor time: other processes disturb these little. Native and portable
steps take turns. In the portable one each compiled kernel is timed on its own; what is left are
torch's other ops and Python. `products` is what torch's own library takes for the matrix products
of the step, in float64 and in float32; ours also rounds the operands and the result. Writes
portable-parts-cpu.json.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from benchmarks.measure import RESULTS, take_turns, write_results
from benchmarks.portable import MODELS, Loop
from benchmarks.portable_page import REST
from seedless.portable.kernels.launch import load_cpu_kernels

clock = time.process_time
PRODUCT_SIZES = slice(6, 10)  # batch, m, k and n among the arguments of `multiply_on_cpu`


class Parts:
    """Seconds of the parts of portable steps, and the shapes that they multiply."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.shapes: Counter[tuple[int, ...]] = Counter()

    @contextmanager
    def follow(self) -> Iterator[None]:
        """Time every compiled kernel inside."""
        kernels = load_cpu_kernels()
        assert kernels is not None
        launch = kernels.launch

        def timed_launch(name: str, shape: Any, args: list[Any]) -> None:
            start = clock()
            launch(name, shape, args)
            self.seconds[name] += clock() - start
            if name == "multiply_on_cpu":
                self.shapes[tuple(args[PRODUCT_SIZES])] += 1

        with mock.patch.object(kernels, "launch", timed_launch):
            yield


def time_products(shapes: Counter[tuple[int, ...]], rounds: int) -> dict[str, float]:
    """Return seconds of these products in float64 and float32, each the shortest round."""
    seconds: dict[str, float] = defaultdict(float)
    for (batch, m, k, n), times in shapes.items():
        for dtype in (torch.float64, torch.float32):
            left = torch.ones(batch, m, k, dtype=dtype)
            right = torch.ones(batch, k, n, dtype=dtype)
            out = torch.empty(batch, m, n, dtype=dtype)
            taken = []
            for _ in range(rounds):
                start = clock()
                torch.bmm(left, right, out=out)
                taken.append(clock() - start)
            seconds[str(dtype).removeprefix("torch.")] += times * min(taken)
    return dict(seconds)


def measure_model(name: str, batch: int, rounds: int) -> dict[str, Any]:
    """Return processor seconds of a step in both arithmetics, and the parts of the portable one."""
    loops = {kind: Loop(name, kind, batch, "cpu", threads=1) for kind in ("native", "portable")}
    seconds = take_turns(loops, rounds, clock)
    followed = []
    for _ in range(rounds):
        parts = Parts()
        start = clock()
        with parts.follow():
            loops["portable"]()
        parts.seconds[REST] = clock() - start - sum(parts.seconds.values())
        followed.append(parts)
    names = sorted(set().union(*(parts.seconds for parts in followed)))
    medians = {n: statistics.median(parts.seconds[n] for parts in followed) for n in names}
    return {
        "seconds": seconds,
        "ratio": seconds["portable"] / seconds["native"],
        "parts": dict(sorted(medians.items(), key=lambda item: -item[1])),
        "products": time_products(followed[0].shapes, rounds),
        "weights": {kind: loop.digest() for kind, loop in loops.items()},
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results: dict[str, Any] = {"batch": options.batch, "models": {}}
    command = f"python -m benchmarks.portable_cpu --batch {options.batch}"
    command += f" --rounds {options.rounds} --models {options.models}"
    for name in options.models.split(","):
        found = measure_model(name, options.batch, options.rounds)
        results["models"][name] = found
        print(name, f"{found['ratio']:.2f}", found["seconds"], found["products"])
        for part, seconds in found["parts"].items():
            print(f"    {1e3 * seconds:8.1f} ms  {part}", flush=True)
        write_results("portable-parts-cpu", command, results, options.out)


if __name__ == "__main__":
    main()
