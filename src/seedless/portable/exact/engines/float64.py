"""Exact products of integers by a library's own float64 matrix products.

Law: a product of two integers of 23 bits is below 2^46, so float64 adds 128 of them exactly, in any
order and with any fusing. Longer sums are added exactly from chunks of 128, or one operand is split
into 2^12 upper + lower, both within 2^11: two products, each exact up to 2^19 addends.
"""

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from seedless.portable.constants import (
    HALF_BITS,
    LOW_PART_BITS,
    MAX_PRODUCT_ADDENDS,
    PRODUCT_BITS,
)
from seedless.portable.exact.rounding_grid import round_to_grid, split
from seedless.portable.exact.sums import Parts, add_parts
from seedless.portable.kernels import rounding_grids
from seedless.portable.kernels.products import get_scratch

MAX_HALVED_ADDENDS = 1 << (53 - PRODUCT_BITS - HALF_BITS + 1)  # of two, one operand split: 2^19
MIN_CHUNKED_ELEMENTS = 1 << 14  # of a result, from which chunks are faster on a CPU
_CHUNK_SHIFT = 1.5 * 2.0 ** (52 + LOW_PART_BITS)  # as in `rounding_grid.split`


def multiply(left: Tensor, right: Tensor, exponents: Sequence[Tensor]) -> Parts:
    """Return the exact product of (batch, m, k) and (batch, k, n) on grids of these exponents.

    The operands are rounded to their grids chunk by chunk, where that is faster.
    """
    addends = left.shape[2]
    if addends > MAX_PRODUCT_ADDENDS:
        elements = left.shape[0] * left.shape[1] * right.shape[2]
        if left.is_cpu and elements >= MIN_CHUNKED_ELEMENTS:
            return _multiply_chunks(left, right, exponents)
        if addends <= MAX_HALVED_ADDENDS:
            parts = _multiply_split(left, right, exponents)
            if parts is not None:
                return parts
    p = round_to_grid(left, exponents[0], PRODUCT_BITS)
    q = round_to_grid(right, exponents[1], PRODUCT_BITS)
    return multiply_integers(p, q)


def multiply_integers(p: Tensor, q: Tensor) -> Parts:
    """Return the exact product of integers of at most 23 bits held in float64, in two parts."""
    length = p.shape[2]
    if length <= MAX_PRODUCT_ADDENDS:
        return torch.bmm(p, q), None
    pieces = (
        slice(start, start + MAX_HALVED_ADDENDS) for start in range(0, length, MAX_HALVED_ADDENDS)
    )
    return reduce(add_parts, (_multiply_halves(p[:, :, piece], q[:, piece]) for piece in pieces))


def _multiply_halves(p: Tensor, q: Tensor) -> Parts:
    """Return the product in two parts, the smaller operand split into whole 2^12 and the rest."""
    if p.numel() <= q.numel():
        upper, lower = split(p, HALF_BITS)
        return torch.bmm(upper, q), torch.bmm(lower, q)
    upper, lower = split(q, HALF_BITS)
    return torch.bmm(p, upper), torch.bmm(p, lower)


def _multiply_chunks(left: Tensor, right: Tensor, exponents: Sequence[Tensor]) -> Parts:
    """Return the product from chunks of k, whose parts `rounding_grid.split` defines.

    This is one product's work, with passes over the result for each chunk. They are fast because
    their memory is used again.
    """
    shape = (left.shape[0], left.shape[1], right.shape[2])
    high, low = torch.zeros((2, *shape), dtype=torch.float64, device="cpu")
    product, upper = get_scratch("product", shape), get_scratch("upper", shape)
    for start in range(0, left.shape[2], MAX_PRODUCT_ADDENDS):
        # [Step 1] Round a chunk of both operands to the grids of the whole rows and columns.
        chunk = slice(start, start + MAX_PRODUCT_ADDENDS)
        rows, columns = left[:, :, chunk], right[:, chunk]
        p = round_to_grid(rows, exponents[0], PRODUCT_BITS, get_scratch("left", rows.shape))
        q = round_to_grid(columns, exponents[1], PRODUCT_BITS, get_scratch("right", columns.shape))
        # [Step 2] Multiply: exact, since a chunk has at most 128 addends.
        torch.bmm(p, q, out=product)
        # [Step 3] Split the product and add its parts to those of the chunks before.
        if not rounding_grids.add_chunk(product, high, low):
            torch.add(product, _CHUNK_SHIFT, out=upper).sub_(_CHUNK_SHIFT)
            high.add_(upper)
            low.add_(product.sub_(upper))
    return high, low


def _multiply_split(left: Tensor, right: Tensor, exponents: Sequence[Tensor]) -> Parts | None:
    """Return the product in two parts, the smaller operand split as a kernel rounds it."""
    first = left.numel() <= right.numel()
    p = rounding_grids.round_to_grid(left, exponents[0], PRODUCT_BITS, in_halves=first)
    q = rounding_grids.round_to_grid(right, exponents[1], PRODUCT_BITS, in_halves=not first)
    if p is None or q is None:
        return None
    upper, lower = p if first else q
    assert lower is not None
    if first:
        return torch.bmm(upper, q[0]), torch.bmm(lower, q[0])
    return torch.bmm(p[0], upper), torch.bmm(p[0], lower)
