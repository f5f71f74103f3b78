"""Batch norms in training mode as kernels, for channels-first and channels-last memory."""

from typing import Any

import torch
from torch import Tensor

from seedless.portable.constants import MAX_EXACT_ADDENDS
from seedless.portable.kernels.launch import (
    is_ready,
    launch,
    make_column_zeros,
    shape_columns,
    shape_map,
    shape_rows,
)

Three = tuple[Tensor, Tensor, Tensor]


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running: tuple[Tensor | None, Tensor | None],
    momentum: float,
    eps: float,
) -> Three | None:
    """Return y, means and reciprocal deviations of a training batch; update the running ones."""
    if not is_ready(x, weight, bias, *running) or not _is_fit(x):
        return None
    vectors = [v for v in (weight, bias, *running) if v is not None]
    if any(v.numel() != x.shape[1] or not v.is_contiguous() for v in vectors):
        return None
    channels_first = not _is_channels_last(x)
    x = x.contiguous() if channels_first else x
    channels, size = x.shape[1], x.numel() // x.shape[1]
    y, mean, scale = torch.empty_like(x), x.new_empty(channels), x.new_empty(channels)
    moves = (float(momentum), float(eps))
    arguments: tuple[Any, ...]
    sizes: tuple[int, ...]
    if channels_first:
        sizes = (x.shape[0], channels, size // x.shape[0])
        arguments = (x, weight, bias, *running, y, mean, scale, *sizes, *moves)
        launch("batch_norm", x.device, shape_rows(channels, size), *arguments)
        return y, mean, scale
    maxima, sums = make_column_zeros(2 * channels, x.device)
    down, sizes = shape_columns(channels, size), (size, channels)
    laid = (1, size, channels, 0, channels)
    launch("column_maxima_f32", x.device, down, x, maxima, *laid)
    launch("column_sums_f32", x.device, down, x, maxima, sums, *laid)
    launch("gap_maxima", x.device, down, x, maxima, sums, *sizes)
    launch("gap_sums", x.device, down, x, maxima, sums, *sizes)
    arguments = (maxima, sums, *running, mean, scale, *sizes, *moves)
    launch("finish_channels", x.device, shape_map(channels), *arguments)
    arguments = (x, weight, bias, mean, scale, y, *sizes)
    launch("apply_channels", x.device, shape_rows(size, channels), *arguments)
    return y, mean, scale


def batch_norm_backward(
    grad: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor, scale: Tensor
) -> Three | None:
    """Return the gradients of x, weight and bias of a training batch."""
    if not is_ready(x, grad, weight, mean, scale) or not _is_fit(x) or grad.shape != x.shape:
        return None
    if any(v is not None and v.numel() != x.shape[1] for v in (weight, mean, scale)):
        return None
    channels_first = not _is_channels_last(x)
    x = x.contiguous() if channels_first else x
    if grad.stride() != x.stride():
        grad = torch.empty_like(x).copy_(grad)
    vectors = [None if v is None else v.contiguous() for v in (weight, mean, scale)]
    channels, size = x.shape[1], x.numel() // x.shape[1]
    out = torch.empty_like(x)
    arguments: tuple[Any, ...]
    sizes: tuple[int, ...]
    if channels_first:
        of_weight, of_bias = torch.empty_like(mean), torch.empty_like(mean)
        sizes = (x.shape[0], channels, size // x.shape[0])
        arguments = (grad, x, *vectors, out, of_weight, of_bias, *sizes)
        launch("batch_norm_backward", x.device, shape_rows(channels, size), *arguments)
        return out, of_weight, of_bias
    maxima, sums = make_column_zeros(4 * channels, x.device)
    down, sizes = shape_columns(channels, size), (size, channels)
    launch("channel_maxima", x.device, down, grad, x, *vectors, maxima, *sizes)
    launch("channel_sums", x.device, down, grad, x, *vectors, maxima, sums, *sizes)
    launch("scale_sums_f64", x.device, shape_map(4 * channels), sums, maxima, None, 4 * channels)
    arguments = (grad, x, *vectors, sums, out, *sizes)
    launch("apply_channel_grads", x.device, shape_rows(size, channels), *arguments)
    of_bias, of_weight = sums[: 2 * channels].to(torch.float32).view(2, channels)
    return out, of_weight, of_bias


def _is_fit(x: Tensor) -> bool:
    """Return whether a channel has more than one value, and few enough for one exact sum."""
    return x.ndim > 1 and 1 < x.numel() // x.shape[1] <= MAX_EXACT_ADDENDS


def _is_channels_last(x: Tensor) -> bool:
    """Return whether the channels of x are contiguous in memory."""
    return x.shape[1] > 1 and x.movedim(1, -1).is_contiguous()
