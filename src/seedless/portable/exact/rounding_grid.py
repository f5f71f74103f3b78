"""Rounding to a power-of-two grid, from which sums are exact in any order.

Law: with e the least integer such that every |x| of a row is below 2^e, x becomes the integer
q = round(x 2^(bits - e)), ties to even, |q| <= 2^bits, and x is about q 2^(e - bits). The grid is a
function of the row's largest magnitude, so neither order nor zeros added to the row can change q.

A row with an infinity or a NaN keeps it in q; its finite values may round to zero.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.constants import HIGHEST_EXPONENT, LOW_PART_BITS, LOWEST_EXPONENT
from seedless.portable.kernels import rounding_grids


def power_of_two(exponent: Tensor) -> Tensor:
    """Return 2^exponent in float64, exactly, from the bits: int64 in -1022 .. 1023."""
    return (exponent + 1023).bitwise_left_shift_(52).view(torch.float64)


def find_exponents(x: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the least e with max|x| < 2^e over ``dims``, which stay as axes of length 1."""
    x, dims = x.detach(), list(dims)
    exponents = rounding_grids.find_exponents(x, dims)
    if exponents is not None:
        return exponents
    # [Step 1] Find the largest magnitude from both ends, not from |x|, which would be a copy of x.
    largest = torch.maximum(x.amax(dims, keepdim=True), x.amin(dims, keepdim=True).neg_())
    # [Step 2] Read its exponent: float64 is 2^(bits >> 52 - 1023) times a number in [1, 2).
    bits = largest.to(torch.float64).abs_().view(torch.int64)
    return (bits >> 52).sub_(1022).clamp_(LOWEST_EXPONENT, HIGHEST_EXPONENT)


def round_to_grid(x: Tensor, exponent: Tensor, bits: int, memory: Tensor | None = None) -> Tensor:
    """Return x as integers in float64 on the grid of this exponent, in ``memory`` where given."""
    rounded = rounding_grids.round_to_grid(x, exponent, bits, memory=memory)
    if rounded is not None:
        return rounded[0]
    scale = power_of_two(bits - exponent)
    if memory is not None:
        scaled = memory.copy_(x).mul_(scale)
    else:
        scaled = x * scale if x.dtype == torch.float64 else x.to(torch.float64).mul_(scale)
    return scaled.round_()


def split(q: Tensor, bits: int = LOW_PART_BITS) -> tuple[Tensor, Tensor]:
    """Split integers of 53 bits into high + low: a multiple of 2^bits, and |low| <= 2^(bits - 1).

    Each part can be summed in any order without rounding where q itself could not.
    """
    # [Step 1] Near 1.5 2^(52 + bits) float64 holds multiples of 2^bits alone: adding it rounds to
    # one, and subtracting it again is exact.
    shift = 1.5 * 2.0 ** (52 + bits)
    high = (q + shift).sub_(shift)
    # [Step 2] The rest is exact too. An infinity stays in the high part.
    low = (q - high).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
    return high, low


def normalize_parts(high: Tensor, low: Tensor | None) -> tuple[Tensor, Tensor]:
    """Split an exact sum into multiples of 2^27 below 2^66 and a rest below 2^39, exactly.

    2^14 such pairs can be added, part by part, without rounding. ``high`` is an integer of 53 bits,
    or where ``low`` is such an integer, a multiple of 2^12 up to 2^65.
    """
    if low is None:
        return split(high)
    top, rest = split(high, 39)
    carry, low = split(low)
    return top.add_(carry), rest.add_(low)
