"""Weights as length times direction: nn.utils.weight_norm.

Law: w = v (g / |v|), |v| a `reduce` sum of squares in float64 and its root, kept in float32 for the
gradient, which is computed in float64 and rounded once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seedless.portable.exact.elementary import root
from seedless.portable.exact.sums import total
from seedless.portable.ops.elementwise import Implementation


def _others(v: Tensor, dim: int) -> list[int]:
    return [axis for axis in range(v.ndim) if axis != dim % v.ndim]


def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """Return the weight and the lengths of v along every axis but ``dim``."""
    wide = v.to(torch.float64)
    length = root(total(wide * wide, _others(v, dim), True))
    return (wide * (g.to(torch.float64) / length)).to(v.dtype), length.to(g.dtype)


def weight_norm_backward(
    grad: Tensor, v: Tensor, g: Tensor, lengths: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """(g / |v|) (grad - v s / |v|^2) and s / |v|, with s the sum of grad v."""
    wide, length = v.to(torch.float64), lengths.to(torch.float64)
    inner = grad.to(torch.float64)
    s = total(inner * wide, _others(v, dim), True)
    of_v = (inner - wide * (s / (length * length))) * (g.to(torch.float64) / length)
    return of_v.to(v.dtype), (s / length).to(g.dtype)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::_weight_norm_interface": weight_norm,
    "aten::_weight_norm_interface_backward": weight_norm_backward,
}
