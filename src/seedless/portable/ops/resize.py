"""Resizing by nearest neighbour, linear and cubic interpolation, and the gradients.

Law: along one axis each result is the sum, tap after tap, of a few values times their weights; the
places and weights are Python's own float64, so no device's coordinates show. Axes go one after
another, first to last, and the result is rounded once. A gradient is each weight times the gradient
of its result, added on the grid of the axis, axes from last to first.
"""

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from seedless.portable.ops.elementwise import Implementation
from seedless.portable.ops.padding import gather_back

Taps = tuple[tuple[tuple[int, ...], ...], tuple[tuple[float, ...], ...]]
_CUBIC = -0.75


@lru_cache(maxsize=512)
def find_taps(kind: str, length: int, size: int, factor: float | None, aligned: bool) -> Taps:
    """Return, tap by tap, the place and the weight of each of ``size`` results."""
    rows = [_taps_of(kind, place, length, size, factor, aligned) for place in range(size)]
    places = tuple(zip(*([_clip(p, length) for p, _ in row] for row in rows), strict=True))
    weights = tuple(zip(*([w for _, w in row] for row in rows), strict=True))
    return places, weights


def _clip(place: int, length: int) -> int:
    return min(max(place, 0), length - 1)


def _taps_of(
    kind: str, place: int, length: int, size: int, factor: float | None, aligned: bool
) -> list[tuple[int, float]]:
    scale = 1.0 / factor if factor else length / size
    if kind == "nearest":
        return [(math.floor(place / factor) if factor else place * length // size, 1.0)]
    if kind == "nearest_exact":
        return [(math.floor((place + 0.5) * scale), 1.0)]
    if aligned:
        at = place * (length - 1) / (size - 1) if size > 1 else 0.0
    else:
        at = (place + 0.5) * scale - 0.5
        at = max(at, 0.0) if kind == "linear" else at
    first = math.floor(at)
    t = at - first
    if kind == "linear":
        return [(first, 1.0 - t), (first + 1, t)]
    return [
        (first - 1, _outer(t + 1.0)),
        (first, _inner(t)),
        (first + 1, _inner(1.0 - t)),
        (first + 2, _outer(2.0 - t)),
    ]


def _inner(t: float) -> float:
    return ((_CUBIC + 2.0) * t - (_CUBIC + 3.0)) * t * t + 1.0


def _outer(t: float) -> float:
    return ((_CUBIC * t - 5.0 * _CUBIC) * t + 8.0 * _CUBIC) * t - 4.0 * _CUBIC


def _tensors(taps: Taps, axis: int, like: Tensor) -> list[tuple[Tensor, Tensor]]:
    shape = [-1 if a == axis else 1 for a in range(like.ndim)]
    return [
        (
            torch.tensor(places, device=like.device),
            torch.tensor(weights, dtype=torch.float64, device=like.device).view(shape),
        )
        for places, weights in zip(*taps, strict=True)
    ]


def resize(x: Tensor, size: Sequence[int], *options: Any, kind: str) -> Tensor:
    """aten.upsample_*: (batch, channel, ...) to ``size``."""
    aligned, factors = _read(kind, x.ndim - 2, options)
    out = x.to(torch.float64)
    for axis, (target, factor) in enumerate(zip(size, factors, strict=True), 2):
        total = None
        taps = find_taps(kind, x.shape[axis], target, factor, aligned)
        for places, weights in _tensors(taps, axis, x):
            part = out.index_select(axis, places) * weights
            total = part if total is None else total + part
        assert total is not None
        out = total
    return out.to(x.dtype)


def resize_backward(
    grad: Tensor, size: Sequence[int], shape: Sequence[int], *options: Any, kind: str
) -> Tensor:
    """Return the gradient of an input of ``shape``."""
    aligned, factors = _read(kind, len(shape) - 2, options)
    out = grad.to(torch.float64)
    for axis in range(len(shape) - 1, 1, -1):
        taps = find_taps(kind, shape[axis], size[axis - 2], factors[axis - 2], aligned)
        pairs = _tensors(taps, axis, grad)
        parts = torch.cat([out * weights for _, weights in pairs], axis)
        places = torch.cat([places for places, _ in pairs])
        out = gather_back(parts, axis, places, shape[axis])
    return out.to(grad.dtype)


def _read(kind: str, dimensions: int, options: Sequence[Any]) -> tuple[bool, list[float | None]]:
    """Return align_corners, which only some kinds have, and one factor or None for each axis."""
    aligned, factors = False, list(options)
    if kind in ("linear", "cubic"):
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
}.items():
    IMPLEMENTATIONS[f"aten::{_op}"] = partial(resize, kind=_kind)
    IMPLEMENTATIONS[f"aten::{_op}_backward"] = partial(resize_backward, kind=_kind)
