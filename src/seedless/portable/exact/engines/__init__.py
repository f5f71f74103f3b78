"""The engines that multiply: each computes the same integers, so the choice changes time alone.

An engine takes the operands of a product, (batch, m, k) and (batch, k, n), with the exponents of
their grids, and returns the exact sums of `exact.product`, in one part up to 128 addends and in
two parts beyond. The environment variable SEEDLESS_ENGINE names the one to use; without it, or with
auto, the fastest of a device is used, see `engine_choice`.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from seedless.core.registry import choose
from seedless.portable.context import (
    AUTO_ENGINE,
    CONTEXT,
    ENGINE_VARIABLE,
    FLOAT64_ENGINE,
    INT8_ENGINE,
)
from seedless.portable.exact.engines import float64, int8
from seedless.portable.exact.sums import Parts

Engine = Callable[[Tensor, Tensor, Sequence[Tensor]], Parts]
ENGINES: dict[str, Engine] = {FLOAT64_ENGINE: float64.multiply, INT8_ENGINE: int8.multiply}


_SETTINGS = {AUTO_ENGINE: float64.multiply, **ENGINES}


def find_engine(device: torch.device) -> Engine:
    """Return a device's engine; an unknown name is an error that lists the known."""
    name = CONTEXT.name_engine(device)
    return choose(f"engine of matrix products in {ENGINE_VARIABLE}", name, _SETTINGS)
