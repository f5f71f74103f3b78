"""Elementwise ops whose bits torch leaves open: its kernel may fuse two roundings, multiply by a
reciprocal, or return either of two equal values.

Law: two roundings stay two, so ``alpha`` and ``value`` are multiplied in a kernel of their own.
Elementary functions are computed in float64 (`exact.elementary`) and rounded once.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from seedless.core.errors import NumericsError
from seedless.portable import constants as c
from seedless.portable.context import CONTEXT
from seedless.portable.exact import elementary as e
from seedless.portable.kernels.rows import apply_map

Implementation = Callable[..., Any]
BLOCK_ELEMENTS = 1 << 16  # computed at a time on a CPU, so that they stay in its cache


def compute_in_float64(f: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Return f of the inputs in float64, element by element, rounded to the first one's type."""
    first = inputs[0]
    dtype = first.dtype if first.is_floating_point() else torch.get_default_dtype()
    size = first.numel()
    is_large = CONTEXT.splits_tensors and first.is_cpu and size > BLOCK_ELEMENTS
    if not is_large or any(x.shape != first.shape or not x.is_contiguous() for x in inputs):
        return f(*(x.to(torch.float64) for x in inputs)).to(dtype)
    out = torch.empty_like(first, dtype=dtype)
    flat, rows = out.view(-1), [x.view(-1) for x in inputs]
    for start in range(0, size, BLOCK_ELEMENTS):
        block = slice(start, start + BLOCK_ELEMENTS)
        flat[block] = f(*(row[block].to(torch.float64) for row in rows))
    return out


def map_rows(f: Callable[..., Sequence[Tensor]], *inputs: Tensor) -> list[Tensor]:
    """Return f of the inputs, computed some rows at a time on a CPU.

    ``f`` maps (rows, ...) tensors to (rows, ...) tensors, and no row may depend on another. All
    rows are computed at once where the context's evaluator must see every sum.
    """
    rows, size = inputs[0].shape[0], inputs[0].numel()
    may_split = CONTEXT.splits_tensors and not CONTEXT.redirects_sums
    if not (may_split and inputs[0].is_cpu and size > BLOCK_ELEMENTS):
        return list(f(*inputs))
    step = max(1, BLOCK_ELEMENTS * rows // size)
    outs: list[Tensor] = []
    for start in range(0, rows, step):
        parts = f(*(x[start : start + step] for x in inputs))
        if not outs:
            outs = [part.new_empty((rows, *part.shape[1:])) for part in parts]
        for out, part in zip(outs, parts, strict=True):
            out[start : start + step] = part
    return outs


def shape_along(axis: int, ndim: int) -> list[int]:
    """Return the shape that lays a vector along one of ``ndim`` axes."""
    return [-1 if one == axis else 1 for one in range(ndim)]


def make_constant(
    values: Sequence[float], device: torch.device, dtype: torch.dtype | None = None
) -> Tensor:
    """Return a vector of plain numbers, which no dispatch mode sees being made.

    torch.tensor changes the tensor in place once it is made. A trace of the ops would take that for
    a change of a tensor that outlives the step.
    """
    with _disable_current_modes():
        return torch.tensor(values, dtype=dtype, device=device)


def in_float64(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return f computed in float64 and rounded once to the input's type (integers: float32)."""
    return partial(compute_in_float64, f)


def with_kernel(kernel: str, implementation: Implementation) -> Implementation:
    """Return an implementation that is one compiled kernel where the device has it.

    The kernel has no options: with any option but "none", ``implementation`` is called.
    """

    def apply(*inputs: Any, **options: Any) -> Any:
        is_plain = all(value == "none" for value in options.values())
        if is_plain and all(isinstance(x, Tensor) for x in inputs):
            out = apply_map(kernel, *inputs)
            if out is not None:
                return out
        return implementation(*inputs, **options)

    return apply


def add(a: Any, b: Any, alpha: float = 1) -> Tensor:
    """Return a + alpha b."""
    return torch.add(a, b if alpha == 1 else torch.mul(b, alpha))


def sub(a: Any, b: Any, alpha: float = 1) -> Tensor:
    """Return a - alpha b."""
    return torch.sub(a, b if alpha == 1 else torch.mul(b, alpha))


def rsub(a: Tensor, b: Any, alpha: float = 1) -> Tensor:
    """Return b - alpha a."""
    return torch.add(torch.neg(a if alpha == 1 else torch.mul(a, alpha)), b)


def div(a: Any, b: Any) -> Tensor:
    """Return a / b, correctly rounded, in the type that torch promotes both to.

    A number becomes a tensor first, since a GPU multiplies by a number's reciprocal. Torch passes
    numbers, on either side, to the Tensor overloads of +, -, * and / too.
    """
    dtype = torch.result_type(a, b)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    tensors = [value for value in (a, b) if isinstance(value, Tensor)]
    device = next((value.device for value in tensors if value.ndim), tensors[-1].device)
    a, b = (
        value.to(device, dtype)
        if isinstance(value, Tensor)
        else torch.full((), value, dtype=dtype, device=device)
        for value in (a, b)
    )
    return torch.div(a, b.expand(a.shape) if b.ndim == 0 and a.ndim else b)


def div_rounded(a: Any, b: Any, *, rounding_mode: str | None) -> Tensor:
    """Return a / b, with a rounding mode as a whole number."""
    if rounding_mode is None:
        return div(a, b)
    if rounding_mode == "floor":
        return floor_divide(a, b)
    if torch.result_type(a, b).is_floating_point:
        return torch.trunc(div(a, b))
    return torch.div(a, b, rounding_mode=rounding_mode)


def floor_divide(a: Any, b: Any) -> Tensor:
    """Return the largest whole number up to a / b, with Python's rules for infinities.

    The quotient of two float32 is taken in float64, where it reaches a whole number below 2^28
    only if it is one. Of float64 the rounded quotient may be a whole number above the true one.
    """
    dtype = torch.result_type(a, b)
    if dtype == torch.float64:
        raise NumericsError(
            "portable floor division takes float32 and integers, got float64: cast to float32"
        )
    if not dtype.is_floating_point:
        return torch.floor_divide(a, b)
    like = a if isinstance(a, Tensor) else b
    a, b = (
        value.to(dtype).to(torch.float64)
        if isinstance(value, Tensor)
        else torch.full((), value, dtype=dtype, device=like.device).to(torch.float64)
        for value in (a, b)
    )
    out = torch.floor(div(a, b))
    is_below = (a < 0) != (b < 0)
    is_small = (b.abs() == math.inf) & (a == a) & (a != 0)
    out = torch.where(is_small & is_below, -1.0, out)
    return torch.where((a.abs() == math.inf) & (b != 0), math.nan, out).to(dtype)


def reciprocal(x: Tensor) -> Tensor:
    """Return 1 / x."""
    return div(torch.ones_like(x, dtype=torch.result_type(x, 1.0)), x)


def addcmul(x: Tensor, a: Tensor, b: Tensor, value: float = 1) -> Tensor:
    """Return x + value a b."""
    return x + (a if value == 1 else a * value) * b


def addcdiv(x: Tensor, a: Tensor, b: Tensor, value: float = 1) -> Tensor:
    """Return x + value a / b."""
    return x + div(a if value == 1 else a * value, b)


def lerp(x: Tensor, y: Tensor, weight: Any) -> Tensor:
    """Return x + weight (y - x)."""
    out: Tensor = x + (y - x) * weight
    return out


def maximum(a: Tensor, b: Tensor) -> Tensor:
    """Return the larger of a and b; of equals b; NaN where either is NaN."""
    return torch.where((a > b) | (a != a), a, b)


def minimum(a: Tensor, b: Tensor) -> Tensor:
    """Return the smaller of a and b; of equals b; NaN where either is NaN."""
    return torch.where((a < b) | (a != a), a, b)


def clamp(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:  # noqa: A002  # aten's names
    """Return x limited to the numbers [min, max]; a value that equals a bound is not changed."""
    for bound in (min, max):
        x = x if bound is None else x.to(torch.result_type(x, bound))
    low, high = (None if bound is None else torch.full_like(x, bound) for bound in (min, max))
    return clamp_to_tensors(x, low, high)


def clamp_to_tensors(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:  # noqa: A002  # aten's names
    """Return x limited to [min, max], element by element; real bounds make integers real."""
    for bound in (min, max):
        x = x if bound is None else x.to(torch.result_type(x, bound))
    x = x if min is None else torch.where(x < min, min, x)
    return x if max is None else torch.where(x > max, max, x)


def round_to_integers(x: Tensor, *, decimals: int = 0) -> Tensor:
    """Return x rounded to whole numbers, half to even.

    Decimals are refused: torch scales by a power of ten from the host's math library.
    """
    if decimals:
        raise NumericsError(
            f"portable round goes to whole numbers, got decimals={decimals}; scale before and after"
        )
    return torch.round(x)


def relu(x: Tensor) -> Tensor:
    """Return x where it is positive or NaN, else zero."""
    return torch.where(x <= 0, torch.zeros_like(x), x)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::add.Tensor": add,
    "aten::add.Scalar": add,
    "aten::sub.Tensor": sub,
    "aten::sub.Scalar": sub,
    "aten::rsub.Tensor": rsub,
    "aten::rsub.Scalar": rsub,
    "aten::div.Tensor": div,
    "aten::div.Scalar": div,
    "aten::div.Tensor_mode": div_rounded,
    "aten::div.Scalar_mode": div_rounded,
    "aten::floor_divide": floor_divide,
    "aten::floor_divide.Scalar": floor_divide,
    "aten::reciprocal": reciprocal,
    "aten::addcmul": addcmul,
    "aten::addcdiv": addcdiv,
    "aten::lerp.Tensor": lerp,
    "aten::lerp.Scalar": lerp,
    "aten::maximum": maximum,
    "aten::minimum": minimum,
    "aten::clamp": clamp,
    "aten::clamp.Tensor": clamp_to_tensors,
    "aten::clamp_min": lambda x, min: clamp(x, min, None),  # noqa: A006  # aten's name
    "aten::clamp_min.Tensor": lambda x, min: clamp_to_tensors(x, min, None),  # noqa: A006  # aten's
    "aten::clamp_max": lambda x, max: clamp(x, None, max),  # noqa: A006  # aten's name
    "aten::clamp_max.Tensor": lambda x, max: clamp_to_tensors(x, None, max),  # noqa: A006  # aten's
    "aten::square": lambda x: x * x,
    "aten::round": round_to_integers,
    "aten::round.decimals": round_to_integers,
    "aten::relu": with_kernel("relu", relu),
    "aten::exp": with_kernel("exponentials", in_float64(e.exp)),
    "aten::expm1": in_float64(e.expm1),
    "aten::log": in_float64(e.log),
    "aten::log1p": in_float64(e.log1p),
    "aten::log2": in_float64(lambda x: e.log(x) * (1 / c.LN2)),
    "aten::exp2": in_float64(lambda x: e.exp(x * c.LN2)),
    "aten::erf": in_float64(e.erf),
    "aten::sigmoid": with_kernel("sigmoid", in_float64(e.sigmoid)),
    "aten::tanh": in_float64(e.tanh),
    "aten::sin": in_float64(e.sin),
    "aten::cos": in_float64(e.cos),
    "aten::atan": in_float64(e.atan),
    "aten::asin": in_float64(e.asin),
    "aten::acos": in_float64(e.acos),
    "aten::sqrt": in_float64(e.root),
    "aten::rsqrt": in_float64(e.rsqrt),
}
