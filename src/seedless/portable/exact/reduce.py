"""Sums that no order can change.

Law: sum(x) = round64(sum of q) step, with q and step from `to_grid` at 36 bits over the summed
axes. Up to 2^17 values float64 adds the integers q exactly; beyond, their two parts are added
exactly and joined with one rounding, which is the same function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from seedless.portable.constants import SUM_BITS
from seedless.portable.context import CONTEXT
from seedless.portable.exact.grid import split
from seedless.portable.exact.sums import Operand, Parts, Sum, evaluate
from seedless.portable.kernels import grids

BITS = SUM_BITS
Add = Callable[[Tensor], Tensor]
DIRECT = 1 << (53 - BITS)  # so many integers of 36 bits add up to at most 2^53


def axes(x: Tensor, dim: int | Sequence[int] | None) -> list[int]:
    """Return the axes to reduce, counted from 0; none named means all."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(x.ndim))
    named = [dim] if isinstance(dim, int) else list(dim)
    found = [axis % max(x.ndim, 1) for axis in named] if x.ndim else []
    if len(set(found)) < len(found):
        raise RuntimeError(f"expected every axis once in dim, got {tuple(named)}")
    return found


def count(x: Tensor, dims: Sequence[int]) -> int:
    """Return how many values each sum takes."""
    return math.prod(x.shape[axis] for axis in dims)


def add_exactly(q: Tensor, addends: int, add: Add) -> Parts:
    """Return ``add(q)`` of integers |q| <= 2^36 without rounding; ``add`` may take any order."""
    if addends <= DIRECT:
        return add(q), None
    high, low = split(q)
    return add(high), add(low)


def _sum(
    name: str, x: Tensor, dims: Sequence[int], shape: Sequence[int], addends: int, add: Add
) -> Tensor:
    """Evaluate the sum of x's integers on their grids over ``dims``."""
    x = x if x.is_floating_point() else x.to(torch.float64)  # a mask has no negative
    operand = Operand(x, dims, BITS)
    whole = partial(add_exactly, addends=addends, add=add)
    single = name == "sum" and addends == 1
    return evaluate(Sum(name, (operand,), tuple(shape), addends, DIRECT, whole, single))


def total(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Return the sum over ``dim`` in float64."""
    dims = axes(x, dim)
    size = count(x, dims)
    if not dims:
        return x.to(torch.float64) + 0.0
    if x.numel() == 0:
        return torch.sum(x.to(torch.float64), dims, keepdim)
    fused = None if CONTEXT.redirects_sums or size == 1 else grids.total(x, dims)
    if fused is not None:
        return fused if keepdim else fused.squeeze(dims)
    shape = [1 if axis in dims else length for axis, length in enumerate(x.shape)]
    out = _sum("sum", x, dims, shape, size, lambda q: q.sum(dims, keepdim=True))
    return out if keepdim else out.squeeze(dims)


def divide(x: Tensor, number: float) -> Tensor:
    """Divide by a number held in a tensor: a GPU multiplies by a plain number's reciprocal."""
    return x / torch.full((), number, dtype=x.dtype, device=x.device)


def mean(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Return the mean over ``dim`` in float64: the sum, divided by the count."""
    return divide(total(x, dim, keepdim), float(count(x, axes(x, dim))))


def running_total(x: Tensor, dim: int) -> Tensor:
    """Return the cumulative sum along ``dim`` in float64, on the grid of the whole row."""
    if x.ndim == 0 or x.numel() == 0:
        return x.to(torch.float64) + 0.0
    return _sum("cumsum", x, [dim], x.shape, x.shape[dim], lambda q: q.cumsum(dim))


def scatter(
    target: Tensor, source: Tensor, dims: Sequence[int], add: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Return target + the sums of what ``add(zeros, source)`` brings to each place, in float32.

    ``add`` adds in place, in any order. The grid is that of the whole source: what is summed
    together is known only while it is added.
    """
    if source.numel() == 0:
        return target.clone()
    zeros = torch.zeros(target.shape, dtype=torch.float64, device=target.device)
    sums = _sum(
        "scatter", source, dims, target.shape, source.numel(), lambda q: add(zeros.clone(), q)
    )
    return target + sums.to(target.dtype)
