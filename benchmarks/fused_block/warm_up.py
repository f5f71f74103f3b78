"""Work that is done beside the measurement, in processes of their own, before anything is timed.

Compilers keep their results on disk. `compile_kernels` compiles the fused kernels, each process a
part; `OtherProcess` compiles the whole steps of a precision and trains twenty steps, whose digest
must be that of the measuring process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.fused_block.block import launch_backward, launch_forward, list_weights
from benchmarks.fused_block.checks import make_block, make_inputs
from benchmarks.fused_block.choices import choose_variants
from benchmarks.fused_block.settings import Settings
from benchmarks.fused_block.steps import FUSED, find_batches, list_step_rivals, prepare_conformer
from benchmarks.fused_block.tiles import BlockShape, Variant
from seedless.bench.flags import run_with_flags
from seedless.bench.measure import describe_error
from seedless.bench.rivals import Runner
from seedless.core.digests import digest

Kernel = tuple[str, BlockShape, Variant, str]
DIGEST_STEPS = 20
PROCESSES = 14  # that compile kernels, beside those that compile whole steps


def compile_kernels(
    kernels: Sequence[Kernel], device: str, processes: int = PROCESSES
) -> list[dict[str, Any]]:
    """Launch every kernel once on one recording, in several processes; return what each needs."""
    if device == "cpu" or not kernels:
        return []  # the interpreter compiles nothing
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        return list(pool.map(compile_one, kernels))


def compile_one(kernel: Kernel) -> dict[str, Any]:
    """Launch one kernel on one recording; return its registers, spills and shared memory."""
    which, shape, variant, precision = kernel
    device, launched = torch.device("cuda"), list[Any]()
    row = {"kernel": which, "shape": shape.name, "precision": precision}
    row["variant"] = variant.as_values()
    try:
        block, (x, dy) = make_block(shape, device), make_inputs(shape, 1, device)
        weights = [weight.detach() for weight in list_weights(block)]
        chosen = variant if which == "forward" else choose_variants(shape, precision)[0]
        _, saved = launch_forward(x, weights, shape, chosen, precision, block.norm.eps, launched)
        if which == "backward":
            launch_backward(dy, saved, shape, variant, precision, launched=launched)
        torch.cuda.synchronize()
        return {
            **row,
            "registers": launched[-1].n_regs,
            "spills": launched[-1].n_spills,
            "shared_bytes": launched[-1].metadata.shared,
        }
    except Exception as error:  # such as too much shared memory, or a refused launch
        return {**row, "error": describe_error(error)}


def train_steps(runner: Runner, batches: Sequence[Tensor], steps: int) -> str:
    """Return the digest of the weights after so many steps."""
    for number in range(steps):
        runner.step(batches[number % len(batches)])
    return digest(runner.model)


class OtherProcess:
    """Trains the steps of a precision in another process, and writes their digests to a file."""

    def __init__(self, settings: Settings, precision: str, folder: Path) -> None:
        self.out = folder / f"other-{precision}.json"
        self.out.unlink(missing_ok=True)
        numbers = (str(settings.samples), str(int(settings.small)))
        arguments = (precision, settings.device, *numbers, str(self.out))
        self.process = subprocess.Popen([sys.executable, "-m", __name__, *arguments])

    def finish(self, seconds: float) -> dict[str, Any]:
        """Return what it wrote; end it if it takes longer, so that it disturbs no timing."""
        try:
            self.process.wait(max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            self.end()
        found: dict[str, Any] = {"digests": {}, "errors": {}}
        try:
            found = json.loads(self.out.read_text())
        except (FileNotFoundError, json.JSONDecodeError):  # ended before or while it wrote
            found["errors"] = {"other process": f"exit code {self.process.returncode}"}
        return found

    def end(self) -> None:
        """End the process if it still runs."""
        self.process.terminate()
        self.process.wait()


@contextmanager
def train_beside(
    settings: Settings, phases: Sequence[str], folder: Path
) -> Iterator[dict[str, OtherProcess]]:
    """Let other processes train the steps of every precision while the block is executed."""
    chosen = settings.precisions if "steps" in phases else ()
    others = {precision: OtherProcess(settings, precision, folder) for precision in chosen}
    try:
        yield others
    finally:
        for other in others.values():
            other.end()


def main(arguments: Sequence[str]) -> None:
    """Train every step of a precision, the fused ones first; write digests after each."""
    precision, device, batch, small, out = arguments
    problem = prepare_conformer(device, int(batch), small == "1")
    batches = find_batches(problem)
    found: dict[str, Any] = {"digests": {}, "errors": {}}
    for rival in list_step_rivals(problem, precision):
        steps = count_digest_steps(device) if rival.name.startswith(FUSED) else 1
        try:
            with run_with_flags(rival.set_flags):
                found["digests"][rival.name] = train_steps(rival.make(), batches, steps)
        except Exception as error:
            found["errors"][rival.name] = describe_error(error)
        Path(out).write_text(json.dumps(found))


def count_digest_steps(device: str) -> int:
    """Return the steps before a digest is taken: fewer in the interpreter, which takes minutes."""
    return 1 if device == "cpu" else DIGEST_STEPS


if __name__ == "__main__":
    main(sys.argv[1:])
