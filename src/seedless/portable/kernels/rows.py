"""Elementwise functions, layer norm, softmax and optimizer steps as kernels."""

from collections.abc import Sequence

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


def apply_map(name: str, *inputs: Tensor) -> Tensor | None:
    """Return an elementwise function of float32 tensors of one shape."""
    first = inputs[0]
    if not is_ready(*inputs) or any(x.shape != first.shape for x in inputs):
        return None
    out = torch.empty_like(first)
    if any(x.stride() != out.stride() for x in inputs):
        inputs = tuple(x.contiguous() for x in inputs)
        out = torch.empty_like(inputs[0])
    size = out.numel()
    launch(name, out.device, shape_map(size), *inputs, out, size)
    return out


def layer_norm(
    x: Tensor, length: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return y like x, and for each row of ``length`` the mean and the reciprocal deviation."""
    if not is_ready(x, weight, bias) or not 1 < length <= MAX_EXACT_ADDENDS:
        return None
    if any(v is not None and v.numel() != length for v in (weight, bias)):
        return None
    x, rows = x.contiguous(), x.numel() // length
    y, mean, scale = torch.empty_like(x), x.new_empty(rows), x.new_empty(rows)
    weight, bias = (None if v is None else v.contiguous() for v in (weight, bias))
    work = shape_rows(rows, length)
    launch("layer_norm", x.device, work, x, weight, bias, y, mean, scale, rows, length, float(eps))
    return y, mean, scale


def layer_norm_backward(
    grad: Tensor, x: Tensor, length: int, mean: Tensor, scale: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return the gradients of x, weight and bias."""
    of_x = layer_norm_input_gradient(grad, x, length, mean, scale, weight)
    tensors = align_norm_tensors(grad, x, length, mean, scale)
    if of_x is None or tensors is None:
        return None
    maxima, sums = make_column_zeros(2 * length, x.device)
    find_norm_maxima(tensors, length, maxima)
    add_norm_columns(tensors, length, maxima, sums)
    out = torch.empty(2 * length, dtype=torch.float32, device=x.device)
    launch("scale_sums_f64", x.device, shape_map(2 * length), sums, maxima, out, 2 * length)
    return of_x, out[:length], out[length:]


def layer_norm_input_gradient(
    grad: Tensor, x: Tensor, length: int, mean: Tensor, scale: Tensor, weight: Tensor | None
) -> Tensor | None:
    """Return the gradient of x."""
    tensors = align_norm_tensors(grad, x, length, mean, scale)
    if tensors is None or not is_ready(x, weight):
        return None
    if weight is not None and weight.numel() != length:
        return None
    weight = None if weight is None else weight.contiguous()
    out, rows = torch.empty_like(tensors[1]), x.numel() // length
    work = shape_rows(rows, length)
    launch("layer_norm_backward", x.device, work, *tensors, weight, out, rows, length)
    return out


def align_norm_tensors(
    grad: Tensor, x: Tensor, length: int, mean: Tensor, scale: Tensor
) -> list[Tensor] | None:
    """Return the tensors of a layer norm's gradient as the kernels read them; None: no kernel."""
    rows = x.numel() // max(length, 1)
    if not is_ready(x, grad, mean, scale) or not (
        1 < length <= MAX_EXACT_ADDENDS and 1 < rows <= MAX_EXACT_ADDENDS
    ):
        return None
    if grad.shape != x.shape or not mean.numel() == scale.numel() == rows:
        return None
    return [tensor.contiguous() for tensor in (grad, x, mean, scale)]


def find_norm_maxima(tensors: Sequence[Tensor], length: int, maxima: Tensor) -> None:
    """Find the bits of the largest addends (2 length,) for the gradients of weight and bias."""
    x, rows = tensors[1], tensors[1].numel() // length
    work = shape_columns(length, rows)
    launch("norm_maxima", x.device, work, *tensors, maxima, rows, length)


def add_norm_columns(tensors: Sequence[Tensor], length: int, maxima: Tensor, sums: Tensor) -> None:
    """Add to ``sums`` (2 length,) the integers on the grids of these maxima."""
    x, rows = tensors[1], tensors[1].numel() // length
    work = shape_columns(length, rows)
    launch("norm_sums", x.device, work, *tensors, maxima, sums, rows, length)


def softmax(x: Tensor) -> Tensor | None:
    """Return the softmax along the last axis."""
    if not is_ready(x) or x.ndim == 0 or not 1 < x.shape[-1] <= MAX_EXACT_ADDENDS:
        return None
    x, length = x.contiguous(), x.shape[-1]
    rows, out = x.numel() // length, torch.empty_like(x)
    memory = torch.empty(x.shape, dtype=torch.float64, device=x.device)
    launch("softmax", x.device, shape_rows(rows, length), x, memory, out, rows, length)
    return out


def softmax_backward(grad: Tensor, y: Tensor) -> Tensor | None:
    """Return the gradient of `softmax` from its result."""
    if not is_ready(y, grad) or y.ndim == 0 or not 1 < y.shape[-1] <= MAX_EXACT_ADDENDS:
        return None
    if grad.shape != y.shape:
        return None
    grad, y, length = grad.contiguous(), y.contiguous(), y.shape[-1]
    rows, out = y.numel() // length, torch.empty_like(y)
    launch("softmax_backward", y.device, shape_rows(rows, length), grad, y, out, rows, length)
    return out


def sgd(
    parameter: Tensor,
    grad: Tensor,
    buffer: Tensor | None,
    rate: Tensor,
    settings: tuple[float, float, float],
    choices: tuple[bool, bool, bool],
) -> bool:
    """Take SGD's step for one parameter; return whether that was done.

    ``buffer`` is None without momentum. ``settings``: weight decay, momentum, dampening.
    ``choices``: nesterov, maximize, first step.
    """
    aligned = align_gradient(parameter, grad, [] if buffer is None else [buffer])
    if aligned is None:
        return False
    size = parameter.numel()
    arguments = (rate, size, *map(float, settings), *map(int, choices))
    launch("sgd", parameter.device, shape_map(size), parameter, aligned, buffer, *arguments)
    return True


def align_gradient(parameter: Tensor, grad: Tensor, states: Sequence[Tensor]) -> Tensor | None:
    """Return the gradient in the parameter's layout; None where the layouts fit no kernel."""
    if not is_ready(parameter, grad, *states):
        return None
    like = torch.empty_like(parameter).stride()
    if any(x.stride() != like for x in (parameter, *states)):
        return None
    if any(x.shape != parameter.shape for x in (grad, *states)):
        return None
    return grad if grad.stride() == like else torch.empty_like(parameter).copy_(grad)
