"""Layer, batch and group norms, and their gradients.

Law: y = (x - mean) scale weight + bias, scale = 1 / sqrt(variance + eps). Mean and variance (the
mean squared deviation) are exact sums in float64; mean and scale are rounded to float32, as the
gradient uses them; y is computed from them in float64 and rounded once. With n = (x - mean) scale
and g the gradient of y, the gradients are (Ioffe & Szegedy, 2015; Ba et al., 2016)
    of weight: sum(g n),  of bias: sum(g),
    of x: scale (h - mean(h) - n mean(h n)), h = g weight,
each in float64 and rounded once.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.context import CONTEXT
from seedless.portable.exact import elementary as e
from seedless.portable.exact.sums import count_summed, divide, mean, total
from seedless.portable.kernels import batch_norm as batch_norm_kernels
from seedless.portable.kernels import rows
from seedless.portable.ops.elementwise import Implementation, map_rows, shape_along
from seedless.portable.ops.norm_sums import sum_norm_gradients

Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]  # of x, weight and bias


def moments(x: Tensor, dims: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return mean and mean squared deviation over ``dims``, in float64; these axes have size 1."""
    x = x.to(torch.float64)
    centre = mean(x, dims, True)
    deviation = x - centre
    return centre, mean(deviation.mul_(deviation), dims, True)


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Return x weight + bias in float64, each where it is there."""
    x = x if weight is None else x * weight.to(torch.float64)
    return x if bias is None else x + bias.to(torch.float64)


def _find_input_gradient(h: Tensor, normed: Tensor, scale: Tensor, dims: Sequence[int]) -> Tensor:
    """Return scale (h - mean(h) - normed mean(h normed)) over ``dims``, in float64."""
    centred = h - mean(h, dims, True)
    return (centred - normed * mean(h * normed, dims, True)) * scale


def layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return y like x, and mean and scale of each row, with ones for the axes of ``shape``."""
    lead = x.shape[: x.ndim - len(shape)]
    dims = list(range(1, len(shape) + 1))
    reduced = [*lead, *(1 for _ in shape)]
    if not CONTEXT.redirects_sums:
        result = rows.layer_norm(x, math.prod(shape), weight, bias, eps)
        if result is not None:
            return result[0].view(x.shape), result[1].view(reduced), result[2].view(reduced)

    def apply(x: Tensor) -> Sequence[Tensor]:
        wide = x.to(torch.float64)
        centre, variance = moments(wide, dims)
        scale = e.rsqrt(variance + eps).to(x.dtype)
        centre = centre.to(x.dtype)
        normed = wide.sub_(centre).mul_(scale)
        return _affine(normed, weight, bias).to(x.dtype), centre, scale

    y, centre, scale = map_rows(apply, x.reshape(math.prod(lead), *shape))
    return y.view(x.shape), centre.view(reduced), scale.view(reduced)


def layer_norm_backward(
    grad: Tensor,
    x: Tensor,
    shape: Sequence[int],
    centre: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mask: Sequence[bool],
) -> Gradients:
    """Return the gradients of x, weight and bias that ``mask`` selects."""
    lead = list(range(x.ndim - len(shape)))
    dims = list(range(len(lead), x.ndim))
    asked = mask[1] and weight is not None, mask[2] and bias is not None
    # [Step 1] One call computes all three, where the device has the kernel.
    length = math.prod(shape)
    if any(asked) and not CONTEXT.redirects_sums:
        result = rows.layer_norm_backward(grad, x, length, centre, scale, weight)
        if result is not None:
            return (
                result[0].view(x.shape) if mask[0] else None,
                result[1].view(tuple(shape)) if asked[0] else None,
                result[2].view(tuple(shape)) if asked[1] else None,
            )
    # [Step 2] Where sums over samples are evaluated elsewhere, or none is asked for, kernels
    # compute the parts.
    of_x = of_weight = of_bias = None
    if mask[0]:
        of_x = rows.layer_norm_input_gradient(grad, x, length, centre, scale, weight)
        of_x = None if of_x is None else of_x.view(x.shape)
    if of_x is not None and not any(asked):
        return of_x, None, None
    if lead and (of_x is not None or not mask[0]):
        summed = sum_norm_gradients(grad, x, shape, centre, scale, asked)
        if summed is not None:
            return of_x, *summed
    # [Step 3] Else normalize again from the saved statistics, and sum over rows and their values.
    wide, scale = grad.to(torch.float64), scale.to(torch.float64)
    normed = (x.to(torch.float64) - centre) * scale
    if mask[0] and of_x is None:
        with CONTEXT.within_samples():
            h = _affine(wide, weight, None)
            of_x = _find_input_gradient(h, normed, scale, dims).to(x.dtype)
    if asked[0]:
        of_weight = (total(wide * normed, lead) if lead else wide * normed).to(x.dtype)
    if asked[1]:
        of_bias = (total(wide, lead) if lead else wide).to(x.dtype)
    return of_x, of_weight, of_bias


def _find_channel_axes(x: Tensor) -> tuple[list[int], list[int]]:
    """Return every axis but the channels', and the shape of a vector along the channels' axis."""
    return [0, *range(2, x.ndim)], shape_along(1, x.ndim)


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return y like x, and mean and scale (channels,) of a training batch, else empty ones.

    In training the running statistics are updated in place.
    """
    dims, by_channel = _find_channel_axes(x)
    # [Step 1] One call computes all, where the device has the kernel.
    if training and not CONTEXT.redirects_sums:
        result = batch_norm_kernels.batch_norm(
            x, weight, bias, (running_mean, running_var), momentum, eps
        )
        if result is not None:
            return result[0].view(x.shape), result[1], result[2]
    # [Step 2] Find the statistics of the batch, or take the running ones. The running variance is
    # that of a sample, with n - 1 in place of n.
    if training:
        centre, variance = moments(x, dims)
        size = count_summed(x, dims)
        _update_running(running_mean, centre, momentum)
        _update_running(
            running_var, divide(variance * float(size), float(max(size - 1, 1))), momentum
        )
        scale = e.rsqrt(variance + eps).to(x.dtype)
        centre = centre.to(x.dtype)
    else:
        assert running_mean is not None
        assert running_var is not None
        centre = running_mean.view(by_channel)
        scale = e.rsqrt(running_var.to(torch.float64) + eps).to(x.dtype).view(by_channel)
    # [Step 3] Normalize, in float64 and rounded once.
    normed = (x.to(torch.float64) - centre) * scale
    weight, bias = (None if one is None else one.view(by_channel) for one in (weight, bias))
    y = _affine(normed, weight, bias).to(x.dtype)
    if not training:
        return y, x.new_empty(0), x.new_empty(0)
    return y, centre.flatten(), scale.flatten()


def _update_running(running: Tensor | None, value: Tensor, momentum: float) -> None:
    """Update a running statistic to (1 - momentum) running + momentum value, in float32."""
    if running is not None:
        new = value.flatten().to(running.dtype)
        running.copy_(running * (1 - momentum) + new * momentum)


def batch_norm_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    centre: Tensor | None,
    scale: Tensor | None,
    training: bool,
    eps: float,
    mask: Sequence[bool],
) -> Gradients:
    """Return the gradients of x, weight and bias that ``mask`` selects.

    Running statistics do not depend on x: outside training the gradient of x is g weight scale.
    """
    dims, by_channel = _find_channel_axes(x)
    if not training:
        assert running_var is not None
        centre, scale = running_mean, e.rsqrt(running_var.to(torch.float64) + eps).to(x.dtype)
    assert centre is not None
    assert scale is not None
    if training and not CONTEXT.redirects_sums:
        result = batch_norm_kernels.batch_norm_backward(grad, x, weight, centre, scale)
        if result is not None:
            of_x, of_weight, of_bias = (
                one if is_asked else None for one, is_asked in zip(result, mask, strict=True)
            )
            return of_x, of_weight, of_bias
    wide, scale = grad.to(torch.float64), scale.to(torch.float64).view(by_channel)
    normed = (x.to(torch.float64) - centre.view(by_channel)) * scale
    of_x = None
    if mask[0]:
        h = _affine(wide, None if weight is None else weight.view(by_channel), None)
        of_x = _find_input_gradient(h, normed, scale, dims) if training else h * scale
        of_x = of_x.to(x.dtype)
    return of_x, *_sum_channel_gradients(wide, normed, dims, mask, x.dtype)


def _sum_channel_gradients(
    wide: Tensor, normed: Tensor, dims: Sequence[int], mask: Sequence[bool], dtype: torch.dtype
) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients (channels,) of weight and bias that ``mask`` selects."""
    of_weight = total(wide * normed, dims).to(dtype) if mask[1] else None
    of_bias = total(wide, dims).to(dtype) if mask[2] else None
    return of_weight, of_bias


def group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    size: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return y like x, and mean and scale (batch, groups) of each group."""
    _, by_channel = _find_channel_axes(x)
    rows = x.reshape(batch, groups, channels * size // groups)
    _, centre, scale = layer_norm(rows, [rows.shape[2]], None, None, eps)
    # Normalize again from the statistics, so that y is rounded once.
    wide = ((rows.to(torch.float64) - centre) * scale).view(x.shape)
    weight, bias = (None if one is None else one.view(by_channel) for one in (weight, bias))
    return _affine(wide, weight, bias).to(x.dtype), centre.squeeze(2), scale.squeeze(2)


def group_norm_backward(
    grad: Tensor,
    x: Tensor,
    centre: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    batch: int,
    channels: int,
    size: int,
    groups: int,
    mask: Sequence[bool],
) -> Gradients:
    """Return the gradients of x, weight and bias that ``mask`` selects."""
    dims, by_channel = _find_channel_axes(x)
    wide, scale = grad.to(torch.float64), scale.to(torch.float64).view(batch, groups, 1)
    shape = (batch, groups, channels * size // groups)
    rows = x.reshape(shape).to(torch.float64)
    normed = (rows - centre.view(batch, groups, 1)) * scale
    of_x = None
    if mask[0]:
        h = _affine(wide, None if weight is None else weight.view(by_channel), None)
        of_x = _find_input_gradient(h.reshape(shape), normed, scale, [2])
        of_x = of_x.view(x.shape).to(x.dtype)
    return of_x, *_sum_channel_gradients(wide, normed.view(x.shape), dims, mask, x.dtype)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::native_layer_norm": layer_norm,
    "aten::native_layer_norm_backward": layer_norm_backward,
    "aten::native_batch_norm": batch_norm,
    "aten::native_batch_norm_backward": batch_norm_backward,
    "aten::native_group_norm": group_norm,
    "aten::native_group_norm_backward": group_norm_backward,
}
