"""What a portable training step computes, counted, and an estimate of its time on other cards.

    python -m benchmarks.step_work [--batch 128] [--out FOLDER]

Counted by program on a CPU, for full-size models: every matrix product by its shape, and in the ops
that are none, the float64 operations of their torch ops (compiled kernels off: they do the same
arithmetic) and the bytes of the tensors each op reads and writes. The counts are the same on every
machine. Writes step-work.json and prints the table of docs/explanation/engines.md, which divides
the counts by the rates of `benchmarks.engines`: nothing in it was measured.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.engines import CARDS, WORK, Card, Work, estimate_seconds
from benchmarks.measure import RESULTS, write_results
from benchmarks.portable import Loop
from seedless.portable.context import CONTEXT
from seedless.portable.exact.product import Product
from seedless.portable.exact.sums import ExactSum

MODELS = ("conformer", "resnet18")
# Arithmetic that a device executes for each element of its result, or of its argument.
BY_RESULT = {"add", "sub", "rsub", "mul", "div", "neg", "abs", "round", "reciprocal", "maximum"}
BY_RESULT |= {"minimum", "clamp", "clamp_min", "clamp_max", "floor", "rint", "copysign"}
BY_ARGUMENT = {"sum", "amax", "amin", "cumsum"}


class OpCounter(TorchDispatchMode):
    """Counts the float64 operations of torch's own ops; the products among them are left out."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped in torch
        self.operations = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an op and count its elements."""
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__.rstrip("_")
        counted = out if name in BY_RESULT else args[0] if name in BY_ARGUMENT else None
        if isinstance(counted, Tensor) and counted.dtype == torch.float64:
            self.operations += counted.numel()
        return out


class WorkCounter:
    """Follows a step: a `SumEvaluator` that notes products and returns zeros for them.

    No count depends on a value.

    Attributes:
        products: how often each shape (batch, m, k, n) is multiplied.
        operations: float64 operations of the ops that are no products.
        moved_bytes: of the tensors that these ops read and write.
    """

    redirects = is_tracing = True

    def __init__(self, ops: OpCounter) -> None:
        self.products: Counter[tuple[int, ...]] = Counter()
        self.operations = self.moved_bytes = 0
        self._ops = ops

    def run_op(self, run: Callable[..., Any], func: Any, args: Any, kwargs: Any) -> Any:
        """Return the op's result, and count its work where it is no product."""
        products, before = self.products.total(), self._ops.operations
        out = run(func, args, kwargs)
        if self.products.total() == products and out is not NotImplemented:
            self.operations += self._ops.operations - before
            self.moved_bytes += count_bytes(func, [*tree_leaves(args), *tree_leaves(kwargs)], out)
        return out

    def evaluate_sum(self, exact_sum: ExactSum) -> Tensor:
        """Return zeros for a product, and the value of another sum."""
        if not isinstance(exact_sum, Product):
            return exact_sum.compute()
        batch, m, n = exact_sum.shape
        self.products[batch, m, exact_sum.addends, n] += 1
        return exact_sum.make_zeros()

    def count_addends(self, addends: int) -> int:
        """Return the addends: the batch is whole."""
        return addends


def count_bytes(func: Any, arguments: list[Any], out: Any) -> int:
    """Return the bytes that an op reads and writes; a view moves none."""
    given = [x for x in arguments if isinstance(x, Tensor)]
    made = [x for x in tree_leaves(out) if isinstance(x, Tensor)]
    memory = {x.untyped_storage().data_ptr() for x in given}
    in_place = func.overloadpacket.__name__.endswith("_")
    if not in_place and all(x.untyped_storage().data_ptr() in memory for x in made):
        return 0
    return sum(x.numel() * x.element_size() for x in (*given, *made))


def count_step(name: str, batch: int) -> dict[str, Any]:
    """Return what one step of a model computes."""
    loop = Loop(name, "portable", batch, "cpu")
    with OpCounter() as ops, CONTEXT.without_kernels():
        work = WorkCounter(ops)
        with CONTEXT.evaluate_sums_with(work):
            loop()
    products = [{"shape": shape, "times": times} for shape, times in sorted(work.products.items())]
    return {
        "float64_operations": work.operations,
        "moved_bytes": work.moved_bytes,
        "multiply_adds": sum(
            batch * m * k * n * times for (batch, m, k, n), times in work.products.items()
        ),
        "products": products,
    }


def estimate_step(counted: Mapping[str, Any], card: Card, work: Work, is_int8: bool) -> float:
    """Return the seconds of a step at a card's peak rates: an estimate."""
    seconds = 0.0
    for product in counted["products"]:
        batch, *shape = product["shape"]
        seconds += batch * product["times"] * estimate_seconds(card, work, tuple(shape), is_int8)
    computed = counted["float64_operations"] / card.float64
    return seconds + max(computed, counted["moved_bytes"] / card.bandwidth)


def write_steps(results: Mapping[str, Any]) -> str:
    """Return the estimates of steps as a table in Markdown, one row for each model and card."""
    lines = [
        "| step | card | float64, ms | int8, ms | int8 as one kernel, ms | of these other ops |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for name, counted in results["models"].items():
        for label, card in CARDS.items():
            taken = [
                1e3 * estimate_step(counted, card, work, engine.startswith("int8"))
                for engine, work in WORK.items()
            ]
            others = {**counted, "products": []}
            taken.append(1e3 * estimate_step(others, card, WORK["float64"], False))
            numbers = " | ".join(f"{value:.{0 if value >= 10 else 1}f}" for value in taken)
            lines.append(f"| {name}, batch {results['batch']} | {label} | {numbers} |")
    return "\n".join(lines)


def write_counts(results: Mapping[str, Any]) -> str:
    """Return the counts as a table in Markdown, one row for each model."""
    lines = [
        "| step | products | multiply-adds in them | float64 operations elsewhere | bytes there |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, counted in results["models"].items():
        numbers = [counted[key] for key in ("multiply_adds", "float64_operations", "moved_bytes")]
        products = sum(product["times"] for product in counted["products"])
        billions = " | ".join(f"{number / 1e9:.1f} G" for number in numbers)
        lines.append(f"| {name}, batch {results['batch']} | {products} | {billions} |")
    return "\n".join(lines)


def main() -> None:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    models = {name: count_step(name, options.batch) for name in MODELS}
    results = {"batch": options.batch, "models": models}
    print(write_counts(results), write_steps(results), sep="\n\n")
    command = f"python -m benchmarks.step_work --batch {options.batch}"
    print(write_results("step-work", command, results, options.out))


if __name__ == "__main__":
    main()
