"""What bounds a compiled step on a CUDA device: kernels, their time by kind, and the floor:

    PYTHONPATH=src:. python3 -m benchmarks.profile_step [--precision tf32] [--out FOLDER]

The floor is the products' arithmetic at the rate this device reaches on large matrices in the same
precision, plus the bytes a step cannot avoid at the rate of a large copy: both measured here.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.measure import RESULTS, tally_kernels, write_results
from seedless.bench.comparison import make_config
from seedless.numerics.determinism import make_deterministic
from seedless.runs.prepare import prepare
from seedless.train.learning_rate import set_learning_rate
from seedless.train.step_modes import make_step
from seedless.train.training_problem import TrainingProblem

STEPS = 3
KINDS = {  # the first whose word is in a kernel's name
    "matrix products": ("gemm", "cutlass", "cublas", "nvjet", "xmma"),
    "split-K sums": ("splitk",),
    "compiled pointwise": ("triton_poi",),
    "compiled reductions": ("triton_per", "triton_red", "triton_mix"),
    "attention": ("attention", "flash", "fmha", "softmax"),
    "optimizer": ("multi_tensor", "adam"),
    "copies and fills": ("memcpy", "memset", "copy", "fill", "cat"),
}


def sort_kernel(name: str) -> str:
    """Return the kind of a kernel."""
    lower = name.lower()
    if "splitk" in lower and "reduce" in lower:
        return "split-K sums"
    for kind, words in KINDS.items():
        if any(word in lower for word in words):
            return kind
    return "other"


def count_kernels(problem: TrainingProblem) -> dict[str, Any]:
    """Return kernels and microseconds a step, by kind and for the longest kernels."""
    step = make_step(problem)
    rows = torch.arange(problem.config.order.batch_size, device=problem.device)
    for _ in range(4):
        step(rows, 0)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(30):
        step(rows, 0)
    end.record()
    torch.cuda.synchronize()
    number, microseconds = tally_kernels(partial(step, rows, 0), STEPS)
    kinds: dict[str, dict[str, float]] = {}
    for name, time in microseconds.items():
        kind = kinds.setdefault(sort_kernel(name), {"kernels": 0.0, "microseconds": 0.0})
        kind["kernels"] += number[name] / STEPS
        kind["microseconds"] += time / STEPS
    return {
        "ms_per_step": begin.elapsed_time(end) / 30,
        "kernels": sum(number.values()) / STEPS,
        "kernel_microseconds": sum(microseconds.values()) / STEPS,
        "kinds": kinds,
        "longest": [
            {"name": name[:120], "kernels": number[name] / STEPS, "microseconds": time / STEPS}
            for name, time in microseconds.most_common(25)
        ],
    }


def count_work(problem: TrainingProblem) -> dict[str, float]:
    """Return the products' operations of a step, and the bytes it cannot avoid.

    Bytes: each weight read twice, its gradient written and read, its moments and itself read and
    written; each tensor that is saved for the backward pass is written once and read once.
    """
    rows = torch.arange(problem.config.order.batch_size, device=problem.device)
    model, split = problem.model, problem.train
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with (
        FlopCounterMode(display=False) as counter,
        torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor),
    ):
        loss = problem.loss(model, split.samples[rows], split.labels[rows]).mean()
        saved = sum(kept.values())
        torch.autograd.backward(loss)
    weights = 4 * sum(parameter.numel() for parameter in model.parameters())
    problem.optimizer.zero_grad()
    return {
        "operations": float(counter.get_total_flops()),
        "kept_bytes": float(saved),
        "weight_bytes": float(weights),
        "least_bytes": float(2 * saved + 10 * weights),
    }


def measure_device(precision: str) -> dict[str, float]:
    """Return operations a second in large products and bytes a second in a large copy."""
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    left = torch.ones(8192, 8192, device="cuda", dtype=kind).normal_()
    big = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(big)
    found = {}
    for name, work, amount in (
        ("operations_per_second", lambda: left @ left, 2.0 * 8192**3),
        ("bytes_per_second", lambda: other.copy_(big), 2.0 * 2**30),
    ):
        work()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(10):
            work()
        end.record()
        torch.cuda.synchronize()
        found[name] = 10 * amount / (begin.elapsed_time(end) / 1e3)
    return found


def main() -> None:
    """Profile, print, write results/profile-PRECISION.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16"), default="tf32")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    settings = ["execution.mode=compiled", f"execution.precision={arguments.precision}"]
    problem = prepare(make_config("conformer", 128, "cuda", settings)).problem
    problem.model.train()
    set_learning_rate(problem.optimizer, 1e-4)
    work = count_work(problem)
    device = measure_device(arguments.precision)
    arithmetic = work["operations"] / device["operations_per_second"]
    memory = work["least_bytes"] / device["bytes_per_second"]
    results = {
        "step": count_kernels(problem),
        "work": work,
        "device": device,
        "floor_ms": {"arithmetic": 1e3 * arithmetic, "memory": 1e3 * memory},
    }
    make_deterministic(threads=problem.config.execution.threads, tf32=arguments.precision == "tf32")
    command = f"python3 -m benchmarks.profile_step --precision {arguments.precision}"
    print(write_results(f"profile-{arguments.precision}", command, results, arguments.out))


if __name__ == "__main__":
    main()
