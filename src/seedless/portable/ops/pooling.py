"""Average and maximum pooling in one, two and three dimensions, their gradients, and max_unpool.

Law: the taps of a window, the elements of its kernel, are compared or added one after another, in
order, in float64. Of equal maxima the first is taken, and a NaN is larger than every number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from seedless.core.errors import NumericsError
from seedless.portable.ops.convolution import Windows, index_last, repeat_for_dimensions
from seedless.portable.ops.elementwise import Implementation

Sizes = Sequence[int]


@dataclass(frozen=True)
class PoolWindows(Windows):
    """Windows of a pool; with ``ceil`` the last one may extend beyond the end of its axis."""

    ceil: bool = False

    def count_positions(self, sizes: Sizes) -> list[int]:
        """Return how many windows each axis has; none starts in the padding at its end."""
        if not self.ceil:
            return super().count_positions(sizes)
        counts = []
        for size, width, step, pad, gap in zip(
            sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True
        ):
            count = -(-(size + 2 * pad - gap * (width - 1) - 1) // step) + 1
            counts.append(count - 1 if (count - 1) * step >= size + pad else count)
        return counts

    def find_overhang(self, sizes: Sizes) -> list[int]:
        """Return by how much the last window of each axis extends beyond the padding."""
        counts = self.count_positions(sizes)
        return [
            max(0, (count - 1) * step + gap * (width - 1) + 1 - size - 2 * pad)
            for size, count, width, step, pad, gap in zip(
                *(sizes, counts, self.kernel, self.stride, self.padding, self.dilation),
                strict=True,
            )
        ]

    def pad(self, x: Tensor, value: float = 0.0) -> Tensor:
        """Return x with the padding, and what the last windows need beyond it, added."""
        sides = zip(self.padding, self.find_overhang(x.shape[-len(self.kernel) :]), strict=True)
        widths = [width for pad, more in reversed(list(sides)) for width in (pad, pad + more)]
        return F.pad(x, widths, value=value) if any(widths) else x

    def pad_sizes(self, sizes: Sizes) -> list[int]:
        """Return the sizes of what `pad` returns."""
        overhang = self.find_overhang(sizes)
        return [size + more for size, more in zip(super().pad_sizes(sizes), overhang, strict=True)]


def _make_windows(
    x: Tensor, kernel: Sizes, stride: Sizes, padding: Any, ceil: bool, dilation: Any = 1
) -> tuple[PoolWindows, list[int]]:
    """Return the windows, and their number in each dimension; no stride: that of the kernel."""
    n = len(kernel)
    steps, pads, gaps = (
        repeat_for_dimensions(each, n) for each in (stride or kernel, padding, dilation)
    )
    windows = PoolWindows(tuple(kernel), steps, pads, gaps, ceil)
    return windows, windows.count_positions(x.shape[-n:])


def _find_divisors(
    x: Tensor,
    windows: PoolWindows,
    positions: Sizes,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Return the float64 number that each window's sum is divided by: () or ``positions``."""
    sizes = x.shape[-len(windows.kernel) :]
    overhang = windows.find_overhang(sizes)
    # [Step 1] One number for all windows, where they are all as large.
    if divisor_override or (count_include_pad and not any(overhang)):
        value = float(divisor_override or math.prod(windows.kernel))
        return torch.full((), value, dtype=torch.float64, device=x.device)
    # [Step 2] Mark what counts: the input, the padding where asked for, never what is beyond it.
    ones = torch.ones(sizes, dtype=torch.float64, device=x.device)
    if count_include_pad:
        widths = [width for pad in reversed(windows.padding) for width in (pad, pad)]
        ones = F.pad(ones, widths, value=1.0)
        marks = F.pad(ones, [width for more in reversed(overhang) for width in (0, more)])
    else:
        marks = windows.pad(ones)
    # [Step 3] Add the marks of each window: small integers, exact in any order.
    return torch.stack([marks[tap] for tap in windows.slice_taps(positions)]).sum(0)


def avg_pool(
    x: Tensor,
    kernel: Sizes,
    stride: Sizes = (),
    padding: Sizes | int = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window, (..., *positions): its sum over its divisor, rounded once."""
    windows, positions = _make_windows(x, kernel, stride, padding, ceil_mode)
    padded = windows.pad(x.to(torch.float64))
    out = None
    for tap in windows.slice_taps(positions):
        out = padded[index_last(tap)] + (0.0 if out is None else out)
    assert out is not None
    divisor = _find_divisors(x, windows, positions, count_include_pad, divisor_override)
    return (out / divisor).to(x.dtype)


def avg_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Return the gradient like x: each value's share of its windows' gradients, in tap order."""
    windows, positions = _make_windows(x, kernel, stride, padding, ceil_mode)
    divisor = _find_divisors(x, windows, positions, count_include_pad, divisor_override)
    share = grad.to(torch.float64) / divisor
    return _add_taps([share] * math.prod(kernel), x, windows, positions)


def _add_taps(parts: Sequence[Tensor], x: Tensor, windows: PoolWindows, positions: Sizes) -> Tensor:
    n = len(windows.kernel)
    return windows.add_taps(parts, x.shape[:-n], x.shape[-n:], positions).to(x.dtype)


def max_pool(
    x: Tensor,
    kernel: Sizes,
    stride: Sizes = (),
    padding: Sizes | int = 0,
    dilation: Sizes | int = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window, and its int64 index in the flattened dimensions."""
    windows, positions, indices = _make_max_windows(x, kernel, stride, padding, dilation, ceil_mode)
    padded = windows.pad(x, -math.inf)
    shape = (*x.shape[: -len(kernel)], *positions)
    best = best_index = None
    for tap in windows.slice_taps(positions):
        value, index = padded[index_last(tap)], indices[tap].expand(shape)
        if best is None or best_index is None:
            best, best_index = value, index
            continue
        # Padding has the index -1: any value of the input is better than it, even -infinity.
        is_better = ((value > best) | (value != value) | (best_index < 0)) & (index >= 0)
        best = torch.where(is_better, value, best)
        best_index = torch.where(is_better, index, best_index)
    assert best is not None
    assert best_index is not None
    return best.contiguous(), best_index.contiguous()


def _make_max_windows(
    x: Tensor, kernel: Sizes, stride: Sizes, padding: Any, dilation: Any, ceil: bool
) -> tuple[PoolWindows, list[int], Tensor]:
    """Return windows, their number, and the index of each value of the padded input, or -1."""
    windows, positions = _make_windows(x, kernel, stride, padding, ceil, dilation)
    sizes = x.shape[-len(kernel) :]
    indices = torch.arange(math.prod(sizes), device=x.device).view(sizes)
    return windows, positions, windows.pad(indices, -1)


def max_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """Return the gradient like x: each maximum's gradient at its index, added in tap order."""
    windows, positions, all_indices = _make_max_windows(
        x, kernel, stride, padding, dilation, ceil_mode
    )
    wide = grad.to(torch.float64)
    zero = torch.zeros_like(wide)
    taps = windows.slice_taps(positions)
    parts = [torch.where(indices == all_indices[tap], wide, zero) for tap in taps]
    return _add_taps(parts, x, windows, positions)


def max_unpool(
    x: Tensor, indices: Tensor, size: Sizes, stride: Sizes = (), padding: Sizes = ()
) -> Tensor:
    """Return zeros (..., *size) with each value of x at its index in the flattened dimensions.

    Where several values have one index, the last one is kept. Stride and padding, which an overload
    has, do not change the result.
    """
    length, first = math.prod(size), x.ndim - len(size)
    flat, index = x.flatten(first), indices.flatten(first)
    _check_indices(index, size)
    # The values are numbered, and the largest number at an index is that of the last value there.
    numbers = torch.arange(index.shape[-1], device=x.device).expand(index.shape)
    none = index.new_full((*index.shape[:-1], length), -1)
    last = none.scatter_reduce_(-1, index, numbers, "amax")
    written = flat.gather(-1, last.clamp(min=0))
    out = torch.where(last < 0, torch.zeros_like(written), written)
    return out.view(*x.shape[:first], *size)


def _check_indices(indices: Tensor, size: Sizes) -> None:
    """Refuse indices outside an output of ``size``; no trace of the ops sees the check."""
    with _disable_current_modes():
        low, high = (int(end) for end in indices.aminmax()) if indices.numel() else (0, 0)
    if low < 0 or high >= math.prod(size):
        raise NumericsError(
            f"expected indices of max_unpool from 0 to {math.prod(size) - 1} for an output of size "
            f"{tuple(size)}, got {low} to {high}: give it the indices of the pool, and the size of "
            "the pool's input as output_size"
        )


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::avg_pool1d": avg_pool,
    "aten::avg_pool2d": avg_pool,
    "aten::avg_pool3d": avg_pool,
    "aten::avg_pool2d_backward": avg_pool_backward,
    "aten::avg_pool3d_backward": avg_pool_backward,
    "aten::max_pool1d": lambda *args, **options: max_pool(*args, **options)[0],
    "aten::max_pool2d_with_indices": max_pool,
    "aten::max_pool3d_with_indices": max_pool,
    "aten::max_pool2d_with_indices_backward": max_pool_backward,
    "aten::max_pool3d_with_indices_backward": max_pool_backward,
    "aten::max_unpool2d": max_unpool,
    "aten::max_unpool3d": max_unpool,
}
