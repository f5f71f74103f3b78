"""Pooling in one, two and three dimensions: taps taken or added one after another, in float64.

Of equal maxima the first wins, and NaN wins over every number. Adaptive bins may be uneven: bin i
of n over T values is [floor(i T / n), ceil((i + 1) T / n)).
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from seedless.portable.exact.sums import add_at
from seedless.portable.ops.convolution import Windows, spread, take
from seedless.portable.ops.elementwise import Implementation

Sizes = Sequence[int]


@dataclass(frozen=True)
class PoolWindows(Windows):
    """Windows of a pool; with ``ceil`` the last one may extend beyond the end of its axis."""

    ceil: bool = False

    def positions(self, sizes: Sizes) -> list[int]:
        """Return how many windows each axis has; none starts on the padding of the far side."""
        if not self.ceil:
            return super().positions(sizes)
        counts = []
        for size, width, step, pad, gap in zip(
            sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True
        ):
            count = -(-(size + 2 * pad - gap * (width - 1) - 1) // step) + 1
            counts.append(count - 1 if (count - 1) * step >= size + pad else count)
        return counts

    def overhang(self, sizes: Sizes) -> list[int]:
        """Return what each axis lacks beyond its padding for its last window."""
        each = zip(
            *(sizes, self.positions(sizes), self.kernel, self.stride, self.padding, self.dilation),
            strict=True,
        )
        return [
            max(0, (count - 1) * step + gap * (width - 1) + 1 - size - 2 * pad)
            for size, count, width, step, pad, gap in each
        ]

    def pad(self, x: Tensor, value: float = 0.0) -> Tensor:
        """Add the padding, and what the last windows need beyond it, to the last dimensions."""
        sides = zip(self.padding, self.overhang(x.shape[-len(self.kernel) :]), strict=True)
        widths = [width for pad, more in reversed(list(sides)) for width in (pad, pad + more)]
        return F.pad(x, widths, value=value) if any(widths) else x


def _make_windows(
    x: Tensor, kernel: Sizes, stride: Sizes, padding: Any, ceil: bool, dilation: Any = 1
) -> tuple[PoolWindows, list[int]]:
    n = len(kernel)
    steps = spread(stride or kernel, n)
    windows = PoolWindows(tuple(kernel), steps, spread(padding, n), spread(dilation, n), ceil)
    return windows, windows.positions(x.shape[-n:])


def _divisors(
    x: Tensor, windows: PoolWindows, positions: Sizes, counted: bool, given: int | None
) -> Tensor:
    """Return what each window's sum is divided by: what hangs over is never counted."""
    n = len(windows.kernel)
    if given or (counted and not any(windows.overhang(x.shape[-n:]))):
        value = float(given or math.prod(windows.kernel))
        return torch.full((), value, dtype=torch.float64, device=x.device)
    ones = torch.ones(x.shape[-n:], dtype=torch.float64, device=x.device)
    if counted:
        widths = [width for pad in reversed(windows.padding) for width in (pad, pad)]
        lacking = windows.overhang(x.shape[-n:])
        ones = F.pad(ones, widths, value=1.0)
        padded = F.pad(ones, [width for more in reversed(lacking) for width in (0, more)])
    else:
        padded = windows.pad(ones)
    return torch.stack([padded[tap] for tap in windows.taps(positions)]).sum(0)  # small integers


def avg_pool(
    x: Tensor,
    kernel: Sizes,
    stride: Sizes = (),
    padding: Sizes | int = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window."""
    windows, positions = _make_windows(x, kernel, stride, padding, ceil_mode)
    padded = windows.pad(x.to(torch.float64))
    out = None
    for tap in windows.taps(positions):
        out = padded[take(tap)] + (0.0 if out is None else out)
    assert out is not None
    divisor = _divisors(x, windows, positions, count_include_pad, divisor_override)
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
    """Return each value's share of the gradients of its windows, added in order of the taps."""
    windows, positions = _make_windows(x, kernel, stride, padding, ceil_mode)
    divisor = _divisors(x, windows, positions, count_include_pad, divisor_override)
    share = grad.to(torch.float64) / divisor
    return _add_taps([share] * math.prod(kernel), x, windows, positions)


def _add_taps(parts: Sequence[Tensor], x: Tensor, windows: PoolWindows, positions: Sizes) -> Tensor:
    n = len(windows.kernel)
    sizes = x.shape[-n:]
    sides = zip(sizes, windows.padding, windows.overhang(sizes), strict=True)
    padded = [size + 2 * pad + more for size, pad, more in sides]
    out = torch.zeros([*x.shape[:-n], *padded], dtype=torch.float64, device=x.device)
    for part, tap in zip(parts, windows.taps(positions), strict=True):
        out[take(tap)] += part
    return windows.unpad(out, sizes).to(x.dtype)


def max_pool(
    x: Tensor,
    kernel: Sizes,
    stride: Sizes = (),
    padding: Sizes | int = 0,
    dilation: Sizes | int = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window, and its index in the flattened dimensions."""
    windows, positions, places = _max_windows(x, kernel, stride, padding, dilation, ceil_mode)
    padded = windows.pad(x, -math.inf)
    best = place = None
    for tap in windows.taps(positions):
        value, here = padded[take(tap)], places[tap].expand(*x.shape[: -len(kernel)], *positions)
        if best is None or place is None:
            best, place = value, here
            continue
        # Padding holds place -1: any value of the input takes over from it, even -infinity.
        leads = ((value > best) | (value != value) | (place < 0)) & (here >= 0)
        best, place = torch.where(leads, value, best), torch.where(leads, here, place)
    assert best is not None
    assert place is not None
    return best.contiguous(), place.contiguous()


def _max_windows(
    x: Tensor, kernel: Sizes, stride: Sizes, padding: Any, dilation: Any, ceil: bool
) -> tuple[PoolWindows, list[int], Tensor]:
    windows, positions = _make_windows(x, kernel, stride, padding, ceil, dilation)
    sizes = x.shape[-len(kernel) :]
    places = torch.arange(math.prod(sizes), device=x.device).view(sizes)
    return windows, positions, windows.pad(places, -1)


def max_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    place: Tensor,
) -> Tensor:
    """Return the gradient of each maximum, added in order of the taps."""
    windows, positions, places = _max_windows(x, kernel, stride, padding, dilation, ceil_mode)
    wide = grad.to(torch.float64)
    zero = torch.zeros_like(wide)
    parts = [torch.where(place == places[tap], wide, zero) for tap in windows.taps(positions)]
    return _add_taps(parts, x, windows, positions)


def _bins(length: int, size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the first and the last value of each bin."""
    bins = torch.arange(size, device=device)
    return bins * length // size, ((bins + 1) * length - 1) // size


def _sum_bins(x: Tensor, dim: int, size: int) -> Tensor:
    """Return the sums of adaptive bins along one axis; the transpose is the same function."""
    length = x.shape[dim]
    first, last = _bins(length, size, x.device)
    shape = [-1 if axis == dim else 1 for axis in range(x.ndim)]
    out = torch.zeros_like(x.index_select(dim, first))
    for offset in range(-(-(length + size - math.gcd(length, size)) // size)):
        inside = (first + offset <= last).view(shape)
        value = x.index_select(dim, torch.minimum(first + offset, last))
        out = torch.where(inside, out + value, out)
    return out


def _bin_counts(length: int, size: int, x: Tensor, dim: int) -> Tensor:
    first, last = _bins(length, size, x.device)
    counts = (last - first + 1).to(torch.float64)
    return counts.view([-1 if axis == dim else 1 for axis in range(x.ndim)])


def adaptive_avg_pool(x: Tensor, output: Sizes) -> Tensor:
    """Return the mean of each bin: one axis after another, in float64."""
    out = x.to(torch.float64)
    for axis, size in zip(range(x.ndim - len(output), x.ndim), output, strict=True):
        out = _sum_bins(out, axis, size) / _bin_counts(x.shape[axis], size, x, axis)
    return out.to(x.dtype)


def adaptive_avg_pool_backward(grad: Tensor, x: Tensor, dimensions: int) -> Tensor:
    """Return each value's share of the gradients of its bins."""
    out = grad.to(torch.float64)
    for axis in range(x.ndim - dimensions, x.ndim):
        out = out / _bin_counts(x.shape[axis], grad.shape[axis], x, axis)
        out = _sum_bins(out, axis, x.shape[axis])
    return out.to(x.dtype)


def adaptive_max_pool(x: Tensor, output: Sizes) -> tuple[Tensor, Tensor]:
    """Return the maximum of each bin and its index; the first of equals."""
    n = len(output)
    sizes = x.shape[-n:]
    ends = [_bins(length, size, x.device) for length, size in zip(sizes, output, strict=True)]
    host = torch.device("cpu")  # a loop's length may not be read from a device
    widths = (_bins(length, size, host) for length, size in zip(sizes, output, strict=True))
    widest = [int((last - first).max()) + 1 for first, last in widths]
    flat = x.flatten(-n)
    best = place = None
    for offsets in itertools.product(*map(range, widest)):
        index = torch.zeros([1] * n, dtype=torch.int64, device=x.device)
        for axis, (offset, (first, last), length) in enumerate(
            zip(offsets, ends, sizes, strict=True)
        ):
            along = torch.minimum(first + offset, last)
            index = index * length + along.view([-1 if a == axis else 1 for a in range(n)])
        value = flat.index_select(-1, index.flatten()).view(*x.shape[:-n], *output)
        here = index.expand(value.shape)
        leads = value != value if best is None else (value > best) | (value != value)
        best = value if best is None else torch.where(leads, value, best)
        place = here if place is None else torch.where(leads, here, place)
    assert best is not None
    assert place is not None
    return best, place.contiguous()


def adaptive_max_pool_backward(grad: Tensor, x: Tensor, place: Tensor, dimensions: int) -> Tensor:
    """Add the gradient of each maximum at its index, on the grid of its plane."""
    flat = torch.zeros_like(x, memory_format=torch.contiguous_format).flatten(-dimensions)
    index, values = place.flatten(-dimensions), grad.flatten(-dimensions)
    out = add_at(flat, values, [-1], lambda zeros, q: zeros.scatter_add_(-1, index, q))
    return out.view(x.shape)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::avg_pool1d": avg_pool,
    "aten::avg_pool2d": avg_pool,
    "aten::avg_pool3d": avg_pool,
    "aten::avg_pool2d_backward": avg_pool_backward,
    "aten::avg_pool3d_backward": avg_pool_backward,
    "aten::max_pool1d": lambda *given, **named: max_pool(*given, **named)[0],
    "aten::max_pool2d_with_indices": max_pool,
    "aten::max_pool3d_with_indices": max_pool,
    "aten::max_pool2d_with_indices_backward": max_pool_backward,
    "aten::max_pool3d_with_indices_backward": max_pool_backward,
    "aten::_adaptive_avg_pool2d": adaptive_avg_pool,
    "aten::_adaptive_avg_pool3d": adaptive_avg_pool,
    "aten::_adaptive_avg_pool2d_backward": partial(adaptive_avg_pool_backward, dimensions=2),
    "aten::_adaptive_avg_pool3d_backward": partial(adaptive_avg_pool_backward, dimensions=3),
    "aten::adaptive_max_pool2d": adaptive_max_pool,
    "aten::adaptive_max_pool3d": adaptive_max_pool,
    "aten::adaptive_max_pool2d_backward": lambda g, x, place: adaptive_max_pool_backward(
        g, x, place, 2
    ),
    "aten::adaptive_max_pool3d_backward": lambda g, x, place: adaptive_max_pool_backward(
        g, x, place, 3
    ),
}
