"""Sorting, the k largest values, counts in bins, and evenly spaced values.

Law: a sort is stable, so that of equal values the first comes first. Negative zero equals zero.
NaNs equal each other and are larger than every number.
"""

import math
from typing import Any

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.ops.elementwise import Implementation, make_constant


def sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Return the sorted values and their int64 indices, both like x; always a stable sort."""
    indices = torch.sort(_make_keys(x), dim=dim, descending=descending, stable=True)[1]
    return (x.gather(dim, indices) if x.ndim else x.clone()), indices


def _make_keys(x: Tensor) -> Tensor:
    """Return what is compared in place of x: its zeros positive, its NaNs all the same."""
    if not x.is_floating_point():
        return x
    return torch.where(x != x, torch.full_like(x, float("nan")), x + 0.0)


def topk(
    x: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002  # aten's name
) -> tuple[Tensor, Tensor]:
    """Return the first k values of a stable sort and their indices, in order also if not asked."""
    if x.ndim == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    values, indices = sort(x, dim, largest)
    return values.narrow(dim, 0, k).contiguous(), indices.narrow(dim, 0, k).contiguous()


def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:  # noqa: A002  # aten's names
    """Return how many values lie in each of ``bins`` equal parts of [min, max].

    Value v is in bin (v - min) bins / (max - min), rounded down, in float64; max is in the last.
    Equal bounds stand for the smallest and the largest value.
    """
    wide = x.detach().to(torch.float64).reshape(-1)
    low, high = float(min), float(max)
    if low == high and wide.numel():
        low, high = float(torch.amin(wide)), float(torch.amax(wide))
    if low == high:
        low, high = low - 1.0, high + 1.0
    if bins <= 0 or not (abs(low) < math.inf and abs(high) < math.inf and low < high):
        raise NumericsError(
            f"portable histc takes bins above 0 and finite bounds, got {bins}, {low} and {high}"
        )
    inside = wide[(wide >= low) & (wide <= high)]
    position = (inside - low) * float(bins)
    position = position / torch.full((), high - low, dtype=torch.float64, device=x.device)
    place = position.floor().to(torch.int64).clamp(0, bins - 1)
    return torch.bincount(place, minlength=bins).to(x.dtype)


def arange(*bounds: Any, **options: Any) -> Tensor:
    """Return whole numbers from start to end; a fraction is refused.

    A kernel may fuse the product of a fraction and the index with the sum with the start.
    """
    numbers = [*bounds, *(options.get(name, 0) for name in ("start", "end", "step"))]
    real = [number for number in numbers if isinstance(number, float)]
    if not all(number.is_integer() for number in real):
        raise NumericsError(
            f"portable arange counts in whole numbers, got {bounds}; multiply arange by the step"
        )
    dtype = options.pop("dtype", None) or (torch.get_default_dtype() if real else torch.int64)
    # In int64, and then rounded: beyond 2^24 a kernel's float32 depends on where its threads begin.
    return torch.arange(*map(int, bounds), dtype=torch.int64, **options).to(dtype)


def linspace(start: Any, end: Any, steps: int, **options: Any) -> Tensor:
    """Return start + (end - start) i / (steps - 1), in float64 and rounded; the last is ``end``."""
    first, last = float(start), float(end)
    dtype = options.pop("dtype", None) or torch.get_default_dtype()
    span = last - first
    values = [first + span * i / (steps - 1) for i in range(steps - 1)]
    values = [*values, last if steps > 1 else first] if steps else []
    wide = make_constant(values, torch.device("cpu"), torch.float64)
    return wide.to(dtype).to(options.get("device") or "cpu")


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::sort": sort,
    "aten::sort.stable": lambda x, *, stable, dim=-1, descending=False: sort(x, dim, descending),
    "aten::topk": topk,
    "aten::histc": histc,
    "aten::arange": arange,
    "aten::arange.start": arange,
    "aten::arange.start_step": arange,
    "aten::linspace": linspace,
    "aten::linspace.Tensor_Tensor": linspace,
    "aten::linspace.Tensor_Scalar": linspace,
    "aten::linspace.Scalar_Tensor": linspace,
}
