"""Windows laid out as columns and added back: nn.Unfold and nn.Fold, each the other's gradient."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.ops.convolution import Windows, spread, take
from seedless.portable.ops.elementwise import Implementation

Sizes = Sequence[int]


def _windows(kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Windows:
    n = len(kernel)
    return Windows(tuple(kernel), spread(stride, n), spread(padding, n), spread(dilation, n))


def unfold(x: Tensor, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Tensor:
    """aten.im2col: ([batch,] channel, height, width) -> ([batch,] channel x taps, positions)."""
    windows = _windows(kernel, dilation, padding, stride)
    positions = windows.positions(x.shape[-2:])
    padded = windows.pad(x)
    taps = [padded[take(tap)] for tap in windows.taps(positions)]
    return torch.stack(taps, -3).reshape(*x.shape[:-3], -1, math.prod(positions))


def fold(
    columns: Tensor, size: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Tensor:
    """aten.col2im: columns added to their places tap after tap, in float64, and rounded once."""
    windows = _windows(kernel, dilation, padding, stride)
    positions = windows.positions(size)
    taps = windows.taps(positions)
    lead = columns.shape[:-2]
    parts = columns.to(torch.float64).reshape(*lead, -1, len(taps), *positions)
    padded = [length + 2 * pad for length, pad in zip(size, windows.padding, strict=True)]
    out = parts.new_zeros(*lead, parts.shape[-4], *padded)
    for number, tap in enumerate(taps):
        out[take(tap)] += parts[..., number, :, :]
    return windows.unpad(out, size).to(columns.dtype)


IMPLEMENTATIONS: dict[str, Implementation] = {"aten::im2col": unfold, "aten::col2im": fold}
