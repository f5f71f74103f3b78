"""Initialization, batch order and convolution: ``make bench``.

- `initialize(conformer)`, cold (a new process, no table computed yet) and warm, against torch's
  own default initialization and its `orthogonal_`.
- Each order on 17,418 records of 12 x 1000, PTB-XL's training size: making it (hashes, sums,
  features) and one later epoch, against `torch.randperm`.
- Our convolution layer against nn.Conv1d, forward and backward, at the conformer's shapes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

import seedless
from benchmarks.measure import take_turns, write_results
from seedless.models.layers import Conv1d
from seedless.numerics.counter_random import draw_uniform
from seedless.numerics.determinism import make_deterministic
from seedless.ordering import ORDERS

COLD = """
import time, seedless, seedless.init
model = seedless.build("conformer")
start = time.perf_counter()
seedless.initialize(model, "mixed")
print(time.perf_counter() - start)
"""
RECORDS = 17_418
SHAPES = [(40, 40, 5), (160, 160, 5), (160, 40, 1), (40, 160, 1), (160, 160, 1)]


def measure_initialization() -> dict[str, float]:
    """Seconds for the conformer's 1.8 million parameters."""
    cold = [
        float(subprocess.run([sys.executable, "-c", COLD], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    model = seedless.build("conformer")

    def default() -> None:
        for module in model.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def orthogonal() -> None:
        for module in model.modules():
            if isinstance(module, nn.Conv1d | nn.Linear):
                nn.init.orthogonal_(module.weight)

    warm = take_turns(
        {
            "seedless mixed, warm": lambda: seedless.initialize(model, "mixed"),
            "seedless kaiming": lambda: seedless.initialize(model, "kaiming"),
            "torch default": default,
            "torch orthogonal_": orthogonal,
        },
        rounds=15,
    )
    return {"seedless mixed, cold": statistics.median(cold), **warm}


def measure_orders() -> dict[str, dict[str, float]]:
    """Seconds to make each order and to answer one later epoch."""
    block = (
        draw_uniform(0, "benchmark", 256 * 12_000).astype(np.float32).reshape(256, 12, 1000) - 0.5
    )
    records = np.concatenate([block * np.float32(1 + turn / 97) for turn in range(69)])[:RECORDS]
    labels = np.searchsorted([0.7, 0.9, 0.97, 0.99], draw_uniform(0, "labels", RECORDS))
    losses = draw_uniform(0, "losses", RECORDS)
    found = {}
    for name in ORDERS:
        start = time.perf_counter()
        order = seedless.order(name, records, labels=labels)
        made = time.perf_counter() - start
        if order.needs_losses:
            order.observe(losses)
        epochs = []
        for epoch in range(1, 6):
            start = time.perf_counter()
            order.epoch(epoch)
            epochs.append(time.perf_counter() - start)
        found[name] = {"make": made, "epoch": statistics.median(epochs)}
    rival = take_turns({"randperm": lambda: torch.randperm(RECORDS)}, rounds=15)
    found["torch.randperm"] = {"make": 0.0, "epoch": rival["randperm"]}
    return found


def measure_convolutions() -> dict[str, dict[str, float]]:
    """Seconds forward and backward at batch 128 and 250 steps of time."""
    found = {}
    for inputs, outputs, kernel in SHAPES:
        ours, theirs = Conv1d(inputs, outputs, kernel), nn.Conv1d(inputs, outputs, kernel, 1, 2)
        if kernel == 1:
            theirs = nn.Conv1d(inputs, outputs, 1)
        seedless.initialize(ours, "dct")
        theirs.load_state_dict(ours.state_dict())
        x = torch.from_numpy(draw_uniform(1, "x", 128 * 250 * inputs).astype(np.float32))
        time_last, time_middle = x.view(128, inputs, 250), x.view(128, 250, inputs)
        found[f"{inputs}->{outputs} k{kernel}"] = take_turns(
            {
                "ours": step(ours, time_middle),
                "nn.Conv1d": step(theirs, time_last),
            },
            rounds=15,
        )
    return found


def step(layer: nn.Module, x: Tensor) -> Callable[[], None]:
    """A forward and backward pass, with a gradient for the input too."""
    source = x.clone().requires_grad_()

    def run() -> None:
        layer.zero_grad()
        source.grad = None
        layer(source).sum().backward()

    return run


def main() -> None:
    """Measure, print, and write results/foundation.json."""
    make_deterministic()
    results = {
        "initialization": measure_initialization(),
        "orders": measure_orders(),
        "convolutions": measure_convolutions(),
    }
    print(json.dumps(results, indent=2))
    print(write_results("foundation", "make bench", results))


if __name__ == "__main__":
    main()
