"""What references are written with: Python's floats one at a time, and exact sums over axes.

Arrays hold float32; a reference widens them to float64, computes value by value with IEEE
operations or with exact integers, and narrows once, as the law of its op says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.portable.reference import laws as ref

Array = np.ndarray[Any, np.dtype[Any]]
Reference = Callable[..., Any]


def widen(x: Any) -> Array:
    """Return float64, exactly."""
    return np.asarray(x, dtype=np.float64)


def narrow(x: Any) -> Array:
    """Return the nearest float32."""
    with np.errstate(over="ignore"):
        return np.asarray(np.asarray(x, dtype=np.float64).astype(np.float32))


def each(f: Callable[..., float], *arrays: Any) -> Array:
    """Return f of every value, as Python floats, arrays spread over one another."""
    spread = np.broadcast_arrays(*(widen(array) for array in arrays))
    values = [float(f(*map(float, group))) for group in zip(*(a.flat for a in spread), strict=True)]
    return np.array(values, dtype=np.float64).reshape(spread[0].shape)


def axes_of(x: Array, dim: Any) -> list[int]:
    """Return the axes to reduce; none named means all."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(x.ndim))
    return [axis % x.ndim for axis in ([dim] if isinstance(dim, int) else dim)]


def total(x: Any, dim: Any = None, keepdim: bool = False) -> Array:
    """Return sums over axes in float64: each a `reference.total` of its row."""
    x = widen(x)
    dims = axes_of(x, dim)
    kept = [axis for axis in range(x.ndim) if axis not in dims]
    rows = x.transpose([*kept, *dims]).reshape(math.prod(x.shape[a] for a in kept), -1)
    sums = np.array([ref.total(row.tolist()) for row in rows], dtype=np.float64)
    shape = [1 if axis in dims else size for axis, size in enumerate(x.shape)]
    return sums.reshape(shape if keepdim else [x.shape[axis] for axis in kept])


def mean(x: Any, dim: Any = None, keepdim: bool = False) -> Array:
    """Return sums over counts."""
    x = widen(x)
    return total(x, dim, keepdim) / float(math.prod(x.shape[axis] for axis in axes_of(x, dim)))


def add_back(grad: Any, axis: int, places: Sequence[int], length: int) -> Array:
    """Return, for each of ``length`` places of an axis, the exact sum of what came from it.

    The grid is that of the whole row along the axis.
    """
    rows = np.moveaxis(widen(grad), axis, -1)
    out = np.zeros([*rows.shape[:-1], length])
    for index in np.ndindex(*rows.shape[:-1]):
        integers, step = ref.to_grid(rows[index].tolist(), 36)
        sums = [0] * length
        for place, integer in zip(places, integers, strict=True):
            sums[place] += integer
        out[index] = [float(float(one) * step) for one in sums]
    return np.moveaxis(out, -1, axis)


def multiply(left: Any, right: Any) -> Array:
    """(m, k) x (k, n) -> float64 (m, n), each element a `reference.dot`."""
    rows, columns = widen(left).tolist(), widen(right).T.tolist()
    found = [[ref.dot(row, column) for column in columns] for row in rows]
    return np.array(found, dtype=np.float64).reshape(len(rows), len(columns))
