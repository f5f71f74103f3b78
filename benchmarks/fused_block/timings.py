"""Milliseconds of one block: the fused kernels against the compiled twin, and variant by variant.

Several inputs are computed one after another in one CUDA graph, more than fit into the cache of the
device: one input again and again would measure the cache.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.fused_block.block import launch_backward, launch_forward, list_weights, run_block
from benchmarks.fused_block.checks import make_block, make_inputs
from benchmarks.fused_block.tiles import BlockShape, Variant
from benchmarks.measure import as_graph
from seedless.bench.flags import run_with_flags
from seedless.models.conformer import Bottleneck
from seedless.numerics.determinism import make_deterministic
from seedless.train.arithmetic import autocast_for
from seedless.train.step_modes import configure_compiler

INPUTS = 6  # of 5 to 20 MB each, with several times as much that is saved for them
REPLAYS, ROUNDS = 10, 5


def time_work(work: Callable[[], Any], device: torch.device) -> float:
    """Return the median milliseconds of ``work``, as a CUDA graph where there is a GPU."""
    if device.type == "cpu":
        began = time.perf_counter()
        work()
        return 1e3 * (time.perf_counter() - began)
    replay = as_graph(work, times=REPLAYS)
    replay()
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / REPLAYS)
    return statistics.median(times)


def make_work(
    forward: Callable[[Tensor], Tensor], block: Bottleneck, inputs: list[tuple[Tensor, Tensor]]
) -> Callable[[], None]:
    """Return a function that goes forward and backward through a block for every input."""

    def work() -> None:
        for x, dy in inputs:
            x.grad = None
            for weight in block.parameters():
                weight.grad = None
            y = forward(x)
            y.backward(dy.to(y.dtype))

    return work


def time_shape(
    shape: BlockShape,
    precision: str,
    variants: tuple[Variant, Variant],
    samples: int,
    device: torch.device,
) -> dict[str, float]:
    """Return milliseconds of one block, forward and backward: fused, and by torch.compile.

    On a CPU, in the interpreter, only the fused one is timed.
    """
    count = 1 if device.type == "cpu" else INPUTS
    with run_with_flags(partial(make_deterministic, tf32=precision == "tf32")):
        configure_compiler()
        block = make_block(shape, device)
        inputs = [make_inputs(shape, samples, device, number) for number in range(count)]
        for x, _ in inputs:
            x.requires_grad_()
        fused = partial(run_block, block, variants=variants, precision=precision)
        found = {"fused_ms": time_work(make_work(fused, block, inputs), device) / count}
        if device.type == "cpu":
            return found
        compiled = torch.compile(Bottleneck.forward, fullgraph=True, dynamic=False)

        def twin(x: Tensor) -> Tensor:
            with autocast_for(precision, device):
                out: Tensor = compiled(block, x)
                return out

        found["compiled_ms"] = time_work(make_work(twin, block, inputs), device) / count
        return found


def time_variant(
    kernel: str,
    shape: BlockShape,
    precision: str,
    variant: Variant,
    fixed: tuple[Variant, Variant],
    samples: int,
    device: torch.device,
) -> dict[str, float]:
    """Return milliseconds of one kernel in one variant; what it reads comes from the fixed ones."""
    count = 1 if device.type == "cpu" else INPUTS
    block = make_block(shape, device)
    weights, eps = [weight.detach() for weight in list_weights(block)], block.norm.eps
    inputs = [make_inputs(shape, samples, device, number) for number in range(count)]
    saved = [launch_forward(x, weights, shape, fixed[0], precision, eps)[1] for x, _ in inputs]

    def work() -> None:
        for (x, dy), kept in zip(inputs, saved, strict=True):
            if kernel == "forward":
                launch_forward(x, weights, shape, variant, precision, eps)
            else:
                launch_backward(dy, kept, shape, variant, precision)

    return {"ms": time_work(work, device) / count}
