"""What portable arithmetic costs: in a training step of each model, and in single ops.

    python -m benchmarks.portable [--device cuda] [--batch 16] [--rounds 3] [--parts] [--out FOLDER]
    python -m benchmarks.portable --one-thread   on a CPU that other processes use, too

Steps are those of the training loop, full-size models: on a GPU both arithmetics as one graph, and
eager. Rivals take turns in one process, so that other processes disturb both; medians are compared.
`--one-thread` measures processor time, which other processes disturb less. Writes
portable-DEVICE.json.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.measure import RESULTS, as_graph, take_turns, write_results
from seedless.core.config import parse_config
from seedless.core.digests import digest
from seedless.numerics.determinism import make_deterministic
from seedless.portable.check.op_cases import Input
from seedless.portable.mode import portable
from seedless.runs.prepare import prepare
from seedless.train.step_modes import make_step

MODELS = ("conformer", "baseline", "xresnet1d101", "resnet18")
# Shapes of a batch in the ECG models and resnet18.
OPS: dict[str, tuple[Callable[..., Tensor], Callable[[int], list[tuple[int, ...]]]]] = {
    "linear": (F.linear, lambda n: [(250 * n, 256), (1024, 256)]),
    "attention scores": (torch.bmm, lambda n: [(4 * n, 250, 32), (4 * n, 32, 250)]),
    "conv2d": (
        lambda x, w: F.conv2d(x, w, padding=1),
        lambda n: [(n, 64, 32, 32), (64, 64, 3, 3)],
    ),
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[-1:]), lambda n: [(n, 250, 256)]),
    "batch_norm": (
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda n: [(n, 64, 32, 32)],
    ),
    "softmax": (lambda x: x.softmax(-1), lambda n: [(4 * n, 250, 250)]),
    "gelu": (F.gelu, lambda n: [(n, 250, 1024)]),
    "silu": (F.silu, lambda n: [(n, 250, 1024)]),
    "sum": (lambda x: x.sum((0, 1)), lambda n: [(n, 250, 1024)]),
}
Clock = Callable[[], float]
TIMES = 10  # how often the graph of one op is launched when it is timed


class Loop:
    """Steps of the training loop itself, one at a time, on the same batch."""

    def __init__(
        self, name: str, kind: str, batch: int, device: str, threads: int | None = None
    ) -> None:
        image = name == "resnet18"
        data = {"name": "simulated-images", "size": 32, "channels": 3} if image else {}
        arithmetic, _, form = kind.partition(" ")
        settings = {
            "data": {"name": "simulated", **data, "records": 2 * batch + 20},
            "model": {"name": name},
            "init": {"basis": "dct"},
            "order": {"batch_size": batch},
            "train": {"microbatch": batch // 2 if form == "parts" else None},
            "execution": {"arithmetic": arithmetic, "device": device, "threads": threads},
        }
        if form in ("eager", "graph"):
            settings["execution"]["mode"] = form
        self.problem = prepare(parse_config(settings)).problem
        self.step = make_step(self.problem)
        self.rows = torch.arange(batch, device=device)

    def __call__(self) -> None:
        """Take one step."""
        self.step(self.rows, 0)
        if self.rows.is_cuda:
            torch.cuda.synchronize()

    def digest(self) -> str:
        """Return the digest of the weights as they are now."""
        return digest(self.problem.model)


def list_kinds(name: str, device: str, parts: bool) -> list[str]:
    """Return the rivals: on a GPU both launched as a graph, and one by one."""
    kinds = ["native", "portable"]
    if device == "cuda":
        kinds = [f"{kind} {form}" for kind in kinds for form in ("graph", "eager")]
    # Batch norms cannot be computed in parts.
    return [*kinds, "portable parts"] if parts and name == "conformer" else kinds


def measure_model(
    name: str,
    kinds: list[str],
    batch: int,
    rounds: int,
    device: str,
    threads: int | None = None,
    clock: Clock = time.perf_counter,
) -> dict[str, Any]:
    """Return seconds a step, ratios to the native one, and the weights after all rounds."""
    loops = {kind: Loop(name, kind, batch, device, threads) for kind in kinds}
    peaks = {kind: _peak(loop) for kind, loop in loops.items()} if device == "cuda" else {}
    found: dict[str, Any] = {"seconds": take_turns(loops, rounds, clock)}
    first = found["seconds"][kinds[0]]
    found["ratio"] = {kind: seconds / first for kind, seconds in found["seconds"].items()}
    found["weights"] = {kind: loop.digest() for kind, loop in loops.items()}
    if peaks:
        found["bytes"] = peaks
    else:  # of the process, all kinds and models so far together: Linux counts in KiB
        found["process_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


def _peak(loop: Loop) -> int:
    """Return the largest amount of memory that a step adds; the first step also captures."""
    held = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    loop()
    return torch.cuda.max_memory_allocated() - held


def measure_op(
    name: str, batch: int, rounds: int, device: torch.device, clock: Clock = time.perf_counter
) -> dict[str, Any]:
    """Return seconds of an op, forward and backward, plain and portable; on a GPU as graphs."""
    run, spell_shapes = OPS[name]
    inputs = [
        Input(shape).make(f"{name}.{i}", device).requires_grad_()
        for i, shape in enumerate(spell_shapes(batch))
    ]
    times = TIMES if device.type == "cuda" else 1

    def call(context: Callable[[], Any]) -> Callable[[], None]:
        def once() -> None:
            with context():
                y = run(*inputs)
                torch.autograd.grad(y, inputs, y.detach())

        return as_graph(once, times) if device.type == "cuda" else once

    taken = take_turns({"plain": call(nullcontext), "portable": call(portable)}, rounds, clock)
    seconds = {kind: value / times for kind, value in taken.items()}
    return {"seconds": seconds, "ratio": seconds["portable"] / seconds["plain"]}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", action="store_true", help="the conformer in two parts, too")
    parser.add_argument("--one-thread", action="store_true", help="and its processor time")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    results: dict[str, Any] = {"batch": options.batch, "models": {}, "ops": {}}
    command = f"python -m benchmarks.portable --device {options.device} --batch {options.batch}"
    command += f" --rounds {options.rounds}" + " --parts" * options.parts
    threads, clock = None, time.perf_counter
    if options.one_thread:
        command += " --one-thread"
        threads, clock = 1, time.process_time
        results["clock"] = "seconds of processor time, one thread"

    def record() -> Path:  # after each: a run that is cut short has measured something
        return write_results(f"portable-{options.device}", command, results, options.out)

    for name in options.models.split(","):
        kinds = list_kinds(name, options.device, options.parts)
        settings = (options.batch, options.rounds, options.device, threads, clock)
        found = measure_model(name, kinds, *settings)
        results["models"][name] = found
        print(name, {kind: f"{ratio:.2f}" for kind, ratio in found["ratio"].items()}, flush=True)
        record()
    make_deterministic(threads=threads)
    device = torch.device(options.device)
    for name in OPS:
        results["ops"][name] = measure_op(name, options.batch, options.rounds, device, clock)
        print(name, f"{results['ops'][name]['ratio']:.2f}", flush=True)
        record()
    print(record())


if __name__ == "__main__":
    main()
