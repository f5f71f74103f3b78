"""Sums that no order can change.

Law: sum(x) = round64(sum of q) step, with q and step from `rounding_grid` at 36 bits over the
summed axes. Up to 2^17 values float64 adds the integers q exactly; beyond, their two parts are
added exactly and joined with one rounding, which is the same function.

Every reduction of portable arithmetic, matrix products too, is an `ExactSum` that passes through
`evaluate`. A batch computed in parts (`batch.microbatch`, `batch.group_step`) takes over there: it
needs the grids of the whole batch, and the integers of each part.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from seedless.portable.constants import HIGHEST_EXPONENT, MAX_EXACT_ADDENDS, SUM_BITS
from seedless.portable.context import CONTEXT
from seedless.portable.exact.rounding_grid import (
    find_exponents,
    normalize_parts,
    power_of_two,
    round_to_grid,
    split,
)
from seedless.portable.kernels import rounding_grids

Parts = tuple[Tensor, Tensor | None]  # high and low part of exact sums; None: the sum is in one
Add = Callable[[Tensor], Tensor]
Dims = int | Sequence[int] | None


@dataclass(frozen=True)
class Operand:
    """A tensor, and the axes over which it shares one grid of so many bits."""

    values: Tensor
    dims: Sequence[int]
    bits: int

    def count_values(self) -> int:
        """Return how many values share a grid."""
        return math.prod(self.values.shape[dim] for dim in self.dims)


@dataclass(frozen=True)
class ExactSum:
    """A reduction that is not computed yet.

    Attributes:
        name: of the reduction: sum, cumsum, scatter or product.
        operands: one, or the two of a product.
        shape: of the result.
        addends: how many values each element of the result adds.
        max_addends: with more of them a sum may exceed 2^53 and is in two parts.
        add: returns the exact sums of the operands' integers, in one or two parts.
        is_single: one addend is its own sum, and is not rounded to a grid.
        keeps_infinity: whether what is not finite stays so; otherwise it makes each sum NaN.
    """

    name: str
    operands: tuple[Operand, ...]
    shape: tuple[int, ...]
    addends: int
    max_addends: int
    add: Callable[..., Parts]
    is_single: bool = False
    keeps_infinity: bool = True

    def find_exponents(self) -> list[Tensor]:
        """Return the exponents of the operands' grids."""
        return [find_exponents(operand.values, operand.dims) for operand in self.operands]

    def add_integers(self, exponents: Sequence[Tensor]) -> Parts:
        """Return the exact sums on the grids of these exponents."""
        pairs = zip(self.operands, exponents, strict=True)
        return self.add(*(round_to_grid(one.values, top, one.bits) for one, top in pairs))

    def scale(self, parts: Parts, exponents: Sequence[Tensor]) -> Tensor:
        """Return the sums in float64: rounded once, then times the steps of the grids."""
        high, low = parts
        result = high if low is None else high.add_(low)
        for operand, exponent in zip(self.operands, exponents, strict=True):
            step = power_of_two(exponent - operand.bits)
            if step.ndim > result.ndim:  # one grid for values of more axes than the result has
                step = step.reshape(())
            if not self.keeps_infinity:
                step = torch.where(exponent == HIGHEST_EXPONENT, math.nan, step)
            result = result.mul_(step)
        return result.add_(0.0)  # a sum of negative zeros alone is zero on every device

    def compute(self) -> Tensor:
        """Return the sums in float64, from these operands alone."""
        if self.is_single:
            return self.operands[0].values.to(torch.float64) + 0.0
        # [Step 1] Find the grids, which are functions of the largest magnitudes alone.
        exponents = self.find_exponents()
        # [Step 2] Round the operands to them and add the integers, in any order.
        parts = self.add_integers(exponents)
        # [Step 3] Join the parts with one rounding and scale by powers of two.
        return self.scale(parts, exponents)

    def make_zeros(self) -> Tensor:
        """Return zeros in place of the result."""
        return torch.zeros(self.shape, dtype=torch.float64, device=self.operands[0].values.device)


def evaluate(exact_sum: ExactSum) -> Tensor:
    """Return the value of a sum in float64, from the context's evaluator where there is one."""
    evaluator = CONTEXT.sum_evaluator if CONTEXT.redirects_sums else None
    return exact_sum.compute() if evaluator is None else evaluator.evaluate_sum(exact_sum)


def add_parts(one: Parts, two: Parts) -> Parts:
    """Add exact sums to exact sums, in two parts from which up to 2^14 can be added."""
    (high, low), (more_high, more_low) = normalize_parts(*one), normalize_parts(*two)
    return high.add_(more_high), low.add_(more_low)


def list_axes(x: Tensor, dim: Dims) -> list[int]:
    """Return the axes to reduce, counted from 0; none named means all."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(x.ndim))
    named = [dim] if isinstance(dim, int) else list(dim)
    axes = [axis % max(x.ndim, 1) for axis in named] if x.ndim else []
    if len(set(axes)) < len(axes):
        raise RuntimeError(f"expected every axis once in dim, got {tuple(named)}")
    return axes


def count_addends(x: Tensor, dims: Sequence[int]) -> int:
    """Return how many values each sum over ``dims`` adds."""
    return math.prod(x.shape[axis] for axis in dims)


def _add_exactly(q: Tensor, addends: int, add: Add) -> Parts:
    """Return ``add(q)`` of integers |q| <= 2^36 without rounding; ``add`` may use any order."""
    if addends <= MAX_EXACT_ADDENDS:
        return add(q), None
    high, low = split(q)
    return add(high), add(low)


def _evaluate_sum(
    name: str, x: Tensor, dims: Sequence[int], shape: Sequence[int], addends: int, add: Add
) -> Tensor:
    """Evaluate ``add`` of x's integers on their grids over ``dims``."""
    x = x if x.is_floating_point() else x.to(torch.float64)  # a mask has no negative
    add_exactly = partial(_add_exactly, addends=addends, add=add)
    single = name == "sum" and addends == 1
    operands = (Operand(x, dims, SUM_BITS),)
    return evaluate(
        ExactSum(name, operands, tuple(shape), addends, MAX_EXACT_ADDENDS, add_exactly, single)
    )


def total(x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the sum over ``dim`` in float64."""
    dims = list_axes(x, dim)
    size = count_addends(x, dims)
    if not dims:
        return x.to(torch.float64) + 0.0
    if x.numel() == 0:
        return torch.sum(x.to(torch.float64), dims, keepdim)
    result = None if CONTEXT.redirects_sums or size == 1 else rounding_grids.total(x, dims)
    if result is None:
        shape = [1 if axis in dims else length for axis, length in enumerate(x.shape)]
        result = _evaluate_sum("sum", x, dims, shape, size, lambda q: q.sum(dims, keepdim=True))
    return result if keepdim else result.squeeze(dims)


def total_in_float32(x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the sum over ``dim`` of float32 values, rounded to float32."""
    dims = list_axes(x, dim)
    result = None
    if dims and x.numel() and count_addends(x, dims) > 1 and not CONTEXT.redirects_sums:
        result = rounding_grids.total(x, dims, rounded=True)
    if result is None:
        return total(x, dim, keepdim).to(torch.float32)
    return result if keepdim else result.squeeze(dims)


def divide(x: Tensor, number: float) -> Tensor:
    """Divide by a number held in a tensor: a GPU multiplies by a plain number's reciprocal."""
    return x / torch.full((), number, dtype=x.dtype, device=x.device)


def mean(x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the mean over ``dim`` in float64: the sum, divided by the count."""
    summed = total(x, dim, keepdim)
    return divide(summed, float(count_summed(x, list_axes(x, dim))))


def count_summed(x: Tensor, dims: Sequence[int]) -> int:
    """Return how many values the sum over ``dims`` added, which was the last one evaluated.

    Where a batch is computed in parts, they are the values of all parts.
    """
    addends = count_addends(x, dims)
    evaluator = CONTEXT.sum_evaluator if CONTEXT.redirects_sums else None
    was_evaluated = evaluator is not None and dims and x.numel()
    return evaluator.count_addends(addends) if evaluator and was_evaluated else addends


def cumulative_total(x: Tensor, dim: int) -> Tensor:
    """Return the cumulative sum along ``dim`` in float64, on the grid of the whole row."""
    if x.ndim == 0 or x.numel() == 0:
        return x.to(torch.float64) + 0.0
    return _evaluate_sum("cumsum", x, [dim], x.shape, x.shape[dim], lambda q: q.cumsum(dim))


def add_at(
    target: Tensor, source: Tensor, dims: Sequence[int], add: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Return target + the sums that ``add(zeros, source)`` makes at each position, in float32.

    ``add`` adds in place, in any order. The grid is that of the whole source over ``dims``: which
    values are summed together is known only while they are added.
    """
    if source.numel() == 0:
        return target.clone()
    zeros = torch.zeros(target.shape, dtype=torch.float64, device=target.device)
    sums = _evaluate_sum(
        "scatter", source, dims, target.shape, source.numel(), lambda q: add(zeros.clone(), q)
    )
    return target + sums.to(target.dtype)
