"""Powers, logarithms of several arguments and the gamma function, in float64 and rounded once."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable import constants as c
from seedless.portable.exact import elementary as e
from seedless.portable.exact import gamma
from seedless.portable.exact.sums import list_axes, total
from seedless.portable.ops.elementwise import Implementation, in_float64


def raise_to_number(x: Tensor, y: float) -> Tensor:
    """Return x^y of a tensor and a number; torch's whole powers of integers are exact."""
    if not x.is_floating_point() and not isinstance(y, float):
        return torch.pow(x, y)
    return in_float64(lambda v: e.raise_power(v, float(y)))(x)


def raise_number(x: float, y: Tensor) -> Tensor:
    """Return x^y of a positive number and a tensor."""
    if not x > 0:
        raise NumericsError(
            f"portable arithmetic raises positive numbers to a tensor, got {x!r}; make it a tensor"
        )
    base = torch.full((), float(x), dtype=torch.float64, device=y.device)
    return in_float64(lambda v: e.exp(v * e.log(base)))(y)


def raise_tensor(x: Tensor, y: Tensor) -> Tensor:
    """Return x^y of two tensors."""
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        return torch.pow(x, y)
    return _raise_float64(x.to(torch.float64), y.to(torch.float64)).to(dtype)


def _raise_float64(x: Tensor, y: Tensor) -> Tensor:
    """Return exp(y log|x|) with the sign of x where y is odd; NaN for a root of a negative x."""
    out = e.exp(y * e.log(x.abs()))
    is_whole = y == y.floor()
    is_odd = is_whole & (y * 0.5 != (y * 0.5).floor())
    out = torch.where((x < 0) & is_odd, -out, out)
    nan = torch.full_like(out, math.nan)
    out = torch.where((x < 0) & ~is_whole, nan, out)
    out = torch.where((x != x) | (y != y), nan, out)
    return torch.where((y == 0) | (x == 1), torch.ones_like(out), out)


def xlogy(x: Any, y: Any) -> Tensor:
    """Return x log y, and zero where x is zero and y is not NaN."""
    a, b, dtype = _widen_pair(x, y)
    out = a * e.log(b)
    return torch.where((a == 0) & (b == b), torch.zeros_like(out), out).to(dtype)


def _widen_pair(x: Any, y: Any) -> tuple[Tensor, Tensor, torch.dtype]:
    """Return both as float64 tensors, and the type of the result."""
    dtype = torch.result_type(x, y)
    device = x.device if isinstance(x, Tensor) else y.device
    a, b = (
        v.to(torch.float64)
        if isinstance(v, Tensor)
        else torch.full((), float(v), dtype=torch.float64, device=device)
        for v in (x, y)
    )
    return a, b, dtype if dtype.is_floating_point else torch.get_default_dtype()


def logaddexp(x: Tensor, y: Tensor) -> Tensor:
    """Return log(exp(x) + exp(y)) as max(x, y) + log1p(exp(-|x - y|))."""
    a, b, dtype = _widen_pair(x, y)
    largest = torch.where((a > b) | (a != a), a, b)
    gap = torch.where(a == b, torch.zeros_like(a), (a - b).abs())  # two infinities have no gap
    return (largest + e.log1p(e.exp(-gap))).to(dtype)


def logsumexp(x: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """Return log(sum(exp(x))) over ``dim`` as max(x) + log(sum(exp(x - max(x))))."""
    dims = list_axes(x, dim)
    if not dims:
        return x.clone()
    largest = (x.amax(dims, True) + 0.0).to(torch.float64)
    largest = torch.where(largest.abs() == math.inf, torch.zeros_like(largest), largest)
    out = e.log(total(e.exp(x.to(torch.float64) - largest), dims, True)) + largest
    # exp is limited to exp(700), so that an infinite x needs a rule of its own.
    out = torch.where((x == math.inf).any(dims, True), math.inf, out).to(x.dtype)
    return out if keepdim else out.squeeze(dims)


def polygamma(n: int, x: Tensor) -> Tensor:
    """Return the derivative of order n of digamma, for n of 0 and 1."""
    if n not in (0, 1):
        raise NumericsError(f"portable polygamma has the orders 0 and 1, got {n}")
    return in_float64(gamma.trigamma if n else gamma.digamma)(x)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::pow.Tensor_Tensor": raise_tensor,
    "aten::pow.Tensor_Scalar": raise_to_number,
    "aten::pow.Scalar": raise_number,
    "aten::xlogy.Tensor": xlogy,
    "aten::xlogy.Scalar_Other": xlogy,
    "aten::xlogy.Scalar_Self": xlogy,
    "aten::logaddexp": logaddexp,
    "aten::logsumexp": logsumexp,
    "aten::lgamma": in_float64(gamma.lgamma),
    "aten::digamma": in_float64(gamma.digamma),
    "aten::polygamma": polygamma,
    "aten::log10": in_float64(lambda x: e.log(x) * c.PER_LN10),
}
