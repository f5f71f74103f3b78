"""Ops that are exact in some of their forms: those run as they are, the others are refused."""

from typing import Any

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.ops.elementwise import Implementation


def arange(*bounds: Any, **named: Any) -> Tensor:
    """Return whole numbers only: multiples of a fraction may be fused with the start."""
    numbers = [*bounds, *(named.get(name, 0) for name in ("start", "end", "step"))]
    real = [number for number in numbers if isinstance(number, float)]
    if not all(number.is_integer() for number in real):
        raise NumericsError(
            f"portable arange counts in whole numbers, got {bounds}; multiply arange by the step"
        )
    dtype = named.pop("dtype", None) or (torch.get_default_dtype() if real else torch.int64)
    # In int64, and then rounded: beyond 2^24 a kernel's float32 depends on where its threads begin.
    counted = torch.arange(*map(int, bounds), dtype=torch.int64, **named)
    return counted.to(dtype)


def round_decimals(x: Tensor, *, decimals: int = 0) -> Tensor:
    """Round to whole numbers only: torch scales decimals by a power from the host's library."""
    if decimals:
        raise NumericsError(
            f"portable round goes to whole numbers, got decimals={decimals}; scale before and after"
        )
    return torch.round(x)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::arange": arange,
    "aten::arange.start": arange,
    "aten::arange.start_step": arange,
    "aten::round": round_decimals,
    "aten::round.decimals": round_decimals,
}
