"""Pooling in one, two and three dimensions: taps taken or added one after another, in float64.

Of equal maxima the first wins, and NaN wins over every number. Adaptive bins may be uneven: bin i
of n over T values is [floor(i T / n), ceil((i + 1) T / n)).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.numerics.portable.arithmetic import Handler
from seedless.numerics.portable.conv import Windows, spread, take
from seedless.numerics.portable.reduce import scatter

Sizes = Sequence[int]


def _make_windows(
    x: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes | int, ceil: bool
) -> tuple[Windows, list[int]]:
    n = len(kernel)
    if ceil:
        raise NumericsError(
            "portable pooling counts whole windows only; got ceil_mode=True: pad the input instead"
        )
    windows = Windows(tuple(kernel), spread(stride or kernel, n), spread(padding, n), (1,) * n)
    return windows, windows.positions(x.shape[-n:])


def _divisors(
    x: Tensor, windows: Windows, positions: Sizes, counted: bool, given: int | None
) -> Tensor:
    n = len(windows.kernel)
    if given or counted:
        value = float(given or math.prod(windows.kernel))
        return torch.full((), value, dtype=torch.float64, device=x.device)
    ones = torch.ones(x.shape[-n:], dtype=torch.float64, device=x.device)
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
    """The mean of each window."""
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
    """Each value's share of the gradients of its windows, added in order of the taps."""
    windows, positions = _make_windows(x, kernel, stride, padding, ceil_mode)
    divisor = _divisors(x, windows, positions, count_include_pad, divisor_override)
    share = grad.to(torch.float64) / divisor
    return _add_taps([share] * math.prod(kernel), x, windows, positions)


def _add_taps(parts: Sequence[Tensor], x: Tensor, windows: Windows, positions: Sizes) -> Tensor:
    n = len(windows.kernel)
    sizes = x.shape[-n:]
    padded = [size + 2 * pad for size, pad in zip(sizes, windows.padding, strict=True)]
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
    """The maximum of each window, and its place in the flattened dimensions."""
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
) -> tuple[Windows, list[int], Tensor]:
    n = len(kernel)
    windows, _ = _make_windows(x, kernel, stride, padding, ceil)
    windows = Windows(windows.kernel, windows.stride, windows.padding, spread(dilation, n))
    sizes = x.shape[-n:]
    places = torch.arange(math.prod(sizes), device=x.device).view(sizes)
    widths = [width for pad in reversed(windows.padding) for width in (pad, pad)]
    return windows, windows.positions(sizes), F.pad(places, widths, value=-1)


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
    """Each maximum's gradient, added in order of the taps: nothing is scattered."""
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
    """Sum over adaptive bins along one axis, value after value; its transpose is itself."""
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
    """The mean of each bin: one axis after another, in float64."""
    out = x.to(torch.float64)
    for axis, size in zip(range(x.ndim - len(output), x.ndim), output, strict=True):
        out = _sum_bins(out, axis, size) / _bin_counts(x.shape[axis], size, x, axis)
    return out.to(x.dtype)


def adaptive_avg_pool_backward(grad: Tensor, x: Tensor, dimensions: int) -> Tensor:
    """Each value's share of the gradients of its bins."""
    out = grad.to(torch.float64)
    for axis in range(x.ndim - dimensions, x.ndim):
        out = out / _bin_counts(x.shape[axis], grad.shape[axis], x, axis)
        out = _sum_bins(out, axis, x.shape[axis])
    return out.to(x.dtype)


def adaptive_max_pool(x: Tensor, output: Sizes) -> tuple[Tensor, Tensor]:
    """The maximum of each bin and its place, bins taken value after value."""
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


def adaptive_max_pool_backward(grad: Tensor, x: Tensor, place: Tensor) -> Tensor:
    """Each maximum's gradient, added to its place on the grid of its plane."""
    flat = torch.zeros_like(x, memory_format=torch.contiguous_format).flatten(-2)
    index, values = place.flatten(-2), grad.flatten(-2)
    out = scatter(flat, values, [-1], lambda zeros, q: zeros.scatter_add_(-1, index, q))
    return out.view(x.shape)


HANDLERS: dict[str, Handler] = {
    "avg_pool1d": avg_pool,
    "avg_pool2d": avg_pool,
    "avg_pool3d": avg_pool,
    "avg_pool2d_backward": avg_pool_backward,
    "avg_pool3d_backward": avg_pool_backward,
    "max_pool1d": lambda *given, **named: max_pool(*given, **named)[0],
    "max_pool2d_with_indices": max_pool,
    "max_pool3d_with_indices": max_pool,
    "max_pool2d_with_indices_backward": max_pool_backward,
    "max_pool3d_with_indices_backward": max_pool_backward,
    "_adaptive_avg_pool2d": adaptive_avg_pool,
    "_adaptive_avg_pool3d": adaptive_avg_pool,
    "_adaptive_avg_pool2d_backward": lambda grad, x: adaptive_avg_pool_backward(grad, x, 2),
    "_adaptive_avg_pool3d_backward": lambda grad, x: adaptive_avg_pool_backward(grad, x, 3),
    "adaptive_max_pool2d": adaptive_max_pool,
    "adaptive_max_pool2d_backward": adaptive_max_pool_backward,
}
