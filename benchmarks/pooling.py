"""The share of a training step that pooling with an explicit gradient takes:

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.pooling [--out FOLDER]

Every adaptive average of the conformer's forward is recorded, and all are computed again by
themselves, forward and backward. On a CUDA device both the step and the pools are launched as
CUDA graphs, so that kernels are compared and not the launching of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.measure import RESULTS, as_graph, take_turns, write_results
from seedless.bench.comparison import make_config
from seedless.models import layers
from seedless.numerics.pooling import adaptive_avg_pool1d
from seedless.runs.prepare import prepare
from seedless.train.step_modes import make_step
from seedless.train.training_problem import TrainingProblem

ROUNDS = 7


def note_pools(problem: TrainingProblem, rows: Tensor) -> list[tuple[torch.Size, int]]:
    """Return the shape and the new length of every adaptive average in one forward pass."""
    seen: list[tuple[torch.Size, int]] = []

    def note(x: Tensor, size: int) -> Tensor:
        seen.append((x.shape, size))
        return adaptive_avg_pool1d(x, size)

    layers.adaptive_avg_pool1d = note
    try:
        with torch.no_grad():
            problem.model(problem.train.samples[rows])
    finally:
        layers.adaptive_avg_pool1d = adaptive_avg_pool1d
    return seen


def make_pools(shapes: list[tuple[torch.Size, int]], device: torch.device) -> Callable[[], None]:
    """Return a function that computes all these pools and their gradients once."""
    inputs = [torch.zeros(shape, device=device, requires_grad=True) for shape, _ in shapes]
    sizes = [size for _, size in shapes]
    slopes = [
        torch.ones((x.shape[0], size, x.shape[2]), device=device)
        for x, size in zip(inputs, sizes, strict=True)
    ]

    def pool() -> None:
        for x, size, slope in zip(inputs, sizes, slopes, strict=True):
            torch.autograd.grad(adaptive_avg_pool1d(x, size), x, slope)

    return as_graph(pool) if device.type == "cuda" else pool


def main() -> None:
    """Measure, print, write results/pooling-DEVICE.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    folder = parser.parse_args().out
    cuda = torch.cuda.is_available()
    batch = 128 if cuda else 16
    problem = prepare(make_config("conformer", batch, "cuda" if cuda else "cpu")).problem
    problem.model.train()
    rows = torch.arange(batch, device=problem.device)
    step, shapes = make_step(problem), note_pools(problem, rows)

    def make_a_step() -> None:
        step(rows, 0)
        if cuda:
            torch.cuda.synchronize()

    pools = make_pools(shapes, problem.device)
    seconds = take_turns({"step": make_a_step, "pools": pools}, ROUNDS)
    results: dict[str, Any] = {
        "batch": batch,
        "pools": len(shapes),
        "step_ms": 1e3 * seconds["step"],
        "pools_ms": 1e3 * seconds["pools"],
        "share": seconds["pools"] / seconds["step"],
    }
    print(f"{len(shapes)} pools take {results['share']:.2%} of a step")
    name = f"pooling-{problem.device.type}"
    print(write_results(name, "python -m benchmarks.pooling", results, folder))


if __name__ == "__main__":
    main()
