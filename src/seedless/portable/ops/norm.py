"""Layer, batch and group norms.

Law: mean and variance are exact sums in float64, the reciprocal root is a sequence of IEEE
operations; both are rounded to float32, as the gradient uses them, and the result is rounded once.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.context import CONTEXT
from seedless.portable.exact import elementary as e
from seedless.portable.exact.sums import count_addends, divide, mean, total
from seedless.portable.kernels import batch_norm as batch_norm_kernels
from seedless.portable.kernels import rows
from seedless.portable.ops.elementwise import Implementation, map_rows

Three = tuple[Tensor | None, Tensor | None, Tensor | None]


def moments(x: Tensor, dims: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the mean and the mean squared deviation over ``dims``, kept as axes, in float64."""
    x = x.to(torch.float64)
    centre = mean(x, dims, True)
    deviation = x - centre
    return centre, mean(deviation.mul_(deviation), dims, True)


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else x * weight.to(torch.float64)
    return x if bias is None else x + bias.to(torch.float64)


def _centred_grad(grad: Tensor, normed: Tensor, scale: Tensor, dims: Sequence[int]) -> Tensor:
    """(g - mean(g) - normed mean(g normed)) scale, in float64."""
    centred = grad - mean(grad, dims, True)
    return (centred - normed * mean(grad * normed, dims, True)) * scale


def layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return y, the mean and the reciprocal deviation."""
    lead = x.shape[: x.ndim - len(shape)]
    dims = list(range(1, len(shape) + 1))
    kept = [*lead, *(1 for _ in shape)]
    if not CONTEXT.redirects_sums:
        found = rows.layer_norm(x, math.prod(shape), weight, bias, eps)
        if found is not None:
            return found[0].view(x.shape), found[1].view(kept), found[2].view(kept)

    def apply(x: Tensor) -> Sequence[Tensor]:
        wide = x.to(torch.float64)
        centre, variance = moments(wide, dims)
        scale = e.rsqrt(variance + eps).to(x.dtype)
        centre = centre.to(x.dtype)
        normed = wide.sub_(centre).mul_(scale)
        return _affine(normed, weight, bias).to(x.dtype), centre, scale

    y, centre, scale = map_rows(apply, x.reshape(math.prod(lead), *shape))
    return y.view(x.shape), centre.view(kept), scale.view(kept)


def layer_norm_backward(
    grad: Tensor,
    x: Tensor,
    shape: Sequence[int],
    centre: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mask: Sequence[bool],
) -> Three:
    """Return the gradients of x, weight and bias that ``mask`` selects."""
    lead = list(range(x.ndim - len(shape)))
    dims = list(range(len(lead), x.ndim))
    if not CONTEXT.redirects_sums:
        found = rows.layer_norm_backward(grad, x, math.prod(shape), centre, scale, weight)
        if found is not None:
            return (
                found[0].view(x.shape) if mask[0] else None,
                found[1].view(weight.shape) if mask[1] and weight is not None else None,
                found[2].view(bias.shape) if mask[2] and bias is not None else None,
            )
    wide, scale = grad.to(torch.float64), scale.to(torch.float64)
    normed = (x.to(torch.float64) - centre) * scale
    of_x = of_weight = of_bias = None
    if mask[0]:
        of_x = _centred_grad(_affine(wide, weight, None), normed, scale, dims).to(x.dtype)
    if mask[1] and weight is not None:
        of_weight = (total(wide * normed, lead) if lead else wide * normed).to(x.dtype)
    if mask[2] and bias is not None:
        of_bias = (total(wide, lead) if lead else wide).to(x.dtype)
    return of_x, of_weight, of_bias


def _channels(x: Tensor) -> tuple[list[int], list[int]]:
    """Return the axes a batch norm reduces, and the shape that spreads a channel vector."""
    return [0, *range(2, x.ndim)], [1, -1] + [1] * (x.ndim - 2)


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
    """Return y, the batch's mean and its reciprocal deviation; update the running statistics."""
    dims, spread = _channels(x)
    if training and not CONTEXT.redirects_sums:
        found = batch_norm_kernels.batch_norm(
            x, weight, bias, (running_mean, running_var), momentum, eps
        )
        if found is not None:
            return found[0].view(x.shape), found[1], found[2]
    if training:
        centre, variance = moments(x, dims)
        size = count_addends(x, dims)
        _update_running(running_mean, centre, momentum)
        _update_running(
            running_var, divide(variance * float(size), float(max(size - 1, 1))), momentum
        )
        scale = e.rsqrt(variance + eps).to(x.dtype)
        centre = centre.to(x.dtype)
    else:
        assert running_mean is not None
        assert running_var is not None
        centre = running_mean.view(spread)
        scale = e.rsqrt(running_var.to(torch.float64) + eps).to(x.dtype).view(spread)
    normed = (x.to(torch.float64) - centre) * scale
    weight = None if weight is None else weight.view(spread)
    bias = None if bias is None else bias.view(spread)
    kept = (centre.flatten(), scale.flatten()) if training else (x.new_empty(0), x.new_empty(0))
    return (_affine(normed, weight, bias).to(x.dtype), *kept)


def _update_running(running: Tensor | None, value: Tensor, momentum: float) -> None:
    """Update a running statistic: (1 - momentum) running + momentum value, in float32."""
    if running is not None:
        now = value.flatten().to(running.dtype)
        running.copy_(running * (1 - momentum) + now * momentum)


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
) -> Three:
    """Return the gradients of x, weight and bias that ``mask`` selects."""
    dims, spread = _channels(x)
    if not training:
        assert running_var is not None
        centre, scale = running_mean, e.rsqrt(running_var.to(torch.float64) + eps).to(x.dtype)
    assert centre is not None
    assert scale is not None
    if training and not CONTEXT.redirects_sums:
        found = batch_norm_kernels.batch_norm_backward(grad, x, weight, centre, scale)
        if found is not None:
            of_x, of_weight, of_bias = (
                one if wanted else None for one, wanted in zip(found, mask, strict=True)
            )
            return of_x, of_weight, of_bias
    wide, scale = grad.to(torch.float64), scale.to(torch.float64).view(spread)
    normed = (x.to(torch.float64) - centre.view(spread)) * scale
    of_x = of_weight = of_bias = None
    if mask[0]:
        inner = wide if weight is None else wide * weight.to(torch.float64).view(spread)
        of_x = _centred_grad(inner, normed, scale, dims) if training else inner * scale
        of_x = of_x.to(x.dtype)
    if mask[1]:
        of_weight = total(wide * normed, dims).to(x.dtype)
    if mask[2]:
        of_bias = total(wide, dims).to(x.dtype)
    return of_x, of_weight, of_bias


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
    """Return y, and mean and reciprocal deviation of each group (batch, groups)."""
    spread = [1, channels] + [1] * (x.ndim - 2)
    rows = x.reshape(batch, groups, -1)
    _, centre, scale = layer_norm(rows, [rows.shape[2]], None, None, eps)
    # From the statistics again, so that y is rounded once.
    wide = ((rows.to(torch.float64) - centre) * scale).view(x.shape)
    weight = None if weight is None else weight.view(spread)
    bias = None if bias is None else bias.view(spread)
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
) -> Three:
    """Return the gradients of x, weight and bias that ``mask`` selects."""
    dims, spread = _channels(x)
    wide, scale = grad.to(torch.float64), scale.to(torch.float64).view(batch, groups, 1)
    rows = x.reshape(batch, groups, -1).to(torch.float64)
    normed = (rows - centre.view(batch, groups, 1)) * scale
    of_x = of_weight = of_bias = None
    if mask[0]:
        inner = wide if weight is None else wide * weight.to(torch.float64).view(spread)
        of_x = _centred_grad(inner.reshape(batch, groups, -1), normed, scale, [2])
        of_x = of_x.view(x.shape).to(x.dtype)
    if mask[1]:
        of_weight = total(wide * normed.view(x.shape), dims).to(x.dtype)
    if mask[2]:
        of_bias = total(wide, dims).to(x.dtype)
    return of_x, of_weight, of_bias


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::native_layer_norm": layer_norm,
    "aten::native_layer_norm_backward": layer_norm_backward,
    "aten::native_batch_norm": batch_norm,
    "aten::native_batch_norm_backward": batch_norm_backward,
    "aten::native_group_norm": group_norm,
    "aten::native_group_norm_backward": group_norm_backward,
}
