"""Matrix products that no order, blocking, thread count or fused multiply-add can change.

Law: y[m, n] = round64(sum over k of p[m, k] q[k, n]) s[m] t[n], where p, s are the left rows and
q, t the right columns on their grids of 23 bits. A product of two such integers is below 2^46, so
float64 adds 128 of them exactly, in any order and with any fusing, and a library's own float64
product does the work. Longer sums are added exactly from chunks of 128, or one operand is cut into
2^12 upper + lower, both within 2^11: two products, each exact up to 2^19 addends. Either way the
sum is rounded once. An element whose row or column is not finite is NaN.

The error of an element is at most k 2^-22 max|row| max|column| (and one rounding): of float32's own
size where large meets large. Where a row's large values meet only a column's tiny ones and the
other way round, by factors beyond 2^12 or so, float32 itself keeps more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import torch
from torch import Tensor

from seedless.portable.constants import HALF, LIMB, PRODUCT_BITS
from seedless.portable.context import CONTEXT
from seedless.portable.exact.grid import place
from seedless.portable.exact.sums import Operand, Parts, Sum, add_parts, evaluate
from seedless.portable.kernels import grids, products
from seedless.portable.kernels.scratch_memory import borrow

BITS = PRODUCT_BITS
SHORT = 1 << (53 - 2 * BITS)  # addends of one product
LONG = 1 << (53 - BITS - HALF + 1)  # addends of two products
CHUNKED = 1 << 14  # elements of a product from which a CPU had better take chunks
_SHIELD = 1.5 * 2.0 ** (52 + HALF)
_CHUNK_SHIELD = 1.5 * 2.0 ** (52 + LIMB)


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """(batch, m, k) x (batch, k, n) -> float64 (batch, m, n).

    Each element is a function of its own row and column alone: a batch's size cannot show.
    """
    shape = (left.shape[0], left.shape[1], right.shape[2])
    if 0 in (*left.shape, right.shape[2]):
        return torch.zeros(shape, dtype=torch.float64, device=left.device)
    return evaluate(describe(left, right))


def multiply_narrow(left: Tensor, right: Tensor, inner: int = 0) -> Tensor:
    """(batch, m, k) x (batch, k, n) -> the product, rounded to the left one's type.

    With ``inner``, n is (samples, inner) and the result (samples, batch m, inner): a convolution's.
    """
    if (
        not CONTEXT.redirects_sums
        and left.numel()
        and right.numel()
        and left.dtype == torch.float32
    ):
        product = describe(left, right)
        tops = product.tops()
        found = products.multiply(left, right, tops, SHORT, inner)
        if found is not None:
            return found
        high, low = product.parts(tops)
        found = grids.join(high, low, tops[0], tops[1], inner)
        if found is not None:
            return found
        out = product.finish((high, low), tops)
    else:
        out = multiply(left, right)
    if not inner:
        return out.to(left.dtype)
    out = out.view(out.shape[0] * out.shape[1], -1, inner).transpose(0, 1)
    return out.to(left.dtype, memory_format=torch.contiguous_format)


def describe(left: Tensor, right: Tensor) -> Product:
    """Return the product of matrices that are not empty, to be evaluated."""
    if left.shape[0] != right.shape[0] or left.shape[2] != right.shape[1]:
        raise RuntimeError(
            "expected matrices (batch, m, k) and (batch, k, n) for a product, got "
            f"{tuple(left.shape)} and {tuple(right.shape)}"
        )
    operands = Operand(left, [2], BITS), Operand(right, [1], BITS)
    shape, addends = (left.shape[0], left.shape[1], right.shape[2]), left.shape[2]
    return Product("product", operands, shape, addends, SHORT, multiply_integers, endless=False)


def multiply_integers(p: Tensor, q: Tensor) -> Parts:
    """Return the exact product of integers of at most 23 bits held in float64, in two parts."""
    length = p.shape[2]
    if length <= SHORT:
        return torch.bmm(p, q), None
    if length <= LONG:
        return _multiply_halves(p, q)
    pieces = (slice(start, start + LONG) for start in range(0, length, LONG))
    return reduce(add_parts, (_multiply_halves(p[:, :, piece], q[:, piece]) for piece in pieces))


@dataclass(frozen=True)
class Product(Sum):
    """A product whose operands are placed on their grids chunk by chunk, where that is quicker."""

    def parts(self, tops: Sequence[Tensor]) -> Parts:
        """Return the exact product on the grids of these exponents."""
        left, right = (operand.values for operand in self.operands)
        if left.is_cpu and self.addends > SHORT and prod(self.shape) >= CHUNKED:
            return _multiply_chunks(left, right, tops, self.shape)
        if SHORT < self.addends <= LONG:
            found = _multiply_placed(left, right, tops)
            if found is not None:
                return found
        return super().parts(tops)


def _multiply_chunks(
    left: Tensor, right: Tensor, tops: Sequence[Tensor], shape: tuple[int, ...]
) -> Parts:
    """Return the product from chunks whose parts, as `grid.split` cuts them, are added.

    One product's work, but passes over the result for each chunk: in memory that is used again,
    which on a CPU is what makes them cheap.
    """
    high, low = torch.zeros((2, *shape), dtype=torch.float64, device="cpu")
    product, upper = borrow("product", shape), borrow("upper", shape)
    for start in range(0, left.shape[2], SHORT):
        piece = slice(start, start + SHORT)
        p = place(left[:, :, piece], tops[0], BITS, "left")
        q = place(right[:, piece], tops[1], BITS, "right")
        torch.bmm(p, q, out=product)
        if not grids.add_chunk(product, high, low):
            torch.add(product, _CHUNK_SHIELD, out=upper).sub_(_CHUNK_SHIELD)
            high.add_(upper)
            low.add_(product.sub_(upper))
    return high, low


def _multiply_placed(left: Tensor, right: Tensor, tops: Sequence[Tensor]) -> Parts | None:
    """Return the product in two parts, the smaller operand cut in two as it is placed."""
    first = left.numel() <= right.numel()
    p = grids.place(left, tops[0], BITS, halves=first)
    q = None if p is None else grids.place(right, tops[1], BITS, halves=not first)
    if p is None or q is None:
        return None
    upper, lower = (p[0], p[1]) if first else (q[0], q[1])
    assert lower is not None
    if first:
        return torch.bmm(upper, q[0]), torch.bmm(lower, q[0])
    return torch.bmm(p[0], upper), torch.bmm(p[0], lower)


def _multiply_halves(p: Tensor, q: Tensor) -> Parts:
    """Return the product in a part of whole 2^12 and the rest."""
    if p.numel() <= q.numel():
        upper, lower = _halve(p)
        return torch.bmm(upper, q), torch.bmm(lower, q)
    upper, lower = _halve(q)
    return torch.bmm(p, upper), torch.bmm(p, lower)


def _halve(p: Tensor) -> tuple[Tensor, Tensor]:
    """Cut integers |p| <= 2^23 into upper + lower, upper a multiple of 2^12, |lower| <= 2^11."""
    upper = (p + _SHIELD).sub_(_SHIELD)
    return upper, p - upper
