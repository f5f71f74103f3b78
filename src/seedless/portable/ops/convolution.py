"""Convolutions in one, two and three dimensions, and transposed, through `exact.product`.

Law: a convolution is the matrix product of the weight, (out, in x taps), with the windows of x,
(in x taps, positions). Its transpose is the product of the transposed weight with x, in float64,
whose taps are added to their places one after another, in order. A weight's gradient is the product
of the gradient with the windows over batch and positions. Each is rounded to float32 once.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from seedless.portable.context import CONTEXT
from seedless.portable.exact.product import (
    MAX_PRODUCT_ADDENDS,
    describe_product,
    multiply,
    multiply_and_round,
)
from seedless.portable.exact.sums import total
from seedless.portable.kernels import products as product_kernels
from seedless.portable.kernels import rounding_grids
from seedless.portable.kernels.launch import is_ready
from seedless.portable.ops.elementwise import Implementation

Sizes = Sequence[int]


@dataclass(frozen=True)
class Windows:
    """The windows of a convolution: one number for each dimension in each field."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    def positions(self, sizes: Sizes) -> list[int]:
        """Return how many windows fit into each dimension."""
        return [
            (size + 2 * pad - gap * (width - 1) - 1) // step + 1
            for size, width, step, pad, gap in zip(
                sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True
            )
        ]

    def taps(self, positions: Sizes) -> list[tuple[slice, ...]]:
        """Return each tap of all windows at once, as slices of the padded dimensions, in order."""
        return [
            tuple(
                slice(tap * gap, tap * gap + step * (count - 1) + 1, step)
                for tap, gap, step, count in zip(
                    place, self.dilation, self.stride, positions, strict=True
                )
            )
            for place in itertools.product(*map(range, self.kernel))
        ]

    def reach(self, sizes: Sizes) -> int:
        """Return the largest number that counts places or the steps between them."""
        ends = [size + pad for size, pad in zip(sizes, self.padding, strict=True)]
        return max(math.prod(sizes), *ends, *self.stride)

    def pad(self, x: Tensor, value: float = 0.0) -> Tensor:
        """Add the padding to the last dimensions."""
        widths = [width for pad in reversed(self.padding) for width in (pad, pad)]
        return F.pad(x, widths, value=value) if any(widths) else x

    def unpad(self, x: Tensor, sizes: Sizes) -> Tensor:
        """Remove the padding."""
        inner = zip(self.padding, sizes, strict=True)
        return x[take([slice(pad, pad + size) for pad, size in inner])]


def take(slices: Sequence[slice]) -> Any:
    """Return an index that takes these slices of the last dimensions."""
    return (..., *slices)


def spread(values: Sizes | int, dimensions: int) -> tuple[int, ...]:
    """Return one number for each dimension, where aten may give one for all."""
    listed = [values] if isinstance(values, int) else list(values)
    return tuple(listed * dimensions if len(listed) == 1 else listed)


def columns(x: Tensor, windows: Windows, groups: int, positions: Sizes) -> Tensor:
    """(batch, channel, ...) -> (groups, channel in group x taps, batch x positions)."""
    padded = windows.pad(x).transpose(0, 1)
    taps = [padded[take(tap)] for tap in windows.taps(positions)]
    stacked = torch.stack(taps, 1) if len(taps) > 1 else taps[0]
    return stacked.reshape(groups, -1, x.shape[0] * math.prod(positions))


def convolve(
    x: Tensor, weight: Tensor, windows: Windows, groups: int, positions: Sizes | None = None
) -> Tensor:
    """Return the convolution without bias, at the first ``positions`` where not all are asked."""
    filters = weight.reshape(groups, weight.shape[0] // groups, -1)
    positions = windows.positions(x.shape[2:]) if positions is None else positions
    shape = (x.shape[0], weight.shape[0], *positions)
    if not math.prod(shape):
        return x.new_zeros(shape)
    out = multiply_and_round(filters, columns(x, windows, groups, positions), math.prod(positions))
    return out.view(shape)


def convolve_transposed(
    x: Tensor, weight: Tensor, sizes: Sizes, windows: Windows, groups: int
) -> Tensor:
    """Return the transpose of `convolve` applied to x, with dimensions ``sizes``."""
    batch, positions = x.shape[0], x.shape[2:]
    filters = weight.reshape(groups, weight.shape[0] // groups, -1).transpose(1, 2)
    taps = windows.taps(positions)
    rows = x.transpose(0, 1).reshape(groups, -1, batch * math.prod(positions))
    found = _gather_by_kernel(filters, rows, sizes, positions, windows, groups)
    if found is not None:
        return found
    products = multiply(filters, rows)
    products = products.view(weight.shape[1] * groups, len(taps), batch, *positions)
    padded = [size + 2 * pad for size, pad in zip(sizes, windows.padding, strict=True)]
    out = products.new_zeros(products.shape[0], batch, *padded)
    for number, tap in enumerate(taps):
        out[take(tap)] += products[:, number]
    return windows.unpad(out, sizes).transpose(0, 1).to(x.dtype)


def _gather_by_kernel(
    filters: Tensor, rows: Tensor, sizes: Sizes, positions: Sizes, windows: Windows, groups: int
) -> Tensor | None:
    """Return the same from the product's parts, in one kernel; None without it."""
    if (
        len(sizes) > 2
        or CONTEXT.redirects_sums
        or not (filters.numel() and rows.numel() and math.prod(sizes))
    ):
        return None
    if not is_ready(filters, rows) or windows.reach(sizes) >= rounding_grids.INDEX_LIMIT:
        return None
    product = describe_product(filters, rows)
    exponents, taps = product.find_exponents(), math.prod(windows.kernel)
    fields = (windows.kernel, windows.stride, windows.padding, windows.dilation)
    # One dimension is a second one of size 1 before it.
    pairs = [(one, *field)[-2:] for one, field in zip((1, 1, 0, 1), fields, strict=True)]
    plane, place = (1, *sizes)[-2:], (1, *positions)[-2:]
    shape = (rows.shape[2] // math.prod(positions), filters.shape[1] // taps * groups, *plane)
    out = product_kernels.convolve_transposed(
        filters, rows, exponents, MAX_PRODUCT_ADDENDS, shape, place, pairs
    )
    if out is None:
        out = rounding_grids.gather_taps(
            product.add_integers(exponents), exponents, shape, place, pairs, groups
        )
    return None if out is None else out.view(*shape[:2], *sizes)


def correlate(grad: Tensor, x: Tensor, shape: Sizes, windows: Windows, groups: int) -> Tensor:
    """Return the gradient of a weight of ``shape``: over batch and positions at once."""
    windowed = columns(x, windows, groups, grad.shape[2:])
    left = grad.transpose(0, 1).reshape(groups, grad.shape[1] // groups, -1)
    return multiply_and_round(left, windowed.transpose(1, 2)).reshape(*shape)


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    *_: object,
) -> Tensor:
    """aten.convolution: all of nn.Conv1d to nn.ConvTranspose3d arrive here."""
    windows = _windows(weight, stride, padding, dilation)
    if transposed:
        extra = spread(output_padding, x.ndim - 2)
        sizes = [
            (size - 1) * step - 2 * pad + gap * (width - 1) + more + 1
            for size, step, pad, gap, width, more in zip(
                x.shape[2:],
                windows.stride,
                windows.padding,
                windows.dilation,
                windows.kernel,
                extra,
                strict=True,
            )
        ]
        out = convolve_transposed(x, weight, sizes, windows, groups)
    else:
        out = convolve(x, weight, windows, groups)
    out = out.contiguous()
    return out if bias is None else out + bias.view(1, -1, *[1] * (x.ndim - 2))


def convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sizes | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients of x, weight and bias that ``mask`` selects."""
    windows = _windows(weight, stride, padding, dilation)
    of_x = of_weight = of_bias = None
    if mask[0]:
        of_x = (
            convolve(grad, weight, windows, groups, x.shape[2:])
            if transposed
            else convolve_transposed(grad, weight, x.shape[2:], windows, groups)
        )
    if mask[1]:
        outer, inner = (x, grad) if transposed else (grad, x)
        of_weight = correlate(outer, inner, weight.shape, windows, groups)
    if mask[2]:
        of_bias = total(grad, [0, *range(2, grad.ndim)]).to(grad.dtype)
    return of_x, of_weight, of_bias


def _windows(weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes) -> Windows:
    n = weight.ndim - 2
    kernel = tuple(weight.shape[2:])
    return Windows(kernel, spread(stride, n), spread(padding, n), spread(dilation, n))


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::convolution": convolution,
    "aten::_convolution": convolution,
    "aten::convolution_backward": convolution_backward,
}
