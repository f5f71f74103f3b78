"""Matrix products that no order, blocking, thread count or fused multiply-add can change.

Law: y[m, n] = round64(sum over k of p[m, k] q[k, n]) s[m] t[n], where p, s are the left rows and
q, t the right columns on their grids of 23 bits. A product of two such integers is below 2^46, so
float64 adds 128 of them exactly, in any order and with any fusing, and a library's own float64
product does the work. Longer sums are added exactly from chunks of 128, or one operand is split
into 2^12 upper + lower, both within 2^11: two products, each exact up to 2^19 addends. Either way
the sum is rounded once. An element whose row or column is not finite is NaN.

The error of an element is at most k 2^-22 max|row| max|column| (and one rounding): of float32's own
size where large values are multiplied by large ones. Where a row's large values are multiplied only
by a column's tiny ones and the other way round, by factors beyond 2^12 or so, float32 itself is
more precise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import torch
from torch import Tensor

from seedless.portable.constants import HALF_BITS, LOW_PART_BITS, PRODUCT_BITS
from seedless.portable.context import CONTEXT
from seedless.portable.exact.rounding_grid import round_to_grid, split
from seedless.portable.exact.sums import ExactSum, Operand, Parts, add_parts, evaluate
from seedless.portable.kernels import products, rounding_grids
from seedless.portable.kernels.products import get_scratch

MAX_PRODUCT_ADDENDS = 1 << (53 - 2 * PRODUCT_BITS)  # of one exact product: 2^7
MAX_HALVED_ADDENDS = 1 << (53 - PRODUCT_BITS - HALF_BITS + 1)  # of two, one operand split: 2^19
MIN_CHUNKED_ELEMENTS = 1 << 14  # of a result, from which chunks are faster on a CPU
_CHUNK_SHIFT = 1.5 * 2.0 ** (52 + LOW_PART_BITS)  # as in `rounding_grid.split`


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """(batch, m, k) x (batch, k, n) -> float64 (batch, m, n).

    Each element is a function of its own row and column alone, not of the batch's size.
    """
    shape = (left.shape[0], left.shape[1], right.shape[2])
    if 0 in (*left.shape, right.shape[2]):
        return torch.zeros(shape, dtype=torch.float64, device=left.device)
    return evaluate(describe_product(left, right))


def multiply_and_round(left: Tensor, right: Tensor, inner: int = 0) -> Tensor:
    """(batch, m, k) x (batch, k, n) -> the product, rounded to the left one's type.

    With ``inner``, n is (samples, inner) and the result (samples, batch m, inner): a convolution's.
    """
    is_plain = left.dtype == torch.float32 and left.numel() and right.numel()
    if is_plain and not CONTEXT.redirects_sums:
        return _multiply_float32(left, right, inner)
    return _round(multiply(left, right), inner, left.dtype)


def _multiply_float32(left: Tensor, right: Tensor, inner: int) -> Tensor:
    """Return the same for float32 operands, by compiled kernels as far as there are any."""
    # [Step 1] Find the grids of the left rows and the right columns.
    product = describe_product(left, right)
    exponents = product.find_exponents()
    # [Step 2] On a CPU, one call places the operands, multiplies chunks and rounds the sums.
    result = products.multiply(left, right, exponents, MAX_PRODUCT_ADDENDS, inner)
    if result is not None:
        return result
    # [Step 3] Elsewhere, multiply the integers exactly, and round in one kernel or in several.
    high, low = product.add_integers(exponents)
    result = rounding_grids.join_parts(high, low, exponents[0], exponents[1], inner)
    if result is not None:
        return result
    return _round(product.scale((high, low), exponents), inner, torch.float32)


def _round(product: Tensor, inner: int, dtype: torch.dtype) -> Tensor:
    """Return a float64 product (batch, m, n) as `multiply_and_round` returns it."""
    if inner:
        batch, m, _ = product.shape
        product = product.view(batch * m, -1, inner).transpose(0, 1)
    return product.to(dtype, memory_format=torch.contiguous_format)


def describe_product(left: Tensor, right: Tensor) -> Product:
    """Return the product of matrices that are not empty, to be evaluated."""
    if left.shape[0] != right.shape[0] or left.shape[2] != right.shape[1]:
        raise RuntimeError(
            "expected matrices (batch, m, k) and (batch, k, n) for a product, got "
            f"{tuple(left.shape)} and {tuple(right.shape)}"
        )
    operands = Operand(left, [2], PRODUCT_BITS), Operand(right, [1], PRODUCT_BITS)
    shape, addends = (left.shape[0], left.shape[1], right.shape[2]), left.shape[2]
    return Product(
        *("product", operands, shape, addends, MAX_PRODUCT_ADDENDS, multiply_integers),
        keeps_infinity=False,
    )


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


@dataclass(frozen=True)
class Product(ExactSum):
    """A product whose operands are rounded to their grids chunk by chunk, where that is faster."""

    def add_integers(self, exponents: Sequence[Tensor]) -> Parts:
        """Return the exact product on the grids of these exponents."""
        left, right = (operand.values for operand in self.operands)
        if self.addends > MAX_PRODUCT_ADDENDS:
            if left.is_cpu and prod(self.shape) >= MIN_CHUNKED_ELEMENTS:
                return _multiply_chunks(left, right, exponents, self.shape)
            if self.addends <= MAX_HALVED_ADDENDS:
                parts = _multiply_split(left, right, exponents)
                if parts is not None:
                    return parts
        return super().add_integers(exponents)


def _multiply_chunks(
    left: Tensor, right: Tensor, exponents: Sequence[Tensor], shape: tuple[int, ...]
) -> Parts:
    """Return the product from chunks of k, whose parts `rounding_grid.split` defines.

    This is one product's work, with passes over the result for each chunk. They are fast because
    their memory is used again.
    """
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
