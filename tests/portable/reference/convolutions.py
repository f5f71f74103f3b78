"""References of convolutions: each value a `reference.dot` of a filter and a window."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tests.portable.reference import laws as ref
from tests.portable.reference.arrays import Array, Reference, narrow, total, widen
from tests.portable.reference.window_positions import Frame, Sizes


def conv(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    *_: Any,
) -> Array:
    """aten.convolution: products as `reference.dot`, the bias added in float32."""
    x, weight = widen(x), widen(weight)
    if transposed:
        each = zip(
            *(x.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding), strict=True
        )
        sizes = [(n - 1) * s - 2 * p + g * (k - 1) + m + 1 for n, k, s, p, g, m in each]
        out = narrow(_spread_out(x, weight, sizes, stride, padding, dilation, groups))
    else:
        out = narrow(_collect(x, weight, stride, padding, dilation, groups))
    if bias is None:
        return out
    return narrow(widen(out) + widen(bias).reshape(1, -1, *[1] * (x.ndim - 2)))


def _patch(x: Array, frame: Frame, sample: int, channels: range, window: Sizes) -> list[float]:
    places = [frame.place(window, tap) for tap in frame.taps()]
    return [
        float(x[(sample, channel, *place)]) if place else 0.0
        for channel in channels
        for place in places
    ]


def _collect(
    x: Array, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Array:
    frame = Frame(x.shape[2:], weight.shape[2:], stride, padding, dilation, False)
    out = np.zeros([x.shape[0], weight.shape[0], *frame.counts])
    inner, outer = weight.shape[1], weight.shape[0] // groups
    for sample, o in itertools.product(range(x.shape[0]), range(weight.shape[0])):
        channels = range(o // outer * inner, (o // outer + 1) * inner)
        for window in frame.windows():
            values = _patch(x, frame, sample, channels, window)
            out[(sample, o, *window)] = ref.dot(weight[o].ravel().tolist(), values)
    return out


def _spread_out(
    x: Array,
    weight: Array,
    sizes: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Array:
    frame = Frame(sizes, weight.shape[2:], stride, padding, dilation, False)
    inner, outer = weight.shape[0] // groups, weight.shape[1]
    out = np.zeros([x.shape[0], outer * groups, *sizes])
    for tap in frame.taps():
        for sample, o in itertools.product(range(x.shape[0]), range(outer * groups)):
            rows = range(o // outer * inner, (o // outer + 1) * inner)
            filters = [float(weight[(i, o % outer, *tap)]) for i in rows]
            for window in np.ndindex(*x.shape[2:]):
                place = frame.place(window, tap)
                if place:
                    values = [float(x[(sample, i, *window)]) for i in rows]
                    out[(sample, o, *place)] += ref.dot(filters, values)
    return out


def conv_backward(
    grad: Any, x: Any, weight: Any, bias_sizes: Any, *options: Any
) -> tuple[Array, Array, Array]:
    """The gradients of x, weight and bias."""
    stride, padding, dilation, transposed, _, groups, _ = options
    grad, x, weight = widen(grad), widen(x), widen(weight)
    given = (stride, padding, dilation, groups)
    of_x = (
        _collect(grad, weight, *given)
        if transposed
        else _spread_out(grad, weight, x.shape[2:], *given)
    )
    outer, inner = (x, grad) if transposed else (grad, x)
    frame = Frame(inner.shape[2:], weight.shape[2:], stride, padding, dilation, False)
    of_weight = np.zeros(weight.shape)
    size = weight.shape[0] // groups
    for o, i in itertools.product(range(weight.shape[0]), range(weight.shape[1])):
        for tap in frame.taps():
            left, right = [], []
            for sample, window in itertools.product(range(x.shape[0]), frame.windows()):
                place = frame.place(window, tap)
                channel = o // size * weight.shape[1] + i
                left.append(float(outer[(sample, o, *window)]))
                right.append(float(inner[(sample, channel, *place)]) if place else 0.0)
            of_weight[(o, i, *tap)] = ref.dot(left, right)
    of_bias = total(grad, [0, *range(2, grad.ndim)])
    return narrow(of_x), narrow(of_weight), narrow(of_bias)


REFERENCES: dict[str, Reference] = {
    "convolution": conv,
    "_convolution": conv,
    "convolution_backward": conv_backward,
}
