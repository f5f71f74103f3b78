"""Convolutions over time as matrix products, in (batch, time, channel) layout.

cuDNN and oneDNN choose an algorithm by shape and device, and their deterministic algorithms can be
several times slower. Here a convolution is a copy (im2col) and one matrix product, with an explicit
gradient: one algorithm whose results repeat. Weights have the shape of nn.Conv1d's.
"""

from typing import Any

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.numerics.sliding_windows import (
    add_taps,
    apply_function,
    check_sequence,
    count_windows,
    pad_time,
    take_tap,
)


def conv1d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0
) -> Tensor:
    """Return the convolution over time: (batch, time, in) -> (batch, windows, out).

    y[b, t, o] = bias[o] + sum over i, j of weight[o, i, j] x[b, t stride + j - padding, i],
    as torch.nn.functional.conv1d computes it on (batch, in, time).

    Args:
        x: (batch, time, in), floating point.
        weight: (out, in, kernel), as in nn.Conv1d.
        bias: (out,) or None.
        stride: samples from the start of one window to the start of the next.
        padding: zeros added at each end of time.

    Example:
        >>> conv1d(torch.ones(2, 10, 3), torch.ones(4, 3, 5), padding=2).shape
        torch.Size([2, 10, 4])
    """
    check_sequence("conv1d", x)
    _check_weight("conv1d", weight, "(out, in, kernel)", x.shape[2], weight.shape[1:2])
    _check_bias("conv1d", bias, weight.shape[0])
    count_windows("conv1d", x.shape[1], weight.shape[2], stride, padding)
    x, weight, bias = _follow_autocast(x, weight, bias)
    return apply_function(_Conv1d, x, weight, bias, stride, padding)


def depthwise_conv1d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, padding: int = 0
) -> Tensor:
    """Return each channel convolved with its own filter: (batch, time, channel), time -> windows.

    y[b, t, c] = bias[c] + sum over j of weight[c, 0, j] x[b, t + j - padding, c],
    as torch.nn.functional.conv1d computes it with groups = channels.

    Args:
        x: (batch, time, channel), floating point.
        weight: (channel, 1, kernel), as in nn.Conv1d with groups = channels.
        bias: (channel,) or None.
    """
    check_sequence("depthwise_conv1d", x)
    _check_weight("depthwise_conv1d", weight, "(channel, 1, kernel)", x.shape[2], weight.shape[:1])
    if weight.shape[1] != 1:
        raise NumericsError(
            f"depthwise_conv1d expects a weight of shape (channel, 1, kernel); "
            f"got {tuple(weight.shape)}"
        )
    _check_bias("depthwise_conv1d", bias, weight.shape[0])
    count_windows("depthwise_conv1d", x.shape[1], weight.shape[2], 1, padding)
    x, weight, bias = _follow_autocast(x, weight, bias)
    return apply_function(_DepthwiseConv1d, x, weight, bias, padding)


class _Conv1d(torch.autograd.Function):
    """columns(x) @ weight, and its gradient by two more matrix products."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int
    ) -> Tensor:
        columns = _columns(x, weight.shape[2], stride, padding)
        # A CPU gathers the columns again for the gradient: about 10% more time, but storing them
        # would need `kernel` times the memory. A GPU stores them: launching kernels costs more.
        ctx.save_for_backward(columns if x.is_cuda else x, weight)
        ctx.stride, ctx.padding, ctx.shape = stride, padding, x.shape
        matrix = weight.transpose(1, 2).flatten(1).t()  # (kernel x in, out)
        flat = columns @ matrix if bias is None else torch.addmm(bias, columns, matrix)
        return flat.view(x.shape[0], -1, weight.shape[0])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        saved, weight = ctx.saved_tensors
        (batch, length, _), (_, inputs, kernel) = ctx.shape, weight.shape
        flat = grads[0].flatten(0, 1)  # (batch x windows, out)
        grad_x = grad_weight = grad_bias = None
        # [Step 1] Gradient of x: one product per tap, added where the tap was read.
        if ctx.needs_input_grad[0] and kernel == ctx.stride == 1 and ctx.padding == 0:
            grad_x = (flat @ weight[:, :, 0]).view(ctx.shape)
        elif ctx.needs_input_grad[0]:
            # The tap is the outermost axis, so that each tap is contiguous in memory: on a CPU this
            # takes about 25% less time than the layout of the columns.
            taps = torch.matmul(flat, weight.permute(2, 0, 1)).view(kernel, batch, -1, inputs)
            grad_x = add_taps(taps.unbind(), length, ctx.stride, ctx.padding)
        # [Step 2] Gradient of the weight: output gradient times columns.
        if ctx.needs_input_grad[1]:
            gathered = saved.ndim == 2
            columns = saved if gathered else _columns(saved, kernel, ctx.stride, ctx.padding)
            grad_weight = (flat.t() @ columns).view(-1, kernel, inputs).transpose(1, 2)
        # [Step 3] Gradient of the bias: the sum over batch and windows.
        if ctx.needs_input_grad[2]:
            grad_bias = flat.sum(0)
        return grad_x, grad_weight, grad_bias, None, None


class _DepthwiseConv1d(torch.autograd.Function):
    """One multiplication and one addition per tap, in the order of the taps."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, padding: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.padding = padding
        padded, kernel = pad_time(x, padding), weight.shape[2]
        windows = padded.shape[1] - kernel + 1
        total = take_tap(padded, 0, windows, 1) * weight[:, 0, 0]
        for tap in range(1, kernel):
            total += take_tap(padded, tap, windows, 1) * weight[:, 0, tap]
        return total if bias is None else total + bias

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), grad = ctx.saved_tensors, grads[0]
        taps = range(weight.shape[2])
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            parts = (grad * weight[:, 0, tap] for tap in taps)
            grad_x = add_taps(parts, x.shape[1], 1, ctx.padding)
        if ctx.needs_input_grad[1]:
            padded, windows = pad_time(x, ctx.padding), grad.shape[1]
            sums = [(take_tap(padded, tap, windows, 1) * grad).sum((0, 1)) for tap in taps]
            grad_weight = torch.stack(sums, 1).unsqueeze(1)
        if ctx.needs_input_grad[2]:
            grad_bias = grad.sum((0, 1))
        return grad_x, grad_weight, grad_bias, None


def _columns(x: Tensor, kernel: int, stride: int, padding: int) -> Tensor:
    """Return every window as one row: (batch x windows, kernel x channel), channels innermost.

    In (batch, time, channel) layout a window is contiguous in memory, so this copies whole windows.
    """
    windows = pad_time(x, padding).unfold(1, kernel, stride)  # (batch, windows, channel, kernel)
    return windows.transpose(2, 3).reshape(-1, kernel * x.shape[2])


def _follow_autocast(
    x: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Cast the arguments as autocast would: it does not reach into an autograd Function."""
    device = x.device.type
    if not torch.is_autocast_enabled(device):
        return x, weight, bias
    dtype = torch.get_autocast_dtype(device)
    return x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)


def _check_weight(
    op: str, weight: Tensor, layout: str, channels: int, weight_channels: tuple[int, ...]
) -> None:
    """Refuse a weight of another rank, or one for another number of channels."""
    if weight.ndim != 3 or 0 in weight.shape:
        raise NumericsError(
            f"{op} expects a weight of shape {layout}, not empty; got {tuple(weight.shape)}"
        )
    if tuple(weight_channels) != (channels,):
        raise NumericsError(
            f"{op} expects a weight {layout} for the input's {channels} channels; "
            f"got {tuple(weight.shape)}; is the input (batch, time, channel)?"
        )


def _check_bias(op: str, bias: Tensor | None, outputs: int) -> None:
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise NumericsError(
            f"{op} expects a bias of shape ({outputs},) or None; got {tuple(bias.shape)}"
        )
