"""One exact sum: operands on their grids, their integers added without rounding, the result scaled.

Every reduction of portable arithmetic passes through `evaluate`. A batch computed in parts
(`microbatch`) takes the calls over there: it needs the grids of the whole batch, and the integers
of each part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seedless.portable.constants import HIGHEST
from seedless.portable.context import CONTEXT
from seedless.portable.exact.grid import exponents, place, power, settle

Parts = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Operand:
    """A tensor, and the axes over which it shares one grid of so many bits."""

    values: Tensor
    dims: Sequence[int]
    bits: int

    def reach(self) -> int:
        """Return how many values share a grid."""
        return math.prod(self.values.shape[dim] for dim in self.dims)


@dataclass(frozen=True)
class Sum:
    """A reduction, to be evaluated.

    ``add`` takes the operands' integers and returns their exact sums, of ``shape``: in float64, or
    in two parts as `grid.split` makes them where a sum could be above 2^53, which is so for more
    than ``limit`` addends. A ``single`` addend is its own sum, and has no grid. What is not finite
    stays so in an ``endless`` sum; in others it makes every sum it takes part in NaN.
    """

    name: str
    operands: tuple[Operand, ...]
    shape: tuple[int, ...]
    addends: int
    limit: int
    add: Callable[..., Parts]
    single: bool = False
    endless: bool = True

    def tops(self) -> list[Tensor]:
        """Return the exponents of the operands' grids."""
        return [exponents(operand.values, operand.dims) for operand in self.operands]

    def parts(self, tops: Sequence[Tensor]) -> Parts:
        """Return the exact sums on the grids of these exponents."""
        pairs = zip(self.operands, tops, strict=True)
        return self.add(*(place(one.values, top, one.bits) for one, top in pairs))

    def finish(self, parts: Parts, tops: Sequence[Tensor]) -> Tensor:
        """Return the sums in float64, rounded once and scaled by the steps of the grids."""
        high, low = parts
        out = high if low is None else high.add_(low)
        for operand, top in zip(self.operands, tops, strict=True):
            step = power(top - operand.bits)
            out = out.mul_(step if self.endless else torch.where(top == HIGHEST, math.nan, step))
        return out.add_(0.0)  # a sum of nothing but negative zeros is zero on every device

    def compute(self) -> Tensor:
        """Return the sums in float64, from these operands alone."""
        if self.single:
            return self.operands[0].values.to(torch.float64) + 0.0
        tops = self.tops()
        return self.finish(self.parts(tops), tops)

    def zeros(self) -> Tensor:
        """Return zeros in place of the result."""
        return torch.zeros(self.shape, dtype=torch.float64, device=self.operands[0].values.device)


def add_parts(one: Parts, two: Parts) -> Parts:
    """Add exact sums to exact sums, in two parts from which up to 2^14 can be added."""
    (high, low), (more_high, more_low) = settle(*one), settle(*two)
    return high.add_(more_high), low.add_(more_low)


def evaluate(exact_sum: Sum) -> Tensor:
    """Return the value of a sum in float64, from the context's evaluator where there is one."""
    evaluator = CONTEXT.sum_evaluator
    return exact_sum.compute() if evaluator is None else evaluator.evaluate_sum(exact_sum)
