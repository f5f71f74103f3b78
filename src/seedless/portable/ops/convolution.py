"""Convolutions in one, two and three dimensions, transposed ones, and nn.Unfold and nn.Fold.

Law: a convolution is the matrix product (`exact.product`) of the weight, (out, in x taps), with the
windows of x, (in x taps, positions). A tap is one element of the kernel. A transposed convolution
is the product of the transposed weight with x, in float64, whose taps are added to their positions
one after another, in order. A weight's gradient is the product of the gradient with the windows,
summed over batch and positions. Each result is rounded to float32 once. The formulas are those of
Dumoulin & Visin, "A guide to convolution arithmetic for deep learning" (2016).
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
    check_shapes,
    describe_product,
    multiply,
    multiply_and_round,
)
from seedless.portable.exact.sums import total_in_float32
from seedless.portable.kernels import fused_product, rounding_grids
from seedless.portable.kernels import products as product_kernels
from seedless.portable.kernels.launch import is_ready
from seedless.portable.ops.elementwise import Implementation

Sizes = Sequence[int]


@dataclass(frozen=True)
class Windows:
    """The windows of a convolution: each field has one number for each dimension."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    def count_positions(self, sizes: Sizes) -> list[int]:
        """Return how many windows fit into each dimension."""
        return [
            (size + 2 * pad - gap * (width - 1) - 1) // step + 1
            for size, width, step, pad, gap in zip(
                sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True
            )
        ]

    def slice_taps(self, positions: Sizes) -> list[tuple[slice, ...]]:
        """Return for each tap, in order, the slices of the padded input that all windows read."""
        return [
            tuple(
                slice(offset * gap, offset * gap + step * (count - 1) + 1, step)
                for offset, gap, step, count in zip(
                    offsets, self.dilation, self.stride, positions, strict=True
                )
            )
            for offsets in itertools.product(*map(range, self.kernel))
        ]

    def find_largest_index(self, sizes: Sizes) -> int:
        """Return the largest number that counts positions or the steps between them."""
        ends = [size + pad for size, pad in zip(sizes, self.padding, strict=True)]
        return max(math.prod(sizes), *ends, *self.stride)

    def write_in_two_dimensions(self) -> list[tuple[int, ...]]:
        """Return kernel, stride, padding and dilation with one dimension as two, the first of 1."""
        fields = (self.kernel, self.stride, self.padding, self.dilation)
        return [(default, *field)[-2:] for default, field in zip((1, 1, 0, 1), fields, strict=True)]

    def pad(self, x: Tensor, value: float = 0.0) -> Tensor:
        """Return x with the padding added to its last dimensions."""
        widths = [width for pad in reversed(self.padding) for width in (pad, pad)]
        return F.pad(x, widths, value=value) if any(widths) else x

    def unpad(self, x: Tensor, sizes: Sizes) -> Tensor:
        """Return x without the padding: its last dimensions are ``sizes``."""
        inner = zip(self.padding, sizes, strict=True)
        return x[index_last([slice(pad, pad + size) for pad, size in inner])]

    def pad_sizes(self, sizes: Sizes) -> list[int]:
        """Return the sizes of what `pad` returns."""
        return [size + 2 * pad for size, pad in zip(sizes, self.padding, strict=True)]

    def add_taps(
        self, parts: Sequence[Tensor], lead: Sizes, sizes: Sizes, positions: Sizes
    ) -> Tensor:
        """Return (*lead, *sizes): part i, (*lead, *positions), added where tap i lies, in order."""
        out = parts[0].new_zeros(*lead, *self.pad_sizes(sizes))
        for part, tap in zip(parts, self.slice_taps(positions), strict=True):
            out[index_last(tap)] += part
        return self.unpad(out, sizes)


def index_last(slices: Sequence[slice]) -> Any:
    """Return the index that applies these slices to the last dimensions."""
    return (..., *slices)


def repeat_for_dimensions(values: Sizes | int, dimensions: int) -> tuple[int, ...]:
    """Return one number for each dimension: aten may pass a single one for all of them."""
    listed = [values] if isinstance(values, int) else list(values)
    return tuple(listed * dimensions if len(listed) == 1 else listed)


def make_windows(kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Windows:
    """Return the windows of a kernel, with the other settings as aten passes them."""
    settings = (repeat_for_dimensions(each, len(kernel)) for each in (stride, padding, dilation))
    return Windows(tuple(kernel), *settings)


def list_columns(x: Tensor, windows: Windows, groups: int, positions: Sizes) -> Tensor:
    """(batch, channel, ...) -> (groups, channel in group x taps, batch x positions)."""
    if x.ndim <= 4:
        planes = x if x.ndim == 4 else x.unsqueeze(2)
        pairs, position_pair = windows.write_in_two_dimensions(), (1, *positions)[-2:]
        # They are used up within the op, unless somebody else evaluates its sum later.
        is_reused = x.is_cpu and not CONTEXT.redirects_sums
        memory = product_kernels.get_float32_scratch if is_reused else None
        gathered = rounding_grids.gather_windows(planes, position_pair, pairs, memory)
        if gathered is not None:
            return gathered.view(groups, -1, x.shape[0] * math.prod(positions))
    padded = windows.pad(x).transpose(0, 1)
    taps = [padded[index_last(tap)] for tap in windows.slice_taps(positions)]
    stacked = torch.stack(taps, 1) if len(taps) > 1 else taps[0]
    rows = x.shape[1] * len(taps) // groups
    return stacked.reshape(groups, rows, x.shape[0] * math.prod(positions))


def convolve(
    x: Tensor, weight: Tensor, windows: Windows, groups: int, positions: Sizes | None = None
) -> Tensor:
    """Return the convolution without bias, (batch, out channel, *positions), in float32.

    ``positions``: how many windows to compute in each dimension, from the first; None: all.
    """
    filters = weight.reshape(groups, weight.shape[0] // groups, -1)
    positions = windows.count_positions(x.shape[2:]) if positions is None else positions
    shape = (x.shape[0], weight.shape[0], *positions)
    if not math.prod(shape):
        return x.new_zeros(shape)
    columns = list_columns(x, windows, groups, positions)
    return multiply_and_round(filters, columns, math.prod(positions)).view(shape)


def convolve_transposed(
    x: Tensor, weight: Tensor, sizes: Sizes, windows: Windows, groups: int
) -> Tensor:
    """Return the transpose of `convolve` applied to x: (batch, channel, *sizes), in float32."""
    batch, positions = x.shape[0], x.shape[2:]
    # [Step 1] Multiply: each element of x times each tap of the filters, summed over channels.
    filters = weight.reshape(groups, weight.shape[0] // groups, -1).transpose(1, 2)
    rows = x.transpose(0, 1).reshape(groups, x.shape[1] // groups, batch * math.prod(positions))
    result = _convolve_transposed_by_kernel(filters, rows, sizes, positions, windows, groups)
    if result is not None:
        return result
    products = multiply(filters, rows)
    products = products.view(weight.shape[1] * groups, math.prod(windows.kernel), batch, *positions)
    # [Step 2] Add each tap's products, in order, where the tap lies in the padded output.
    lead = (products.shape[0], batch)
    out = windows.add_taps(products.unbind(1), lead, sizes, positions)
    return out.transpose(0, 1).to(x.dtype)


def _convolve_transposed_by_kernel(
    filters: Tensor, rows: Tensor, sizes: Sizes, positions: Sizes, windows: Windows, groups: int
) -> Tensor | None:
    """Return `convolve_transposed` computed by one compiled kernel; None where it cannot be.

    ``filters`` is (groups, channel in group x taps, k), ``rows`` (groups, k, batch x positions).
    """
    # [Step 1] Find out whether the kernel can be used: two dimensions at most, 32-bit indices.
    is_empty = not (filters.numel() and rows.numel() and math.prod(sizes))
    if len(sizes) > 2 or CONTEXT.redirects_sums or is_empty:
        return None
    largest_index = windows.find_largest_index(sizes)
    if not is_ready(filters, rows) or largest_index >= rounding_grids.INDEX_LIMIT:
        return None
    # [Step 2] Write one dimension as two, the first of size 1.
    pairs = windows.write_in_two_dimensions()
    plane, position_pair = (1, *sizes)[-2:], (1, *positions)[-2:]
    channels = filters.shape[1] // math.prod(windows.kernel) * groups
    shape = (rows.shape[2] // math.prod(positions), channels, *plane)
    # [Step 3] Multiply and add the taps: with one kernel each on a GPU that can, and on a CPU.
    check_shapes(filters, rows)
    scaled = fused_product.multiply_in_float64(filters, rows)
    if scaled is not None:
        out = rounding_grids.gather_taps((scaled, None), None, shape, position_pair, pairs, groups)
        return None if out is None else out.view(*shape[:2], *sizes)
    out = product_kernels.convolve_transposed(filters, rows, shape, position_pair, pairs)
    # [Step 4] Elsewhere from the parts of the product.
    if out is None:
        product = describe_product(filters, rows)
        exponents = product.find_exponents()
        parts = product.add_integers(exponents)
        out = rounding_grids.gather_taps(parts, exponents, shape, position_pair, pairs, groups)
    return None if out is None else out.view(*shape[:2], *sizes)


def correlate(grad: Tensor, x: Tensor, shape: Sizes, windows: Windows, groups: int) -> Tensor:
    """Return the gradient of a weight of ``shape``: one sum over batch and positions."""
    columns = list_columns(x, windows, groups, grad.shape[2:])
    left = grad.transpose(0, 1).reshape(groups, grad.shape[1] // groups, columns.shape[2])
    return multiply_and_round(left, columns.transpose(1, 2)).reshape(*shape)


def _read_settings(
    weight: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    *_: object,
) -> tuple[Windows, bool, tuple[int, ...], int]:
    """Return windows, transposed, output padding and groups from aten's arguments.

    ``_convolution`` has four more arguments, which choose a library's kernel and change nothing.
    """
    windows = make_windows(weight.shape[2:], stride, padding, dilation)
    return windows, transposed, repeat_for_dimensions(output_padding, weight.ndim - 2), groups


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, *settings: Any) -> Tensor:
    """Return aten.convolution, (batch, out channel, ...): nn.Conv1d to nn.ConvTranspose3d."""
    windows, transposed, output_padding, groups = _read_settings(weight, *settings)
    if transposed:
        sizes = [
            (size - 1) * step - 2 * pad + gap * (width - 1) + more + 1
            for size, step, pad, gap, width, more in zip(
                *(x.shape[2:], windows.stride, windows.padding, windows.dilation, windows.kernel),
                output_padding,
                strict=True,
            )
        ]
        out = convolve_transposed(x, weight, sizes, windows, groups)
    else:
        out = convolve(x, weight, windows, groups)
    out = out.contiguous()
    return out if bias is None else out + bias.view(1, -1, *[1] * (x.ndim - 2))


def convolution_backward(
    grad: Tensor, x: Tensor, weight: Tensor, bias_sizes: Sizes | None, *settings_and_mask: Any
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients of x, weight and bias; None where the mask, last, leaves one out."""
    *settings, mask = settings_and_mask
    windows, transposed, _, groups = _read_settings(weight, *settings)
    of_x = of_weight = of_bias = None
    if mask[0]:
        with CONTEXT.within_samples():
            of_x = (
                convolve(grad, weight, windows, groups, x.shape[2:])
                if transposed
                else convolve_transposed(grad, weight, x.shape[2:], windows, groups)
            )
    if mask[1]:
        outer, inner = (x, grad) if transposed else (grad, x)
        of_weight = correlate(outer, inner, weight.shape, windows, groups)
    if mask[2]:
        of_bias = total_in_float32(grad, [0, *range(2, grad.ndim)])
    return of_x, of_weight, of_bias


def unfold(x: Tensor, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Tensor:
    """Return aten.im2col, ([batch,] channel x taps, positions), of ([batch,] channel, h, w).

    This is nn.Unfold. Its gradient is `fold`, and the gradient of `fold` is this.
    """
    windows = make_windows(kernel, stride, padding, dilation)
    positions = windows.count_positions(x.shape[-2:])
    padded = windows.pad(x)
    taps = [padded[index_last(tap)] for tap in windows.slice_taps(positions)]
    rows = x.shape[-3] * len(taps)
    return torch.stack(taps, -3).reshape(*x.shape[:-3], rows, math.prod(positions))


def fold(
    columns: Tensor, size: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Tensor:
    """Return aten.col2im, ([batch,] channel, *size): taps added in order in float64. nn.Fold."""
    windows = make_windows(kernel, stride, padding, dilation)
    positions = windows.count_positions(size)
    taps = math.prod(windows.kernel)
    lead = (*columns.shape[:-2], columns.shape[-2] // taps)
    parts = columns.to(torch.float64).reshape(*lead, taps, *positions)
    out = windows.add_taps(parts.unbind(-3), lead, size, positions)
    return out.to(columns.dtype)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::convolution": convolution,
    "aten::_convolution": convolution,
    "aten::convolution_backward": convolution_backward,
    "aten::im2col": unfold,
    "aten::col2im": fold,
}
