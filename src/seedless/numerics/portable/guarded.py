"""Ops that are exact in some of their forms: those run as they are, the others are refused."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.numerics.portable.arithmetic import Handler


def arange(*bounds: Any, **named: Any) -> Tensor:
    """Whole steps only: a fraction's multiples may be fused with the start."""
    numbers = [*bounds, *(named.get(name, 0) for name in ("start", "end", "step"))]
    if any(isinstance(number, float) and number != int(number) for number in numbers):
        raise NumericsError(
            f"portable arange counts in whole numbers, got {bounds}; multiply arange by the step"
        )
    return torch.arange(*bounds, **named)


def scatter(x: Tensor, dim: int, index: Tensor, source: Any, **named: Any) -> Tensor:
    """Writes only: what a reduction finds depends on the order."""
    if named.get("reduce") is not None:
        raise NumericsError(
            f"portable scatter writes and does not reduce, got {named}; use scatter_add"
        )
    return torch.scatter(x, dim, index, source)


def round_(x: Tensor, decimals: int = 0) -> Tensor:
    """To whole numbers only: decimals are scaled by a power from the library."""
    if decimals:
        raise NumericsError(
            f"portable round goes to whole numbers, got decimals={decimals}; scale before and after"
        )
    return torch.round(x)


HANDLERS: dict[str, Handler] = {
    "arange": arange,
    "scatter": scatter,
    "round": round_,
}
