"""Pooling with an explicit gradient: fixed order, no atomic additions.

Every op is a short sequence of slices or gathers and elementwise kernels, and so is its gradient.
Nothing is ever scattered, and the bits do not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.numerics.sliding_windows import (
    add_taps,
    apply_function,
    check_integer,
    check_sequence,
    count_windows,
    pad_time,
    take_tap,
)


def adaptive_avg_pool1d(x: Tensor, size: int) -> Tensor:
    """Average over `size` bins of time: (batch, time, channel) -> (batch, size, channel).

    Bin i is [floor(i T / size), ceil((i + 1) T / size)), as in torch: bins overlap when size does
    not divide T, and repeat samples when size > T. It takes one pass for each sample of a bin.
    """
    check_sequence("adaptive_avg_pool1d", x)
    check_integer("adaptive_avg_pool1d", "size", size, 1)
    return _average_bins(x, 1, size)


def adaptive_avg_pool2d(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Average over `size` bins: (batch, channel, height, width) -> (batch, channel, *size).

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
        check_integer("adaptive_avg_pool2d", name, value, 1)
    return _average_bins(_average_bins(x, 2, size[0]), 3, size[1])


def max_pool1d(x: Tensor, kernel: int, stride: int, padding: int = 0) -> Tensor:
    """Take the maximum of each window of time: (batch, time, channel) -> (batch, windows, channel).

    Padding never wins, NaN wins over every number, and of equal maxima the first takes the
    gradient, as in torch.nn.functional.max_pool1d.
    """
    check_sequence("max_pool1d", x)
    count_windows("max_pool1d", x.shape[1], kernel, stride, padding)
    _check_padding("max_pool1d", kernel, padding)
    return apply_function(_MaxPool1d, x, kernel, stride, padding)


def avg_pool1d(x: Tensor, kernel: int, stride: int, padding: int = 0) -> Tensor:
    """Average each window of time: (batch, time, channel) -> (batch, windows, channel).

    Padding counts as zeros, and the divisor is always `kernel`, as by default in nn.AvgPool1d.
    """
    check_sequence("avg_pool1d", x)
    count_windows("avg_pool1d", x.shape[1], kernel, stride, padding)
    _check_padding("avg_pool1d", kernel, padding)
    # Divided by a tensor: a GPU turns division by a plain number into a multiplication, which
    # rounds differently.
    total = apply_function(_SumPool1d, x, kernel, stride, padding)
    return total / total.new_full((), kernel)


class _SumBins(torch.autograd.Function):
    """Sum over adaptive bins along one axis.

    Input t lies in the bins [floor(t n / T), ceil((t + 1) n / T)): the very same formula with the
    two lengths exchanged. So the gradient is this function again, from n back to T.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, size: int) -> Tensor:
        ctx.dim, ctx.length = dim, x.shape[dim]
        first, last = _bins(ctx.length, size, x.device)
        total = x.index_select(dim, first)
        for step in range(1, _widest_bin(ctx.length, size)):
            index = first + step
            part = x.index_select(dim, index.minimum(last))
            total += part.masked_fill_(_along(index > last, x, dim), 0)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return apply_function(_SumBins, grads[0], ctx.dim, ctx.length), None, None


class _MaxPool1d(torch.autograd.Function):
    """A running maximum over the taps that remembers where each tap took the lead."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: int, stride: int, padding: int) -> Tensor:
        ctx.length, ctx.stride, ctx.padding = x.shape[1], stride, padding
        padded = pad_time(x, padding, -math.inf)
        windows = (padded.shape[1] - kernel) // stride + 1
        best = take_tap(padded, 0, windows, stride).clone()
        leads = []
        for tap in range(1, kernel):
            value = take_tap(padded, tap, windows, stride)
            leads.append((value > best) | value.isnan())
            if tap <= padding and (padding - tap) % stride == 0:
                # This window's first sample of data: it beats padding even when it is -infinity.
                first = (padding - tap) // stride
                leads[-1][:, first : first + 1] = True  # a slice: a short input has no such window
            best = torch.where(leads[-1], value, best)
        ctx.save_for_backward(*leads)
        return best

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # A tap wins where it took the lead and no later tap did; the first needs no lead to take.
        overtaken = torch.zeros_like(grads[0], dtype=torch.bool)
        losses = []
        for lead in reversed(ctx.saved_tensors):
            losses.append(overtaken | ~lead)
            overtaken = overtaken | lead
        losses.append(overtaken)
        parts = (grads[0].masked_fill(lost, 0) for lost in reversed(losses))
        return add_taps(parts, ctx.length, ctx.stride, ctx.padding), None, None, None


class _SumPool1d(torch.autograd.Function):
    """The sum of each window, tap after tap."""

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
    first, last = _bins(x.shape[dim], size, x.device)
    counts = _along((last - first + 1).to(x.dtype), x, dim)
    return apply_function(_SumBins, x, dim, size) / counts


def _bins(length: int, size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the first and the last sample of each bin, (size,) int64 each.

    Computed on the device from integers, not kept in a table: a few tiny kernels, and no state that
    graph capture, tracing or inference mode could spoil.
    """
    bins = torch.arange(size, device=device)
    return bins * length // size, ((bins + 1) * length - 1) // size


def _widest_bin(length: int, size: int) -> int:
    """Return the largest number of samples in a bin.

    With g = gcd(length, size), the fractions of i length / size are the multiples of g / size, and
    the bin that starts at fraction f holds ceil(f + length / size): largest for f = 1 - g / size.
    """
    return -(-(length + size - math.gcd(length, size)) // size)


def _along(vector: Tensor, x: Tensor, dim: int) -> Tensor:
    """Shape a vector so that it broadcasts along axis `dim` of x."""
    return vector.view([-1 if axis == dim else 1 for axis in range(x.ndim)])


def _check_padding(op: str, kernel: int, padding: int) -> None:
    if 2 * padding > kernel:
        raise NumericsError(
            f"{op} expects padding of at most half the kernel, {kernel} // 2; got {padding}"
        )
