"""What portable arithmetic costs: a training step of each model, and single ops, beside plain ones.

    python -m benchmarks.portable [--device cuda] [--batch 16] [--rounds 3] [--parts]

Rivals take turns in one process, so that a noisy neighbour meets both; medians are compared. Eager
steps on both sides. Writes benchmarks/results/portable-{device}.json.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import seedless
from benchmarks.measure import take_turns, write_results
from seedless.numerics.portable.cases import Drawn
from seedless.numerics.portable.microbatch import Split
from seedless.numerics.portable.mode import portable

MODELS = ("conformer", "baseline", "xresnet1d101", "resnet18")
OPS: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "linear": (F.linear, [(4000, 256), (1024, 256)]),
    "attention scores": (torch.bmm, [(64, 250, 32), (64, 32, 250)]),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), [(16, 64, 32, 32), (64, 64, 3, 3)]),
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[-1:]), [(16, 250, 256)]),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), [(16, 64, 32, 32)]),
    "softmax": (lambda x: x.softmax(-1), [(64, 250, 250)]),
    "gelu": (F.gelu, [(16, 250, 1024)]),
    "silu": (F.silu, [(16, 250, 1024)]),
    "sum": (lambda x: x.sum((0, 1)), [(16, 250, 1024)]),
}


class Step:
    """A training step of a model, plain, portable or portable in parts."""

    def __init__(self, name: str, kind: str, batch: int, device: torch.device) -> None:
        self.kind, self.model = kind, seedless.build(name)
        seedless.initialize(self.model)
        self.model.to(device).train()
        shape = (batch, 3, 32, 32) if name == "resnet18" else (batch, 12, 1000)
        self.x = Drawn(shape).make("x", device)
        self.keys = torch.arange(batch, device=device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.split = Split(self.model.parameters(), batch // 2)

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """Return the outputs, with dropout drawn by key."""
        with seedless.draws(samples=keys, epoch=0):
            out: Tensor = self.model(x)
        return out

    def loss(self, out: Tensor, *_: Tensor) -> Tensor:
        """Return a loss that needs no labels."""
        return F.binary_cross_entropy_with_logits(out, torch.zeros_like(out))

    def __call__(self) -> None:
        """Take one step."""
        with nullcontext() if self.kind == "plain" else portable():
            self.optimizer.zero_grad()
            if self.kind == "parts":
                self.split.step(self.forward, self.loss, self.x, self.keys)
            else:
                self.loss(self.forward(self.x, self.keys)).backward()
            self.optimizer.step()
        if self.x.is_cuda:
            torch.cuda.synchronize()


def measure_model(
    name: str, kinds: list[str], batch: int, rounds: int, device: torch.device
) -> dict[str, Any]:
    """Return seconds a step and ratios to the plain one."""
    steps = {kind: Step(name, kind, batch, device) for kind in kinds}
    found: dict[str, Any] = {"seconds": take_turns(steps, rounds)}
    found["ratio"] = {kind: s / found["seconds"]["plain"] for kind, s in found["seconds"].items()}
    if device.type == "cuda":
        found["bytes"] = {kind: _peak(step) for kind, step in steps.items()}
    else:  # of the process, all kinds and models so far together: Linux counts in KiB
        found["process_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


def _peak(step: Step) -> int:
    torch.cuda.reset_peak_memory_stats()
    step()
    return torch.cuda.max_memory_allocated()


def measure_op(name: str, rounds: int, device: torch.device) -> dict[str, Any]:
    """Return seconds of an op, forward and backward, plain and portable."""
    run, shapes = OPS[name]
    inputs = [
        Drawn(shape).make(f"{name}.{i}", device).requires_grad_() for i, shape in enumerate(shapes)
    ]

    def call(context: Callable[[], Any]) -> Callable[[], None]:
        def once() -> None:
            with context():
                y = run(*inputs)
                torch.autograd.grad(y, inputs, y.detach())
            if device.type == "cuda":
                torch.cuda.synchronize()

        return once

    seconds = take_turns({"plain": call(nullcontext), "portable": call(portable)}, rounds)
    return {"seconds": seconds, "ratio": seconds["portable"] / seconds["plain"]}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", action="store_true", help="the conformer in two parts, too")
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    device = torch.device(options.device)
    results: dict[str, Any] = {"batch": options.batch, "models": {}, "ops": {}}
    for name in options.models.split(","):
        # Batch norms cannot be computed in parts.
        kinds = ["plain", "portable", *(["parts"] if options.parts and name == "conformer" else [])]
        found = measure_model(name, kinds, options.batch, options.rounds, device)
        results["models"][name] = found
        print(name, {kind: f"{ratio:.2f}" for kind, ratio in found["ratio"].items()}, flush=True)
    for name in OPS:
        results["ops"][name] = measure_op(name, options.rounds, device)
        print(name, f"{results['ops'][name]['ratio']:.2f}", flush=True)
    command = " ".join(["python -m benchmarks.portable", *sys.argv[1:]])
    print(write_results(f"portable-{device.type}", command, results))


if __name__ == "__main__":
    main()
