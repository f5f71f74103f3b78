"""Pooling with explicit gradients, without atomic additions.

Every operation and its gradient is a short sequence of slices or index_selects and elementwise
operations in a fixed order, so the bits do not depend on the number of threads.
"""

import math
from typing import Any

import torch
from torch import Tensor

from seedless.core.checks import check_integer
from seedless.core.errors import NumericsError
from seedless.numerics.sliding_windows import (
    add_taps,
    apply_function,
    check_sequence,
    count_windows,
    pad_time,
    take_tap,
)


def adaptive_avg_pool1d(x: Tensor, size: int) -> Tensor:
    """Return averages over `size` bins of time: (batch, time, channel) -> (batch, size, channel).

    Bin i is [floor(i T / size), ceil((i + 1) T / size)) of T samples, as in torch: bins overlap
    where size does not divide T, and repeat samples where size > T.
    """
    check_sequence("adaptive_avg_pool1d", x)
    check_integer("adaptive_avg_pool1d's size", size, 1, error=NumericsError)
    return _average_bins(x, 1, size)


def adaptive_avg_pool2d(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Return averages over `size` bins: (batch, channel, height, width) -> (batch, channel, *size).

    The mean over a rectangle is the mean over its columns of the means over its rows, so this is
    the one-dimensional pool along height, then along width.
    """
    if x.ndim != 4 or not x.is_floating_point() or 0 in x.shape:
        raise NumericsError(
            "adaptive_avg_pool2d expects a floating-point (batch, channel, height, width) tensor, "
            f"not empty; got {x.dtype} of shape {tuple(x.shape)}"
        )
    if not isinstance(size, tuple) or len(size) != 2:
        raise NumericsError(
            f"adaptive_avg_pool2d expects size to be a pair of integers; got {size!r}"
        )
    for name, value in zip(("height", "width"), size, strict=True):
        check_integer(f"adaptive_avg_pool2d's {name}", value, 1, error=NumericsError)
    return _average_bins(_average_bins(x, 2, size[0]), 3, size[1])


def max_pool1d(x: Tensor, kernel: int, stride: int, padding: int = 0) -> Tensor:
    """Return each window's maximum over time: (batch, time, channel) -> (batch, windows, channel).

    As in torch.nn.functional.max_pool1d, padding is never the maximum, NaN is larger than every
    number, and of equal maxima the first gets the gradient.
    """
    check_sequence("max_pool1d", x)
    count_windows("max_pool1d", x.shape[1], kernel, stride, padding)
    _check_padding("max_pool1d", kernel, padding)
    return apply_function(_MaxPool1d, x, kernel, stride, padding)


def avg_pool1d(x: Tensor, kernel: int, stride: int, padding: int = 0) -> Tensor:
    """Return each window's average over time: (batch, time, channel) -> (batch, windows, channel).

    Padding counts as zeros, and the divisor is always `kernel`, as by default in nn.AvgPool1d.
    """
    check_sequence("avg_pool1d", x)
    count_windows("avg_pool1d", x.shape[1], kernel, stride, padding)
    _check_padding("avg_pool1d", kernel, padding)
    # Divide by a tensor: torch turns the division by a Python number into a multiplication on a
    # GPU, which rounds differently.
    total = apply_function(_SumPool1d, x, kernel, stride, padding)
    return total / total.new_full((), kernel)


class _SumBins(torch.autograd.Function):
    """Sum over adaptive bins along one axis, from T samples to n bins.

    Sample t belongs to the bins [floor(t n / T), ceil((t + 1) n / T)): the formula of the bins with
    the two lengths exchanged. So the gradient is this function again, from n to T.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, size: int) -> Tensor:
        ctx.dim, ctx.length = dim, x.shape[dim]
        first, last = _find_bins(ctx.length, size, x.device)
        # Add sample 0 of every bin, then sample 1, ...: zero where a bin has no such sample.
        total = x.index_select(dim, first)
        for step in range(1, _widest_bin(ctx.length, size)):
            index = first + step
            part = x.index_select(dim, index.minimum(last))
            total += part.masked_fill_(_broadcast_along(index > last, x, dim), 0)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return apply_function(_SumBins, grads[0], ctx.dim, ctx.length), None, None


class _MaxPool1d(torch.autograd.Function):
    """A running maximum over the taps that records where each tap became the maximum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: int, stride: int, padding: int) -> Tensor:
        ctx.length, ctx.stride, ctx.padding = x.shape[1], stride, padding
        padded = pad_time(x, padding, -math.inf)
        windows = (padded.shape[1] - kernel) // stride + 1
        maximum = take_tap(padded, 0, windows, stride).clone()
        raised = []  # for each later tap: the windows in which it is a new maximum
        for tap in range(1, kernel):
            value = take_tap(padded, tap, windows, stride)
            raised.append((value > maximum) | value.isnan())
            if tap <= padding and (padding - tap) % stride == 0:
                # The first sample of this window that is data: it replaces padding even if it is
                # -infinity. A slice, because a short input has no such window.
                first = (padding - tap) // stride
                raised[-1][:, first : first + 1] = True
            maximum = torch.where(raised[-1], value, maximum)
        ctx.save_for_backward(*raised)
        return maximum

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # [Step 1] From the last tap to the first: a tap is the maximum where it raised the maximum
        # and no later tap did. Tap 0 is the maximum where no later tap raised it.
        raised_later = torch.zeros_like(grads[0], dtype=torch.bool)
        not_maximum = []
        for raised in reversed(ctx.saved_tensors):
            not_maximum.append(raised_later | ~raised)
            raised_later = raised_later | raised
        not_maximum.append(raised_later)
        # [Step 2] Each tap passes the gradient on where it is the maximum.
        parts = (grads[0].masked_fill(mask, 0) for mask in reversed(not_maximum))
        return add_taps(parts, ctx.length, ctx.stride, ctx.padding), None, None, None


class _SumPool1d(torch.autograd.Function):
    """The sum of each window, one tap after another."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: int, stride: int, padding: int) -> Tensor:
        ctx.length, ctx.kernel, ctx.stride, ctx.padding = x.shape[1], kernel, stride, padding
        padded = pad_time(x, padding)
        windows = (padded.shape[1] - kernel) // stride + 1
        total = take_tap(padded, 0, windows, stride).clone()
        for tap in range(1, kernel):
            total += take_tap(padded, tap, windows, stride)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        parts = (grads[0] for _ in range(ctx.kernel))
        return add_taps(parts, ctx.length, ctx.stride, ctx.padding), None, None, None


def _average_bins(x: Tensor, dim: int, size: int) -> Tensor:
    first, last = _find_bins(x.shape[dim], size, x.device)
    counts = _broadcast_along((last - first + 1).to(x.dtype), x, dim)
    return apply_function(_SumBins, x, dim, size) / counts


def _find_bins(length: int, size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the first and the last sample of each bin, (size,) int64 each.

    They are computed on the device each time, by a few small kernels: a cached tensor could come
    from inside a graph capture, a trace or inference mode, and be unusable outside of it.
    """
    bins = torch.arange(size, device=device)
    return bins * length // size, ((bins + 1) * length - 1) // size


def _widest_bin(length: int, size: int) -> int:
    """Return the largest number of samples in a bin.

    With g = gcd(length, size), the fractions of i length / size are the multiples of g / size, and
    the bin that starts at fraction f holds ceil(f + length / size): largest for f = 1 - g / size.
    """
    return -(-(length + size - math.gcd(length, size)) // size)


def _broadcast_along(vector: Tensor, x: Tensor, dim: int) -> Tensor:
    """Return the vector in a shape that broadcasts along axis `dim` of x."""
    return vector.view([-1 if axis == dim else 1 for axis in range(x.ndim)])


def _check_padding(op: str, kernel: int, padding: int) -> None:
    if 2 * padding > kernel:
        raise NumericsError(
            f"{op} expects padding of at most half the kernel, {kernel} // 2; got {padding}"
        )
