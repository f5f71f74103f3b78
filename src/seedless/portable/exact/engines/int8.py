"""Exact products of integers by int8 matrix products with int32 sums: no float64 product is used.

Law: an integer |p| <= 2^23 is d0 + d1 64 + d2 64^2 + d3 64^3 with four digits of -32 .. 32. With
the digits e of q, the sum over k of p q is the sum over w of 64^w S_w, where S_w adds the products
of all digits d_i, e_j with i + j = w. Such a product is at most 2^10, and S_w has at most four of
them for each k, so with the 2^16 addends of one call it stays within 2^28, and int32 is exact.
Float64 then adds the 64^w S_w element by element: each partial sum is an integer that it holds.

Three digits of eight bits would need 9 products in place of 16, but they miss the range by one:
they have 2^24 values, and -2^23 .. 2^23 are 2^24 + 1. Digits of six bits have a second reason.
Processors without an int8 dot product add pairs of products in int16, which saturates: some
libraries return wrong sums of full int8 values there. Even with one operand moved by 128 to make it
unsigned, as they do, a pair of these digits is at most 2 x 160 x 32, well within int16.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import reduce

import torch
from torch import Tensor

from seedless.portable.constants import MAX_PRODUCT_ADDENDS, PRODUCT_BITS
from seedless.portable.context import CONTEXT
from seedless.portable.exact.rounding_grid import round_to_grid
from seedless.portable.exact.sums import Parts, add_parts

DIGIT_BITS, DIGITS = 6, 4
MAX_DIGIT = 1 << (DIGIT_BITS - 1)
_OFFSET = sum(MAX_DIGIT << DIGIT_BITS * place for place in range(DIGITS - 1))
MAX_INT8_ADDENDS = 1 << 16  # of one product of digits
LOW_PART_WEIGHTS = 2  # the rest makes a multiple of 2^12, as `rounding_grid.normalize_parts` needs
# CUDA's int8 product takes more than 16 rows, and other sizes in steps of 8. It has been seen to
# return wrong sums where rows lay at odd distances in memory: zeros fill all sizes up.
MIN_ROWS, SIZE_STEP = 32, 16


def multiply(left: Tensor, right: Tensor, exponents: Sequence[Tensor]) -> Parts:
    """Return the exact product of (batch, m, k) and (batch, k, n) on grids of these exponents."""
    p = round_to_grid(left, exponents[0], PRODUCT_BITS)
    q = round_to_grid(right, exponents[1], PRODUCT_BITS)
    return multiply_integers(p, q)


def multiply_integers(p: Tensor, q: Tensor) -> Parts:
    """Return the exact product of integers of at most 23 bits held in float64."""
    starts = range(0, p.shape[2], MAX_INT8_ADDENDS)
    pieces = (slice(start, start + MAX_INT8_ADDENDS) for start in starts)
    # Without oneDNN a CPU's int8 product is a plain loop.
    with CONTEXT.allow_onednn() if p.is_cpu else nullcontext():
        return reduce(add_parts, (_multiply_piece(p[:, :, piece], q[:, piece]) for piece in pieces))


def _multiply_piece(p: Tensor, q: Tensor) -> Parts:
    """Return the product of at most 2^16 addends."""
    (batch, m, k), n = p.shape, q.shape[2]
    # [Step 1] Write the digits of a row side by side: the left ones from the lowest up, the right
    # ones from the highest down. Digits whose weights have one sum then face each other.
    width = _round_up(k, SIZE_STEP)
    left = _list_digits(p, _round_up(max(m, MIN_ROWS), SIZE_STEP), width)
    right = _list_digits(q.mT, _round_up(n, SIZE_STEP), width, highest_first=True)
    high = p.new_zeros((batch, m, n))
    low = torch.zeros_like(high) if k > MAX_PRODUCT_ADDENDS else None
    # [Step 2] For each weight, lowest first, multiply all digits that have it in one int8 product.
    for weight in range(2 * DIGITS - 1):
        first, last = max(0, weight - DIGITS + 1), min(weight, DIGITS - 1)  # digits of the left
        faced = DIGITS - 1 - weight  # by how many places the right digits are further on
        rows = left[:, :, first * width : (last + 1) * width]
        columns = right[:, :, (first + faced) * width : (last + 1 + faced) * width]
        total = high if low is None or weight >= LOW_PART_WEIGHTS else low
        # [Step 3] Add the int32 sums, times their weight: exact in float64.
        for number in range(batch):
            sums = torch._int_mm(rows[number], columns[number].t())
            total[number].add_(sums[:m, :n], alpha=2.0 ** (DIGIT_BITS * weight))
    return high, low


def _list_digits(integers: Tensor, rows: int, width: int, highest_first: bool = False) -> Tensor:
    """Return the digits of (batch, r, k) as int8 (batch, ``rows``, 4 x ``width``), zeros around.

    A row that is not finite has any digits: its results are NaN, whatever they are.
    """
    batch, r, k = integers.shape
    digits = integers.new_zeros((batch, rows, DIGITS, width), dtype=torch.int8)
    # [Step 1] Add 32 in each place but the highest: then digits are plain groups of bits, and what
    # is subtracted again from each makes them -32 .. 31, with no carry to pass on.
    moved = integers.to(torch.int32, memory_format=torch.contiguous_format).add_(_OFFSET)
    for place in range(DIGITS):
        # [Step 2] Keep the lowest eight bits of what is left, then of these the six of the digit.
        digit = digits[:, :r, DIGITS - 1 - place if highest_first else place, :k]
        digit.copy_(moved)
        if place < DIGITS - 1:
            digit.bitwise_and_(2 * MAX_DIGIT - 1).sub_(MAX_DIGIT)
            moved.bitwise_right_shift_(DIGIT_BITS)
    return digits.view(batch, rows, DIGITS * width)


def _round_up(size: int, step: int) -> int:
    """Return the least multiple of ``step`` that is not below ``size``."""
    return -(-size // step) * step
