"""Resizing by nearest neighbour, linear and cubic interpolation (nn.Upsample), and the gradients.

Law: along one axis each result is the sum, tap after tap, of one, two or four values times their
weights, or with antialiasing of all values under a filter as wide as the step between results.
Indices and weights are computed in Python's float64 and not by a device. Axes are resized one after
another, first to last, and the result is rounded once. The gradient of a value is the sum of weight
times gradient over the results that read it, on the grid of the axis, last axis first. Coordinates
are torch's: (i + 0.5) scale - 0.5, or i (length - 1) / (size - 1) with aligned corners. The cubic
weights are those of Keys, "Cubic convolution interpolation" (1981), with a = -0.75, and a = -0.5
with antialiasing.
"""

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from seedless.portable.ops.elementwise import Implementation, make_constant, shape_along
from seedless.portable.ops.padding import sum_at

Taps = tuple[tuple[tuple[int, ...], ...], tuple[tuple[float, ...], ...]]  # indices, weights
Tap = tuple[int, float]  # index, weight
CUBIC_A = -0.75  # Keys' parameter a
ANTIALIASED_A = -0.5


@lru_cache(maxsize=512)
def find_taps(kind: str, length: int, size: int, factor: float | None, aligned: bool) -> Taps:
    """Return, tap by tap, the index and the weight for each of ``size`` results of an axis.

    ``kind`` is "nearest", "nearest_exact", "linear" or "cubic", or one of the last two followed by
    "_aa" for antialiasing; ``factor`` the scale factor, where torch passes one; ``aligned`` whether
    corners are aligned. A result with fewer taps than others has more of weight zero.
    """
    find = _find_taps_under_filter if kind.endswith("_aa") else _find_taps_of_one
    rows = [find(kind, i, length, size, factor, aligned) for i in range(size)]
    longest = max(map(len, rows))
    rows = [row + [(row[0][0], 0.0)] * (longest - len(row)) for row in rows]
    last = length - 1
    indices = zip(*([min(max(index, 0), last) for index, _ in row] for row in rows), strict=True)
    weights = zip(*([weight for _, weight in row] for row in rows), strict=True)
    return tuple(indices), tuple(weights)


def _find_taps_of_one(
    kind: str, i: int, length: int, size: int, factor: float | None, aligned: bool
) -> list[Tap]:
    """Return (index, weight) for each tap of result i; an index may be outside the axis."""
    # [Step 1] The nearest value has one tap.
    scale = 1.0 / factor if factor else length / size
    if kind == "nearest":
        return [(math.floor(i / factor) if factor else i * length // size, 1.0)]
    if kind == "nearest_exact":
        return [(math.floor((i + 0.5) * scale), 1.0)]
    # [Step 2] Compute the result's coordinate on the input: whole part and fraction t.
    if aligned:
        coordinate = i * (length - 1) / (size - 1) if size > 1 else 0.0
    else:
        coordinate = (i + 0.5) * scale - 0.5
        coordinate = max(coordinate, 0.0) if kind == "linear" else coordinate
    first = math.floor(coordinate)
    t = coordinate - first
    # [Step 3] Weigh two values on a line, or four by their distances from the coordinate.
    if kind == "linear":
        return [(first, 1.0 - t), (first + 1, t)]
    return [
        (first - 1, _weigh_far(t + 1.0, CUBIC_A)),
        (first, _weigh_near(t, CUBIC_A)),
        (first + 1, _weigh_near(1.0 - t, CUBIC_A)),
        (first + 2, _weigh_far(2.0 - t, CUBIC_A)),
    ]


def _find_taps_under_filter(
    kind: str, i: int, length: int, size: int, factor: float | None, aligned: bool
) -> list[Tap]:
    """Return (index, weight) of every value under the filter of result i; the weights sum to 1."""
    # [Step 1] Place the filter: it is stretched where the result is smaller than the input.
    if aligned:
        scale = (length - 1) / (size - 1) if size > 1 else 0.0
    else:
        scale = 1.0 / factor if factor else length / size
    stretch = max(scale, 1.0)
    half = (1.0 if kind == "linear_aa" else 2.0) * stretch
    centre = scale * (i + 0.5)
    first = max(int(centre - half + 0.5), 0)
    last = min(int(centre + half + 0.5), length)
    # [Step 2] Weigh each value by its distance, and divide by the sum of the weights.
    weigh = _weigh_on_a_line if kind == "linear_aa" else _weigh_by_cube
    weights = [weigh(abs(j - centre + 0.5) / stretch) for j in range(first, last)]
    whole = 0.0
    for weight in weights:  # not sum(), which newer versions of Python compute otherwise
        whole += weight
    return [(first + j, weight / whole) for j, weight in enumerate(weights)]


def _weigh_on_a_line(t: float) -> float:
    """Return the weight at distance t, which falls from 1 to 0."""
    return max(1.0 - t, 0.0)


def _weigh_by_cube(t: float) -> float:
    """Return Keys' weight at distance t with the parameter of antialiasing."""
    if t < 1.0:
        return _weigh_near(t, ANTIALIASED_A)
    return _weigh_far(t, ANTIALIASED_A) if t < 2.0 else 0.0


def _weigh_near(t: float, a: float) -> float:
    """Return Keys' weight at a distance up to 1: (a + 2) t^3 - (a + 3) t^2 + 1."""
    return ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0


def _weigh_far(t: float, a: float) -> float:
    """Return Keys' weight at a distance from 1 to 2: a t^3 - 5a t^2 + 8a t - 4a."""
    return ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a


def _make_tensors(taps: Taps, axis: int, like: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return for each tap indices (size,), and float64 weights along ``axis`` of a tensor."""
    shape = shape_along(axis, like.ndim)
    return [
        (
            make_constant(indices, like.device),
            make_constant(weights, like.device, torch.float64).view(shape),
        )
        for indices, weights in zip(*taps, strict=True)
    ]


def resize(x: Tensor, size: Sequence[int], *options: Any, kind: str) -> Tensor:
    """Return aten.upsample_* of (batch, channel, ...): (batch, channel, *size)."""
    aligned, factors = _read_options(kind, x.ndim - 2, options)
    out = x.to(torch.float64)
    for axis, (target, factor) in enumerate(zip(size, factors, strict=True), 2):
        total = None
        taps = find_taps(kind, x.shape[axis], target, factor, aligned)
        for indices, weights in _make_tensors(taps, axis, x):
            part = out.index_select(axis, indices) * weights
            total = part if total is None else total + part
        assert total is not None
        out = total
    return out.to(x.dtype)


def resize_backward(
    grad: Tensor, size: Sequence[int], shape: Sequence[int], *options: Any, kind: str
) -> Tensor:
    """Return the gradient of the input, of ``shape``."""
    aligned, factors = _read_options(kind, len(shape) - 2, options)
    out = grad.to(torch.float64)
    for axis in range(len(shape) - 1, 1, -1):
        taps = find_taps(kind, shape[axis], size[axis - 2], factors[axis - 2], aligned)
        pairs = _make_tensors(taps, axis, grad)
        # All taps in one sum, so that they share a grid.
        parts = torch.cat([out * weights for _, weights in pairs], axis)
        indices = torch.cat([indices for indices, _ in pairs])
        out = sum_at(parts, axis, indices, shape[axis])
    return out.to(grad.dtype)


def _read_options(
    kind: str, dimensions: int, options: Sequence[Any]
) -> tuple[bool, list[float | None]]:
    """Return align_corners, which only some kinds have, and one factor or None for each axis."""
    aligned, factors = False, list(options)
    if not kind.startswith("nearest"):
        aligned = bool(factors.pop(0))
    return aligned, [*factors, *[None] * dimensions][:dimensions]


IMPLEMENTATIONS: dict[str, Implementation] = {}
for _op, _kind in {
    "upsample_nearest1d": "nearest",
    "upsample_nearest2d": "nearest",
    "upsample_nearest3d": "nearest",
    "_upsample_nearest_exact1d": "nearest_exact",
    "_upsample_nearest_exact2d": "nearest_exact",
    "_upsample_nearest_exact3d": "nearest_exact",
    "upsample_linear1d": "linear",
    "upsample_bilinear2d": "linear",
    "upsample_trilinear3d": "linear",
    "upsample_bicubic2d": "cubic",
    "_upsample_bilinear2d_aa": "linear_aa",
    "_upsample_bicubic2d_aa": "cubic_aa",
}.items():
    IMPLEMENTATIONS[f"aten::{_op}"] = partial(resize, kind=_kind)
    IMPLEMENTATIONS[f"aten::{_op}_backward"] = partial(resize_backward, kind=_kind)
