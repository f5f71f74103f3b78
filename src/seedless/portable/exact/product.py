"""Matrix products that no order, blocking, thread count or fused multiply-add can change.

Law: y[m, n] = round64(sum over k of p[m, k] q[k, n]) s[m] t[n], where p, s are the left rows and
q, t the right columns on their grids of 23 bits. The sum of integers is exact and rounded once, so
whatever computes that integer gives the same bits: `engines` has two ways, from float64 products
and from int8 ones. An element whose row or column is not finite is NaN.

The error of an element is at most k 2^-22 max|row| max|column| (and one rounding): of float32's own
size where large values are multiplied by large ones. Where a row's large values are multiplied only
by a column's tiny ones and the other way round, by factors beyond 2^12 or so, float32 itself is
more precise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seedless.portable.constants import MAX_PRODUCT_ADDENDS, PRODUCT_BITS
from seedless.portable.context import CONTEXT
from seedless.portable.exact.engines import find_engine
from seedless.portable.exact.sums import ExactSum, Operand, Parts, evaluate
from seedless.portable.kernels import fused_product, products, rounding_grids


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """(batch, m, k) x (batch, k, n) -> float64 (batch, m, n).

    Each element is a function of its own row and column alone, not of the batch's size.
    """
    shape = (left.shape[0], left.shape[1], right.shape[2])
    if 0 in (*left.shape, right.shape[2]):
        return torch.zeros(shape, dtype=torch.float64, device=left.device)
    return evaluate(describe_product(left, right))


def multiply_and_add(left: Tensor, right: Tensor, bias: Tensor) -> Tensor:
    """(batch, m, k) x (batch, k, n) -> the product, rounded to float32, plus the bias (n,)."""
    result = None
    if bias.shape == right.shape[2:] and bias.stride(0) == 1 and not CONTEXT.redirects_sums:
        result = _multiply_by_kernel(left, right, bias=bias)
    return bias + multiply_and_round(left, right) if result is None else result


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
    # [Step 1] On a CPU one kernel does all of it, and two on a GPU that can.
    result = _multiply_by_kernel(left, right, inner)
    if result is not None:
        return result
    # [Step 2] Find the grids of the left rows and the right columns.
    product = describe_product(left, right)
    exponents = product.find_exponents()
    # [Step 3] Elsewhere, multiply the integers exactly, and round in one kernel or in several.
    high, low = product.add_integers(exponents)
    result = rounding_grids.join_parts(high, low, exponents[0], exponents[1], inner)
    if result is not None:
        return result
    return _round(product.scale((high, low), exponents), inner, torch.float32)


def _multiply_by_kernel(
    left: Tensor, right: Tensor, inner: int = 0, bias: Tensor | None = None
) -> Tensor | None:
    """Return the product from float32 to float32; None where no kernel does all of it."""
    check_shapes(left, right)
    if left.is_cpu:
        result = products.multiply(left, right, inner, bias)
        if result is not None:
            return result
    return fused_product.multiply(left, right, inner, bias)


def check_shapes(left: Tensor, right: Tensor) -> None:
    """Refuse matrices that cannot be multiplied: kernels would read beyond them."""
    if left.shape[0] != right.shape[0] or left.shape[2] != right.shape[1]:
        raise RuntimeError(
            "expected matrices (batch, m, k) and (batch, k, n) for a product, got "
            f"{tuple(left.shape)} and {tuple(right.shape)}"
        )


def _round(product: Tensor, inner: int, dtype: torch.dtype) -> Tensor:
    """Return a float64 product (batch, m, n) as `multiply_and_round` returns it."""
    if inner:
        batch, m, _ = product.shape
        product = product.view(batch * m, -1, inner).transpose(0, 1)
    return product.to(dtype, memory_format=torch.contiguous_format)


def describe_product(left: Tensor, right: Tensor) -> Product:
    """Return the product of matrices that are not empty, to be evaluated."""
    check_shapes(left, right)
    operands = Operand(left, [2], PRODUCT_BITS), Operand(right, [1], PRODUCT_BITS)
    shape, addends = (left.shape[0], left.shape[1], right.shape[2]), left.shape[2]
    return Product(
        *("product", operands, shape, addends, MAX_PRODUCT_ADDENDS, find_engine(left.device)),
        keeps_infinity=False,
    )


@dataclass(frozen=True)
class Product(ExactSum):
    """A product: its ``add`` is an engine, which also rounds the operands to their grids."""

    def add_integers(self, exponents: Sequence[Tensor]) -> Parts:
        """Return the exact product on the grids of these exponents."""
        left, right = (operand.values for operand in self.operands)
        return self.add(left, right, exponents)
