"""References of grid sampling, affine grids and max_unpool: one point and one value at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tests.portable.reference.arrays import Array, Reference, narrow, total, widen
from tests.portable.reference.laws import to_grid

Tap = tuple[int | None, float, float]  # index or None outside, weight, slope
A = -0.75


def _reflect(at: float, low: float, span: float) -> tuple[float, float]:
    """The position mirrored into [low, low + span], and its derivative."""
    distance = abs(at - low)
    flips = math.floor(distance / span)
    rest = distance - flips * span
    sign = -1.0 if at < low else 1.0
    return (rest + low, sign) if flips % 2 == 0 else ((span - rest) + low, -sign)


def _move(at: float, n: int, padding: int, aligned: bool) -> tuple[float, float]:
    rate = 1.0
    if padding == 2:
        if aligned and n == 1:
            return 0.0, 0.0
        at, rate = _reflect(at, 0.0, n - 1.0) if aligned else _reflect(at, -0.5, float(n))
    if padding:
        rate = rate if 0.0 < at < n - 1 else 0.0
        at = min(max(at, 0.0), n - 1.0)
    return at, rate


def _near(t: float) -> tuple[float, float]:
    a2, a3 = A + 2.0, A + 3.0
    return (t * a2 - a3) * t * t + 1.0, (t * (3.0 * a2) - 2.0 * a3) * t


def _far(t: float) -> tuple[float, float]:
    weight = ((t * A - 5.0 * A) * t + 8.0 * A) * t - 4.0 * A
    return weight, (t * (3.0 * A) - 10.0 * A) * t + 8.0 * A


def _inside(at: float, n: int, weight: float, slope: float) -> Tap:
    return (int(at), weight, slope) if 0 <= at <= n - 1 else (None, 0.0, 0.0)


def _taps(g: float, n: int, interpolation: int, padding: int, aligned: bool) -> list[Tap]:
    at = (g + 1.0) * 0.5 * (n - 1) if aligned else ((g + 1.0) * n - 1.0) * 0.5
    rate = (n - 1 if aligned else n) * 0.5
    if interpolation == 2:
        first = math.floor(at)
        t = at - first
        taps = []
        for k, (weight, slope) in enumerate(
            (_far(t + 1.0), _near(t), _near(1.0 - t), _far(2.0 - t))
        ):
            moved, _ = _move(first + k - 1.0, n, padding, aligned)
            taps.append(_inside(moved, n, weight, (slope if k < 2 else -slope) * rate))
        return taps
    at, factor = _move(at, n, padding, aligned)
    if interpolation == 1:
        return [_inside(round(at), n, 1.0, 0.0)]  # round() takes ties to even
    first = math.floor(at)
    t = at - first
    slope = rate * factor
    return [_inside(first, n, 1.0 - t, -slope), _inside(first + 1, n, t, slope)]


def _reads(point: Sequence[float], sizes: Sequence[int], *options: Any) -> list[tuple[Tap, ...]]:
    """Every combination of the taps of the axes; a point names the last axis first."""
    axes = [_taps(g, n, *options) for g, n in zip(reversed(point), sizes, strict=True)]
    return list(itertools.product(*axes))


def _product(values: Sequence[float]) -> float:
    out = values[-1]
    for value in reversed(values[:-1]):
        out = out * value
    return out


def _value(plane: Array, read: Sequence[Tap]) -> float:
    places = [tap[0] for tap in read]
    return 0.0 if None in places else float(plane[tuple(places)])


def _blend(plane: Array, reads: Sequence[Sequence[Tap]], slope_of: int | None) -> float:
    out = None
    for read in reads:
        weight = _product([tap[2] if k == slope_of else tap[1] for k, tap in enumerate(read)])
        part = _value(plane, read) * weight
        out = part if out is None else out + part
    assert out is not None
    return out


def sample(x: Any, grid: Any, *options: Any) -> Array:
    """Each point of each channel."""
    x, grid = widen(x), widen(grid)
    out = np.zeros([*x.shape[:2], *grid.shape[1:-1]])
    for index in np.ndindex(*out.shape):
        reads = _reads(grid[(index[0], *index[2:])].tolist(), x.shape[2:], *options)
        out[index] = _blend(x[index[:2]], reads, None)
    return narrow(out)


def sample_backward(grad: Any, x: Any, grid: Any, *options: Any) -> tuple[Array, Array]:
    """The gradient of the input, on one grid for each plane, and that of the points."""
    grad, x, grid = widen(grad), widen(x), widen(grid)
    options = options[:3]
    sizes = x.shape[2:]
    points = list(np.ndindex(*grid.shape[1:-1]))
    for_x, for_grid = np.zeros(x.shape), np.zeros(grid.shape)
    for n, c in np.ndindex(*x.shape[:2]):
        reads = {p: _reads(grid[(n, *p)].tolist(), sizes, *options) for p in points}
        parts = [
            (
                tuple(tap[0] for tap in read),
                float(grad[(n, c, *p)]) * _product([t[1] for t in read]),
            )
            for p in points
            for read in reads[p]
        ]
        integers, step = to_grid([part for _, part in parts], 36)
        sums: dict[Any, int] = {}
        for (place, _), integer in zip(parts, integers, strict=True):
            sums[place] = sums.get(place, 0) + integer
        for place, integer in sums.items():
            if None not in place:
                for_x[(n, c, *place)] = float(Fraction(float(integer)) * step)
    for n, *p in np.ndindex(*grid.shape[:-1]):
        reads_here = _reads(grid[(n, *p)].tolist(), sizes, *options)
        for axis in range(len(sizes)):
            slopes = [_blend(x[n, c], reads_here, axis) for c in range(x.shape[1])]
            products = [float(grad[(n, c, *p)]) * slope for c, slope in enumerate(slopes)]
            for_grid[(n, *p, len(sizes) - 1 - axis)] = total(products)
    return narrow(for_x), narrow(for_grid)


def _base(index: Sequence[int], sizes: Sequence[int], aligned: bool) -> list[float]:
    """The coordinates of one point, the last axis first, and 1."""
    out = []
    for i, n in zip(reversed(index), reversed(sizes), strict=True):
        if n == 1:
            out.append(0.0)
        else:
            out.append(2 * i / (n - 1) - 1.0 if aligned else (2 * i + 1) / n - 1.0)
    return [*out, 1.0]


def affine_grid(theta: Any, size: Sequence[int], aligned: bool) -> Array:
    """Row times base, added in order."""
    theta, sizes = widen(theta), size[2:]
    out = np.zeros([size[0], *sizes, len(sizes)])
    for n, *rest in np.ndindex(*out.shape):
        *place, k = rest
        parts = [b * t for b, t in zip(_base(place, sizes, aligned), theta[n, k], strict=True)]
        value = parts[0]
        for part in parts[1:]:
            value = value + part
        out[(n, *rest)] = value
    return narrow(out)


def max_unpool(x: Any, indices: Any, size: Sequence[int], *_: Any) -> Array:
    """Values written one after another, the last one kept."""
    planes = x.reshape(-1, math.prod(x.shape[-len(size) :]))
    out = np.zeros([len(planes), math.prod(size)])
    for plane, places, written in zip(planes, indices.reshape(planes.shape), out, strict=True):
        for value, place in zip(plane, places, strict=True):
            written[place] = value
    return narrow(out.reshape([*x.shape[: -len(size)], *size]))


REFERENCES: dict[str, Reference] = {
    **{f"grid_sampler_{n}d": sample for n in (2, 3)},
    **{f"grid_sampler_{n}d_backward": sample_backward for n in (2, 3)},
    "cudnn_grid_sampler": lambda x, grid: sample(x, grid, 0, 0, True),
    "cudnn_grid_sampler_backward": lambda x, grid, grad: sample_backward(grad, x, grid, 0, 0, True),
    "affine_grid_generator": affine_grid,
    **{f"max_unpool{n}d": max_unpool for n in (2, 3)},
}
