"""References of adaptive pools and resizing: bins and taps found anew, from fractions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tests.portable.reference.arrays import Array, Reference, add_back, narrow, widen


def _bin(i: int, length: int, size: int) -> range:
    return range(
        math.floor(Fraction(i * length, size)), math.ceil(Fraction((i + 1) * length, size))
    )


def _sum_bins(x: Array, axis: int, size: int) -> Array:
    parts = []
    for i in range(size):
        values = [np.take(x, place, axis) for place in _bin(i, x.shape[axis], size)]
        parts.append(sum(values, np.zeros(values[0].shape)))
    return np.stack(parts, axis)


def _counts(length: int, size: int, axis: int, ndim: int) -> Array:
    counts = np.array([float(len(_bin(i, length, size))) for i in range(size)])
    return counts.reshape([-1 if a == axis else 1 for a in range(ndim)])


def adaptive_avg(x: Any, output: Sequence[int]) -> Array:
    """The mean of each bin, one axis after another."""
    out = widen(x)
    for axis, size in zip(range(x.ndim - len(output), x.ndim), output, strict=True):
        out = _sum_bins(out, axis, size) / _counts(x.shape[axis], size, axis, x.ndim)
    return narrow(out)


def _adaptive_avg_backward(dimensions: int) -> Reference:
    def apply(grad: Any, x: Any) -> Array:
        out = widen(grad)
        for axis in range(x.ndim - dimensions, x.ndim):
            out = out / _counts(x.shape[axis], grad.shape[axis], axis, x.ndim)
            out = _sum_bins(out, axis, x.shape[axis])
        return narrow(out)

    return apply


def adaptive_max(x: Any, output: Sequence[int]) -> tuple[Array, Array]:
    """The first maximum of each bin and its place."""
    n = len(output)
    sizes = x.shape[-n:]
    shape = [*x.shape[:-n], *output]
    out, where = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    for index in np.ndindex(*shape):
        lead, place = index[:-n], index[-n:]
        bins = [_bin(i, length, size) for i, length, size in zip(place, sizes, output, strict=True)]
        best = max(itertools.product(*bins), key=lambda p: x[(*lead, *p)])  # used at once
        out[index], where[index] = x[(*lead, *best)], np.ravel_multi_index(best, sizes)
    return narrow(out), where


def _adaptive_max_backward(dimensions: int) -> Reference:
    def apply(grad: Any, x: Any, where: Any) -> Array:
        out = np.zeros(x.shape)
        lead = x.shape[:-dimensions]
        for index in np.ndindex(*lead):
            flat, places = widen(grad)[index].ravel(), where[index].ravel().tolist()
            out[index] = add_back(flat, 0, places, out[index].size).reshape(out[index].shape)
        return narrow(out)

    return apply


def _cubic(t: float, a: float = -0.75) -> float:
    """The weight of a value at distance t, as a polynomial in Horner's order."""
    if t <= 1.0:
        return ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0
    return ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a


def _taps(
    kind: str, i: int, n: int, size: int, factor: Any, aligned: bool
) -> list[tuple[int, float]]:
    if kind.endswith("_aa"):
        return _filter_taps(kind, i, n, size, factor, aligned)
    scale = 1.0 / factor if factor else n / size
    if kind == "nearest":
        at = math.floor(i / factor) if factor else math.floor(Fraction(i * n, size))
        return [(min(at, n - 1), 1.0)]
    if kind == "nearest_exact":
        return [(min(math.floor((i + 0.5) * scale), n - 1), 1.0)]
    at_ = i * (n - 1) / (size - 1) if aligned else (i + 0.5) * scale - 0.5
    at_ = max(at_, 0.0) if kind == "linear" else at_
    base = math.floor(at_)
    t = at_ - base
    if kind == "linear":
        return [(base, 1.0 - t), (min(base + 1, n - 1), t)]
    distances = (t + 1.0, t, 1.0 - t, 2.0 - t)
    return [(min(max(base + k - 1, 0), n - 1), _cubic(d)) for k, d in enumerate(distances)]


def _filter_taps(
    kind: str, i: int, n: int, size: int, factor: Any, aligned: bool
) -> list[tuple[int, float]]:
    """Every value whose distance from the centre is less than the filter's half width."""
    scale = 1.0 / factor if factor else n / size
    scale = (n - 1) / (size - 1) if aligned else scale
    stretch, centre = max(scale, 1.0), scale * (i + 0.5)
    half = (1.0 if kind == "linear_aa" else 2.0) * stretch
    places = [j for j in range(n) if int(centre - half + 0.5) <= j < int(centre + half + 0.5)]
    weights = []
    for j in places:
        t = abs(j - centre + 0.5) / stretch
        weights.append(max(1.0 - t, 0.0) if kind == "linear_aa" else _cubic(t, -0.5) * (t < 2.0))
    whole = 0.0
    for weight in weights:
        whole = whole + weight
    return [(j, weight / whole) for j, weight in zip(places, weights, strict=True)]


def _options(kind: str, axes: int, given: Sequence[Any]) -> tuple[bool, list[Any]]:
    rest = list(given)
    aligned = False if kind.startswith("nearest") else bool(rest.pop(0))
    return aligned, [*rest, *[None] * axes][:axes]


def _resize(kind: str) -> Reference:
    def apply(x: Any, size: Sequence[int], *given: Any) -> Array:
        aligned, factors = _options(kind, len(size), given)
        out = widen(x)
        for axis, (target, factor) in enumerate(zip(size, factors, strict=True), 2):
            rows = []
            for i in range(target):
                parts = [
                    np.take(out, place, axis) * weight
                    for place, weight in _taps(kind, i, x.shape[axis], target, factor, aligned)
                ]
                rows.append(sum(parts[1:], parts[0]))
            out = np.stack(rows, axis)
        return narrow(out)

    return apply


def _resize_backward(kind: str) -> Reference:
    def apply(grad: Any, size: Sequence[int], shape: Sequence[int], *given: Any) -> Array:
        aligned, factors = _options(kind, len(size), given)
        out = widen(grad)
        for axis in range(len(shape) - 1, 1, -1):
            taps = [
                _taps(kind, i, shape[axis], size[axis - 2], factors[axis - 2], aligned)
                for i in range(size[axis - 2])
            ]
            parts, places = [], []
            for k in range(max(map(len, taps))):
                for i, row in [one for one in enumerate(taps) if k < len(one[1])]:
                    parts.append(np.take(out, i, axis) * row[k][1])
                    places.append(row[k][0])
            out = add_back(np.stack(parts, axis), axis, places, shape[axis])
        return narrow(out)

    return apply


_KINDS = {
    **{f"upsample_nearest{n}d": "nearest" for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": "nearest_exact" for n in (1, 2, 3)},
    "upsample_linear1d": "linear",
    "upsample_bilinear2d": "linear",
    "upsample_trilinear3d": "linear",
    "upsample_bicubic2d": "cubic",
    "_upsample_bilinear2d_aa": "linear_aa",
    "_upsample_bicubic2d_aa": "cubic_aa",
}
REFERENCES: dict[str, Reference] = {
    **{name: _resize(kind) for name, kind in _KINDS.items()},
    **{f"{name}_backward": _resize_backward(kind) for name, kind in _KINDS.items()},
    **{f"_adaptive_avg_pool{n}d": adaptive_avg for n in (2, 3)},
    **{f"_adaptive_avg_pool{n}d_backward": _adaptive_avg_backward(n) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": adaptive_max for n in (2, 3)},
    **{f"adaptive_max_pool{n}d_backward": _adaptive_max_backward(n) for n in (2, 3)},
}
