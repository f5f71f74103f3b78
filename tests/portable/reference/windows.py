"""References of pools, folds and padding: window by window, place by place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.portable.reference.arrays import Array, Reference, add_back, narrow, widen
from tests.portable.reference.window_positions import Frame, Sizes, at


def _frame(
    x: Array, kernel: Sizes, stride: Sizes, padding: Any, ceil: bool, gaps: Any = 1
) -> Frame:
    n = len(kernel)
    pads = [padding] * n if isinstance(padding, int) else padding
    steps = [gaps] * n if isinstance(gaps, int) else gaps
    return Frame(x.shape[-n:], kernel, stride or kernel, pads, steps, ceil)


def _divisor(frame: Frame, window: Sizes, counted: bool, given: int | None) -> float:
    if given:
        return float(given)
    hits = [
        frame.counted(window, t) if counted else bool(frame.place(window, t)) for t in frame.taps()
    ]
    return float(sum(hits))


def avg_pool(
    x: Any,
    kernel: Sizes,
    stride: Sizes = (),
    padding: Any = 0,
    ceil: bool = False,
    counted: bool = True,
    given: int | None = None,
) -> Array:
    """The mean of each window, its taps added in order."""
    x = widen(x)
    frame = _frame(x, kernel, stride, padding, ceil)
    out = np.zeros([*x.shape[: -len(kernel)], *frame.counts])
    for window in frame.windows():
        value = np.zeros(x.shape[: -len(kernel)])
        for tap in frame.taps():
            place = frame.place(window, tap)
            value = value + (x[at(place)] if place else 0.0)
        out[at(window)] = value / _divisor(frame, window, counted, given)
    return narrow(out)


def avg_pool_backward(
    grad: Any, x: Any, kernel: Sizes, stride: Sizes, padding: Any, ceil: bool, *rest: Any
) -> Array:
    """Each value's share of its windows' gradients, in order of the taps."""
    grad, x = widen(grad), widen(x)
    frame = _frame(x, kernel, stride, padding, ceil)
    out = np.zeros(x.shape)
    for tap in frame.taps():
        for window in frame.windows():
            place = frame.place(window, tap)
            if place:
                out[at(place)] += grad[at(window)] / _divisor(frame, window, *rest)
    return narrow(out)


def max_pool(
    x: Any, kernel: Sizes, stride: Sizes = (), padding: Any = 0, gaps: Any = 1, ceil: bool = False
) -> tuple[Array, Array]:
    """The first maximum of each window, and its place."""
    x = widen(x)
    frame = _frame(x, kernel, stride, padding, ceil, gaps)
    shape = [*x.shape[: -len(kernel)], *frame.counts]
    out, where = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    for lead in np.ndindex(*x.shape[: -len(kernel)]):
        for window in frame.windows():
            places = [p for tap in frame.taps() if (p := frame.place(window, tap))]
            best = max(places, key=lambda p: x[(*lead, *p)])
            out[(*lead, *window)] = x[(*lead, *best)]
            where[(*lead, *window)] = np.ravel_multi_index(best, frame.sizes)
    return narrow(out), where


def max_pool_backward(
    grad: Any, x: Any, kernel: Sizes, stride: Sizes, padding: Any, gaps: Any, ceil: bool, where: Any
) -> Array:
    """Each maximum's gradient, added in order of the taps."""
    grad, x = widen(grad), widen(x)
    frame = _frame(x, kernel, stride, padding, ceil, gaps)
    out = np.zeros(x.shape)
    for tap in frame.taps():
        for window in frame.windows():
            place = frame.place(window, tap)
            if place:
                hit = where[at(window)] == np.ravel_multi_index(place, frame.sizes)
                out[at(place)] += np.where(hit, grad[at(window)], 0.0)
    return narrow(out)


def unfold(x: Any, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Array:
    """aten.im2col."""
    x = widen(x)
    frame = Frame(x.shape[-2:], kernel, stride, padding, dilation, False)
    out = np.zeros([*x.shape[:2], math.prod(kernel), math.prod(frame.counts)])
    for t, tap in enumerate(frame.taps()):
        for w, window in enumerate(frame.windows()):
            place = frame.place(window, tap)
            out[:, :, t, w] = x[at(place)] if place else 0.0
    return narrow(out.reshape(x.shape[0], -1, out.shape[-1]))


def fold(
    columns: Any, size: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Array:
    """aten.col2im."""
    frame = Frame(size, kernel, stride, padding, dilation, False)
    parts = widen(columns).reshape(len(columns), -1, math.prod(kernel), math.prod(frame.counts))
    out = np.zeros([*parts.shape[:2], *size])
    for t, tap in enumerate(frame.taps()):
        for w, window in enumerate(frame.windows()):
            place = frame.place(window, tap)
            if place:
                out[at(place)] += parts[:, :, t, w]
    return narrow(out)


def _pad(mirror: bool, backward: bool) -> Reference:
    def source(i: int, n: int) -> int:
        if mirror:
            return -i if i < 0 else 2 * (n - 1) - i if i >= n else i
        return min(max(i, 0), n - 1)

    def forward(x: Any, widths: Sizes) -> Array:
        for k in range(len(widths) // 2):
            axis = x.ndim - 1 - k
            n = x.shape[axis]
            places = [source(i, n) for i in range(-widths[2 * k], n + widths[2 * k + 1])]
            x = np.take(x, places, axis)
        return narrow(x)

    def back(grad: Any, x: Any, widths: Sizes) -> Array:
        for k in range(len(widths) // 2):
            axis = x.ndim - 1 - k
            n = x.shape[axis]
            places = [source(i, n) for i in range(-widths[2 * k], n + widths[2 * k + 1])]
            grad = add_back(grad, axis, places, n)
        return narrow(grad)

    return back if backward else forward


_POOLS: dict[str, Any] = {
    **{f"avg_pool{n}d": avg_pool for n in (1, 2, 3)},
    **{f"avg_pool{n}d_backward": avg_pool_backward for n in (2, 3)},
    "max_pool1d": lambda *given: max_pool(*given)[0],
    **{f"max_pool{n}d_with_indices": max_pool for n in (2, 3)},
    **{f"max_pool{n}d_with_indices_backward": max_pool_backward for n in (2, 3)},
}
_PADS = {
    f"{name}_pad{n}d{'_backward' * back}": _pad(mirror, back)
    for n in (1, 2, 3)
    for name, mirror in (("reflection", True), ("replication", False))
    for back in (False, True)
}
REFERENCES: dict[str, Reference] = {**_POOLS, **_PADS, "im2col": unfold, "col2im": fold}
