"""Functions for which torch chooses different ops on different devices, computed from the same ops.

A dispatch mode would see only the ops that torch has chosen.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from seedless.portable.ops.recurrent import CELLS, step, unroll

_OVERRIDDEN = frozenset([*CELLS, *(f"{name}_cell" for name in CELLS), "rms_norm"])


class FunctionOverrides(TorchFunctionMode):
    """Computes recurrent layers and cells step by step, and root-mean-square norms from ops."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name not in _OVERRIDDEN:
            return func(*args, **(kwargs or {}))
        if name in CELLS:
            return unroll(name, *args)
        if name.removesuffix("_cell") in CELLS:
            return step(name.removesuffix("_cell"), *args, **(kwargs or {}))
        return rms_norm(*args, **(kwargs or {}))


def rms_norm(
    input: Tensor,  # noqa: A002  # torch's names
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Return x / sqrt(mean(x^2) + eps) weight, over the last axes. Only GPUs have an op for it."""
    shape = tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(shape) :]) != shape or not shape:
        raise RuntimeError(
            f"expected an input whose last axes are {list(shape)}, got {list(input.shape)}"
        )
    dims = list(range(input.ndim - len(shape), input.ndim))
    floor = torch.finfo(input.dtype).eps if eps is None else eps
    scale = torch.rsqrt(input.pow(2).mean(dims, keepdim=True) + floor)
    return input * scale if weight is None else input * scale * weight
