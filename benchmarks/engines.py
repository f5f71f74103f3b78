"""What the int8 engine of matrix products costs here, and an estimate for other cards.

    python -m benchmarks.engines [--device cuda] [--batch 16] [--rounds 5] [--full] [--out FOLDER]
    python -m benchmarks.engines --one-thread   on a CPU that other processes use, too

Measured: single products, forward and backward, and training steps of two full-size models, with
both engines in turns in one process; medians are compared, and the weights must be equal. Checked:
every committed digest with the int8 engine, with ``--full`` of models in published size too.
Estimated: products on cards that were not tried, from rates that their maker publishes. Writes
engines-DEVICE.json and prints the tables of docs/explanation/engines.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import RESULTS, as_graph, take_turns, write_results
from benchmarks.portable import OPS, TIMES, Clock, Loop
from seedless.audit.portable_check import check
from seedless.numerics.determinism import make_deterministic
from seedless.portable.context import CONTEXT
from seedless.portable.engine_check import find_wrong_cases
from seedless.portable.exact.engines import ENGINES
from seedless.portable.mode import portable
from seedless.portable.test_inputs import Input

PRODUCTS = ("linear", "attention scores", "conv2d")
MODELS = ("conformer", "resnet18")
SHAPES = {  # m, k, n of products that are estimated: a batch of 128 in the conformer and resnet18
    "linear, 32000 x 256 x 1024": (32_000, 256, 1024),
    "conv2d, 64 x 576 x 131072": (64, 576, 131_072),
}


@dataclass(frozen=True)
class Card:
    """Published peak rates of a card, per second, without sparsity.

    Attributes:
        float64: float64 operations outside of matrix products.
        float64_products: float64 operations in matrix products.
        int8: int8 operations in matrix products.
        bandwidth: bytes of memory.
        source: which of the maker's documents has the rates.
    """

    float64: float
    float64_products: float
    int8: float
    bandwidth: float
    source: str


CARDS = {
    "T4": Card(0.25e12, 0.25e12, 130e12, 320e9, "T4 data sheet; float64 1/32, Turing white paper"),
    "RTX 3090": Card(0.56e12, 0.56e12, 284e12, 936e9, "GA102 white paper, float64 1/64"),
    "RTX 4090": Card(1.29e12, 1.29e12, 660.6e12, 1008e9, "Ada white paper, float64 1/64"),
    "L4": Card(0.47e12, 0.47e12, 242e12, 300e9, "L4 data sheet; float64 1/64, Ada white paper"),
    "A10": Card(0.49e12, 0.49e12, 250e12, 600e9, "A10 data sheet; float64 1/64, GA102 white paper"),
    "A100 80 GB SXM": Card(9.7e12, 19.5e12, 624e12, 2039e9, "A100 data sheet"),
    "H100 SXM": Card(34e12, 67e12, 1979e12, 3350e9, "H100 data sheet, int8 halved: no sparsity"),
    "H200 SXM": Card(34e12, 67e12, 1979e12, 4800e9, "H200 data sheet, int8 halved: no sparsity"),
}


@dataclass(frozen=True)
class Work:
    """What an engine does besides its matrix products, for each element.

    Attributes:
        products: how many times 2 m k n operations the matrix products take.
        operand_flops: float64 operations for an element of an operand: scale, round, split.
        operand_bytes: bytes read and written for it.
        result_flops: float64 operations for an element of the result: add, scale, round.
        result_bytes: bytes read and written for it.
    """

    products: int
    operand_flops: int
    operand_bytes: int
    result_flops: int
    result_bytes: int


# Counted from the code for more than 128 addends. float64: operands rounded by one kernel (4 bytes
# in, 8 out, 16 for the one that is split), the result in two parts, joined by one kernel. int8:
# operands rounded (12), made int32 and moved (20), digits by passes of torch's own ops (60); seven
# products of int32 (4 out, 4 in), each added to a part (16), joined (36). Fused: 4 in, 4 out.
WORK = {
    "float64": Work(2, 5, 20, 4, 36),
    "int8": Work(16, 2, 92, 18, 204),
    "int8, fused": Work(16, 2, 4, 18, 4),
}


def estimate_seconds(card: Card, work: Work, shape: tuple[int, int, int], is_int8: bool) -> float:
    """Return the seconds of a product (m, k) x (k, n) at a card's peak rates: an estimate."""
    m, k, n = shape
    operands, result = m * k + k * n, m * n
    rate = card.int8 if is_int8 else card.float64_products
    multiply = work.products * 2 * m * k * n / rate
    flops = operands * work.operand_flops + result * work.result_flops
    moved = operands * work.operand_bytes + result * work.result_bytes
    return multiply + max(flops / card.float64, moved / card.bandwidth)


def estimate_cards() -> dict[str, Any]:
    """Return for each product and card the milliseconds of each engine, estimated."""
    return {
        product: {
            name: {
                engine: 1e3 * estimate_seconds(card, work, shape, engine.startswith("int8"))
                for engine, work in WORK.items()
            }
            for name, card in CARDS.items()
        }
        for product, shape in SHAPES.items()
    }


def write_table(estimates: dict[str, Any]) -> str:
    """Return the estimates as a table in Markdown, one row for each product and card."""
    lines = [
        "| product | card | float64, ms | int8, ms | int8 as one kernel, ms | float64 / int8 |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for product, cards in estimates.items():
        for name, taken in cards.items():
            numbers = [f"{taken[engine]:.{0 if taken[engine] >= 10 else 2}f}" for engine in WORK]
            ratio = f"{taken['float64'] / taken['int8']:.1f}"
            lines.append(f"| {product} | {name} | {' | '.join(numbers)} | {ratio} |")
    return "\n".join(lines)


def write_rates() -> str:
    """Return the published rates as a table in Markdown, one row for each card."""
    lines = [
        "| card | float64 | float64 products | int8 products | memory | source, of NVIDIA |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for name, card in CARDS.items():
        tera = [f"{rate / 1e12:.4g} T" for rate in (card.float64, card.float64_products, card.int8)]
        lines.append(
            f"| {name} | {' | '.join(tera)} | {card.bandwidth / 1e9:.0f} GB | {card.source} |"
        )
    return "\n".join(lines)


def measure_product(
    name: str, batch: int, rounds: int, device: torch.device, clock: Clock = time.perf_counter
) -> dict[str, Any]:
    """Return seconds of a product, forward and backward, with each engine; on a GPU as graphs."""
    run, spell_shapes = OPS[name]
    inputs = [
        Input(shape).make(f"{name}.{i}", device).requires_grad_()
        for i, shape in enumerate(spell_shapes(batch))
    ]
    times = TIMES if device.type == "cuda" else 1

    def call(engine: str) -> Callable[[], None]:
        def once() -> None:
            with CONTEXT.multiply_with(engine), portable():
                y = run(*inputs)
                torch.autograd.grad(y, inputs, y.detach())

        return as_graph(once, times) if device.type == "cuda" else once

    taken = take_turns({engine: call(engine) for engine in ENGINES}, rounds, clock)
    seconds = {engine: value / times for engine, value in taken.items()}
    return {"seconds": seconds, "ratio": seconds["int8"] / seconds["float64"]}


def measure_model(
    name: str,
    batch: int,
    rounds: int,
    device: str,
    threads: int | None = None,
    clock: Clock = time.perf_counter,
) -> dict[str, Any]:
    """Return seconds of a training step with each engine, and the weights after all rounds."""
    loops = {engine: Loop(name, "portable", batch, device, threads) for engine in ENGINES}

    def call(engine: str) -> Callable[[], None]:
        def once() -> None:
            with CONTEXT.multiply_with(engine):
                loops[engine]()

        return once

    seconds = take_turns({engine: call(engine) for engine in ENGINES}, rounds, clock)
    weights = {engine: loop.digest() for engine, loop in loops.items()}
    ratio = seconds["int8"] / seconds["float64"]
    return {"seconds": seconds, "ratio": ratio, "weights": weights}


def write_measured(results: dict[str, Any]) -> str:
    """Return the measured seconds as a table in Markdown, steps of models first."""
    lines = ["| | float64, ms | int8, ms | int8 / float64 |", "|---|--:|--:|--:|"]
    for kind, words in (("models", "a training step"), ("products", "forward and backward")):
        for name, found in results[kind].items():
            numbers = [f"{1e3 * found['seconds'][engine]:.0f}" for engine in ENGINES]
            lines.append(f"| {name}, {words} | {' | '.join(numbers)} | {found['ratio']:.1f} |")
    return "\n".join(lines)


def check_digests(device: str, full: bool) -> dict[str, Any]:
    """Return whether the int8 engine has the committed digests of all ops and models."""
    with CONTEXT.multiply_with("int8"):
        found = check(device, full)
    return {
        "differences": list(found.differences),
        "engine": found.engine,
        "models": sorted(found.models),
        "models in published size": sorted(found.full),
        "ops": len(found.ops),
        "same": found.same,
    }


def main() -> None:
    """Measure, estimate, check, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one-thread", action="store_true", help="and its processor time")
    parser.add_argument("--full", action="store_true", help="digests of large models, too")
    parser.add_argument("--few", action="store_true", help="no digests: to try the command out")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    command = f"python -m benchmarks.engines --device {options.device} --batch {options.batch}"
    command += f" --rounds {options.rounds}" + " --full" * options.full
    command += " --one-thread" * options.one_thread
    command += "" if options.models == ",".join(MODELS) else f" --models {options.models}"
    device = torch.device(options.device)
    start = time.perf_counter()
    wrong = find_wrong_cases(device)
    results: dict[str, Any] = {
        "batch": options.batch,
        "estimates_ms": estimate_cards(),
        "models": {},
        "products": {},
        "self_test": {"seconds": time.perf_counter() - start, "wrong": wrong},
        "sources": {name: card.source for name, card in CARDS.items()},
    }
    threads, clock = None, time.perf_counter
    if options.one_thread:
        threads, clock = 1, time.process_time
        results["clock"] = "seconds of processor time, one thread"
    print(write_table(results["estimates_ms"]), flush=True)

    def record() -> Path:  # after each: a run that is cut short has measured something
        return write_results(f"engines-{options.device}", command, results, options.out)

    for name in options.models.split(","):
        settings = (options.batch, options.rounds, options.device, threads, clock)
        found = measure_model(name, *settings)
        results["models"][name] = found
        print(name, f"{found['ratio']:.2f}", found["weights"], flush=True)
        record()
    make_deterministic(threads=threads)
    for name in PRODUCTS:
        sizes = (options.batch, options.rounds)
        results["products"][name] = measure_product(name, *sizes, device, clock)
        print(name, f"{results['products'][name]['ratio']:.2f}", flush=True)
        record()
    if not options.few:
        results["digests"] = check_digests(options.device, options.full)
    print(write_measured(results), results.get("digests"), sep="\n", flush=True)
    print(record())


if __name__ == "__main__":
    main()
