"""Rounding to a power-of-two grid, from which sums are exact in any order.

Law: with e the least integer such that every |x| of a row is below 2^e, x becomes the integer
q = round(x 2^(bits - e)), ties to even, |q| <= 2^bits, and x is about q 2^(e - bits). The grid is a
function of the row's largest magnitude, so neither order nor zeros added to the row can change q.

A row with an infinity or a NaN keeps it in q; its finite values may round to zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.constants import HIGHEST, LIMB, LOWEST
from seedless.portable.kernels import grids
from seedless.portable.kernels.scratch_memory import borrow


def power(exponent: Tensor) -> Tensor:
    """Return 2^exponent in float64, exactly, from the bits: int64 in -1022 .. 1023."""
    return (exponent + 1023).bitwise_left_shift_(52).view(torch.float64)


def exponents(x: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the least e with max|x| < 2^e over ``dims``, which stay as axes of length 1."""
    x, dims = x.detach(), list(dims)
    found = grids.exponents(x, dims)
    if found is not None:
        return found
    # From both ends, not from |x|: that would be a copy of x.
    top = torch.maximum(x.amax(dims, keepdim=True), x.amin(dims, keepdim=True).neg_())
    top = top.to(torch.float64).abs_()
    return (top.view(torch.int64) >> 52).sub_(1022).clamp_(LOWEST, HIGHEST)


def place(x: Tensor, exponent: Tensor, bits: int, lent: str | None = None) -> Tensor:
    """Return x as integers of the grid with this exponent, new or in ``lent`` memory."""
    memory = None if lent is None else borrow(lent, x.shape)
    found = grids.place(x, exponent, bits, into=memory)
    if found is not None:
        return found[0]
    scale = power(bits - exponent)
    if memory is not None:
        wide = memory.copy_(x).mul_(scale)
    else:
        wide = x * scale if x.dtype == torch.float64 else x.to(torch.float64).mul_(scale)
    return wide.round_()


def to_grid(x: Tensor, dims: Sequence[int], bits: int) -> tuple[Tensor, Tensor]:
    """Return integers q in float64 and the step of their grid, so that x is about q step."""
    exponent = exponents(x, dims)
    return place(x, exponent, bits), power(exponent - bits)


def split(q: Tensor, bits: int = LIMB) -> tuple[Tensor, Tensor]:
    """Cut integers of 53 bits into high + low, high a multiple of 2^bits and |low| <= 2^(bits - 1).

    Adding and subtracting 1.5 2^(52 + bits) rounds to such a multiple. Each part can then be summed
    in any order without rounding where q itself could not.
    """
    shield = 1.5 * 2.0 ** (52 + bits)
    high = (q + shield).sub_(shield)
    low = (q - high).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)  # infinity stays in the high part
    return high, low


def settle(high: Tensor, low: Tensor | None) -> tuple[Tensor, Tensor]:
    """Cut an exact sum into multiples of 2^27 below 2^66 and a rest below 2^39, exactly.

    2^14 such pairs can be added, part by part, without rounding. ``high`` is an integer of 53 bits,
    or with ``low`` as such a one a multiple of 2^12 up to 2^65.
    """
    if low is None:
        return split(high)
    top, rest = split(high, 39)
    carry, low = split(low)
    return top.add_(carry), rest.add_(low)
