"""Batch norms of training as fused kernels, whichever way channels lie in memory; as in `ops`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seedless.portable.kernels.launch import column_work, is_ready, launch, map_work, row_work
from seedless.portable.kernels.rows import MOST

Three = tuple[Tensor, Tensor, Tensor]


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running: tuple[Tensor | None, Tensor | None],
    momentum: float,
    eps: float,
) -> Three | None:
    """Return y, means and reciprocal deviations of a training batch; move running statistics."""
    if not is_ready(x, weight, bias, *running) or not _is_fit(x):
        return None
    vectors = [v for v in (weight, bias, *running) if v is not None]
    if any(v.numel() != x.shape[1] or not v.is_contiguous() for v in vectors):
        return None
    apart = not _lies_side_by_side(x)
    x = x.contiguous() if apart else x
    channels, size = x.shape[1], x.numel() // x.shape[1]
    y, mean, scale = torch.empty_like(x), x.new_empty(channels), x.new_empty(channels)
    moves = (float(momentum), float(eps))
    given: tuple[Any, ...]
    sizes: tuple[int, ...]
    if apart:
        sizes = (x.shape[0], channels, size // x.shape[0])
        given = (x, weight, bias, *running, y, mean, scale, *sizes, *moves)
        launch("batch_norm", x.device, row_work(channels, size), *given)
        return y, mean, scale
    tops = torch.zeros(2 * channels, dtype=torch.int64, device=x.device)
    sums = torch.zeros(2 * channels, dtype=torch.float64, device=x.device)
    down, sizes = column_work(channels, size), (size, channels)
    laid = (1, size, channels, 0, channels)
    launch("column_tops_f32", x.device, down, x, tops, *laid)
    launch("column_sums_f32", x.device, down, x, tops, sums, *laid)
    launch("gap_tops", x.device, down, x, tops, sums, *sizes)
    launch("gap_sums", x.device, down, x, tops, sums, *sizes)
    given = (tops, sums, *running, mean, scale, *sizes, *moves)
    launch("settle_channels", x.device, map_work(channels), *given)
    given = (x, weight, bias, mean, scale, y, *sizes)
    launch("apply_channels", x.device, row_work(size, channels), *given)
    return y, mean, scale


def batch_norm_backward(
    grad: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor, scale: Tensor
) -> Three | None:
    """Return the gradients of x, weight and bias of a training batch."""
    if not is_ready(x, grad, weight, mean, scale) or not _is_fit(x) or grad.shape != x.shape:
        return None
    if any(v is not None and v.numel() != x.shape[1] for v in (weight, mean, scale)):
        return None
    apart = not _lies_side_by_side(x)
    x = x.contiguous() if apart else x
    if grad.stride() != x.stride():
        grad = torch.empty_like(x).copy_(grad)
    kept = [None if v is None else v.contiguous() for v in (weight, mean, scale)]
    channels, size = x.shape[1], x.numel() // x.shape[1]
    out = torch.empty_like(x)
    given: tuple[Any, ...]
    sizes: tuple[int, ...]
    if apart:
        of_weight, of_bias = torch.empty_like(mean), torch.empty_like(mean)
        sizes = (x.shape[0], channels, size // x.shape[0])
        given = (grad, x, *kept, out, of_weight, of_bias, *sizes)
        launch("batch_norm_backward", x.device, row_work(channels, size), *given)
        return out, of_weight, of_bias
    tops = torch.zeros(4 * channels, dtype=torch.int64, device=x.device)
    sums = torch.zeros(4 * channels, dtype=torch.float64, device=x.device)
    down, sizes = column_work(channels, size), (size, channels)
    launch("channel_tops", x.device, down, grad, x, *kept, tops, *sizes)
    launch("channel_sums", x.device, down, grad, x, *kept, tops, sums, *sizes)
    launch("finish_f64", x.device, map_work(4 * channels), sums, tops, 4 * channels)
    given = (grad, x, *kept, sums, out, *sizes)
    launch("apply_channel_grads", x.device, row_work(size, channels), *given)
    of_bias, of_weight = (sums[at : at + channels].to(torch.float32) for at in (0, channels))
    return out, of_weight, of_bias


def _is_fit(x: Tensor) -> bool:
    """Return whether a channel's values are enough for a sum, and few enough for one."""
    return x.ndim > 1 and 1 < x.numel() // x.shape[1] <= MOST


def _lies_side_by_side(x: Tensor) -> bool:
    """Return whether x is (all the rest, channels) in memory."""
    return x.shape[1] > 1 and x.movedim(1, -1).is_contiguous()
