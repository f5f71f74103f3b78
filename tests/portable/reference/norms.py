"""References of norms: means and variances as exact sums, roots by Newton's steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.portable.reference import laws as ref
from tests.portable.reference.arrays import (
    Array,
    Reference,
    axes_of,
    each,
    mean,
    narrow,
    total,
    widen,
)


def _moments(x: Array, dims: Sequence[int]) -> tuple[Array, Array]:
    centre = mean(x, dims, True)
    gap = x - centre
    return centre, mean(gap * gap, dims, True)


def _rsqrt(x: Any) -> Array:
    return each(lambda v: 1.0 / ref.root(v), x)


def _norm(x: Any, dims: Sequence[int], eps: float) -> tuple[Array, Array]:
    """Return mean and reciprocal deviation, rounded to float32, kept as axes."""
    centre, variance = _moments(widen(x), dims)
    return narrow(centre), narrow(_rsqrt(variance + eps))


def _apply(x: Any, centre: Any, scale: Any, weight: Any, bias: Any) -> Array:
    out = (widen(x) - widen(centre)) * widen(scale)
    out = out if weight is None else out * widen(weight)
    return narrow(out if bias is None else out + widen(bias))


def _back(grad: Array, normed: Array, scale: Array, dims: Sequence[int]) -> Array:
    centred = grad - mean(grad, dims, True)
    out: Array = (centred - normed * mean(grad * normed, dims, True)) * scale
    return out


def layer_norm(
    x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float
) -> tuple[Array, ...]:
    """The result, mean and reciprocal deviation."""
    centre, scale = _norm(x, range(x.ndim - len(shape), x.ndim), eps)
    return _apply(x, centre, scale, weight, bias), centre, scale


def layer_norm_backward(
    grad: Any, x: Any, shape: Sequence[int], centre: Any, scale: Any, weight: Any, bias: Any, _: Any
) -> tuple[Array, ...]:
    """The gradients of x, weight and bias."""
    lead = list(range(x.ndim - len(shape)))
    dims = list(range(len(lead), x.ndim))
    grad, normed = widen(grad), (widen(x) - widen(centre)) * widen(scale)
    of_x = _back(grad * widen(weight), normed, widen(scale), dims)
    return narrow(of_x), narrow(total(grad * normed, lead)), narrow(total(grad, lead))


def _channels(x: Any, vector: Any) -> Any:
    return None if vector is None else vector.reshape(1, -1, *[1] * (x.ndim - 2))


def batch_norm(
    x: Any, weight: Any, bias: Any, running: Any, spread: Any, *options: Any
) -> tuple[Array, ...]:
    """The result, the batch's mean and reciprocal deviation; running statistics are moved."""
    training, rate, eps = options
    dims = [0, *range(2, x.ndim)]
    weight, bias = _channels(x, weight), _channels(x, bias)
    if not training:
        scale = narrow(_rsqrt(widen(spread) + eps))
        return (_apply(x, _channels(x, running), _channels(x, scale), weight, bias),)
    centre, scale = _norm(x, dims, eps)
    exact, variance = _moments(widen(x), dims)
    size = math.prod(x.shape[axis] for axis in dims)
    for old, new in ((running, exact), (spread, variance * float(size) / float(size - 1))):
        kept = narrow(widen(old) * float(np.float32(1 - rate)))
        moved = narrow(widen(narrow(new.ravel())) * float(np.float32(rate)))
        old[:] = narrow(widen(kept) + widen(moved))
    return _apply(x, centre, scale, weight, bias), centre.ravel(), scale.ravel()


def batch_norm_backward(
    grad: Any, x: Any, weight: Any, running: Any, spread: Any, centre: Any, scale: Any, *rest: Any
) -> tuple[Array, ...]:
    """The gradients of x, weight and bias."""
    training, eps, _ = rest
    dims = [0, *range(2, x.ndim)]
    if not training:
        centre, scale = running, narrow(_rsqrt(widen(spread) + eps))
    scale = widen(_channels(x, scale))
    grad, normed = widen(grad), (widen(x) - widen(_channels(x, centre))) * scale
    inner = grad * widen(_channels(x, weight))
    of_x = _back(inner, normed, scale, dims) if training else inner * scale
    return narrow(of_x), narrow(total(grad * normed, dims)), narrow(total(grad, dims))


def group_norm(
    x: Any, weight: Any, bias: Any, batch: int, channels: int, size: int, groups: int, eps: float
) -> tuple[Array, ...]:
    """The result, mean and reciprocal deviation of each group."""
    rows = x.reshape(batch, groups, -1)
    centre, scale = _norm(rows, [2], eps)
    normed = ((widen(rows) - widen(centre)) * widen(scale)).reshape(x.shape)
    out = normed * widen(_channels(x, weight)) + widen(_channels(x, bias))
    return narrow(out), centre[..., 0], scale[..., 0]


def group_norm_backward(
    grad: Any, x: Any, centre: Any, scale: Any, weight: Any, batch: int, *sizes: Any
) -> tuple[Array, ...]:
    """The gradients of x, weight and bias."""
    groups = sizes[2]
    dims = [0, *range(2, x.ndim)]
    scale = widen(scale).reshape(batch, groups, 1)
    rows = widen(x).reshape(batch, groups, -1)
    normed = (rows - widen(centre).reshape(batch, groups, 1)) * scale
    grad = widen(grad)
    inner = (grad * widen(_channels(x, weight))).reshape(batch, groups, -1)
    of_x = _back(inner, normed, scale, [2]).reshape(x.shape)
    of_weight = total(grad * normed.reshape(x.shape), dims)
    return narrow(of_x), narrow(of_weight), narrow(total(grad, dims))


def vector_norm(x: Any, order: float = 2, dim: Any = None, keepdim: bool = False) -> Array:
    """The 2-norm, 1-norm or largest magnitude."""
    size = np.abs(widen(x))
    if order == 2:
        return narrow(each(ref.root, total(size * size, dim, keepdim)))
    if order == 1:
        return narrow(total(size, dim, keepdim))
    return narrow(size.max(axis=tuple(axes_of(size, dim)), keepdims=keepdim))


def var_mean(
    x: Any, dim: Any = None, correction: float = 1, keepdim: bool = False
) -> tuple[Array, Array]:
    """Variance and mean."""
    dims = axes_of(x, dim)
    centre, variance = _moments(widen(x), dims)
    size = float(math.prod(x.shape[axis] for axis in dims))
    pair = variance * size / (size - correction), centre
    one, two = (narrow(a if keepdim else a.squeeze(tuple(dims))) for a in pair)
    return one, two


def weight_norm(v: Any, g: Any, dim: int = 0) -> tuple[Array, Array]:
    """The weight, and the lengths of v."""
    others = [axis for axis in range(v.ndim) if axis != dim]
    length = each(ref.root, total(widen(v) * widen(v), others, True))
    return narrow(widen(v) * (widen(g) / length)), narrow(length)


def weight_norm_backward(grad: Any, v: Any, g: Any, length: Any, dim: int) -> tuple[Array, Array]:
    """The gradients of v and g."""
    others = [axis for axis in range(v.ndim) if axis != dim]
    grad, v, length = widen(grad), widen(v), widen(length)
    s = total(grad * v, others, True)
    of_v = (grad - v * (s / (length * length))) * (widen(g) / length)
    return narrow(of_v), narrow(s / length)


REFERENCES: dict[str, Reference] = {
    "native_layer_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
    "native_batch_norm": batch_norm,
    "native_batch_norm_backward": batch_norm_backward,
    "native_group_norm": group_norm,
    "native_group_norm_backward": group_norm_backward,
    "linalg_vector_norm": vector_norm,
    "norm": vector_norm,
    "var_mean": var_mean,
    "var": lambda *given: var_mean(*given)[0],
    "std": lambda *given: narrow(each(ref.root, var_mean(*given)[0])),
    "_weight_norm_interface": weight_norm,
    "_weight_norm_interface_backward": weight_norm_backward,
}
