"""References of sums, products, extremes, and of what is picked, placed and added in places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.portable.reference import laws as ref
from tests.portable.reference.arrays import (
    Array,
    Reference,
    add_back,
    axes_of,
    each,
    mean,
    multiply,
    narrow,
    total,
    widen,
)


def _product(left: Any, right: Any) -> Array:
    """Matrices, batches of them, or vectors."""
    if left.ndim == 3:
        return narrow([multiply(a, b) for a, b in zip(left, right, strict=True)])
    a = left[None] if left.ndim == 1 else left
    b = right[:, None] if right.ndim == 1 else right
    out = narrow(multiply(a, b))
    out = out[:, 0] if right.ndim == 1 else out
    return out[0] if left.ndim == 1 else out


def _add_product(c: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Array:
    """Beta c + alpha a b, every step in float32."""
    scaled = narrow(widen(_product(a, b)) * float(np.float32(alpha)))
    return narrow(widen(narrow(widen(c) * float(np.float32(beta)))) + widen(scaled))


def cumsum(x: Any, dim: int) -> Array:
    """Running sums on the grid of the whole row."""
    rows = np.moveaxis(widen(x), dim, -1)
    out = np.zeros(rows.shape)
    for index in np.ndindex(*rows.shape[:-1]):
        integers, step = ref.to_grid(rows[index].tolist(), 36)
        running = np.cumsum(np.array(integers, dtype=object))
        out[index] = [float(float(one) * step) for one in running]
    return narrow(np.moveaxis(out, -1, dim))


def _extreme(best: Any, places: bool) -> Reference:
    def apply(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        x = widen(x)
        dims = axes_of(x, dim)
        found = narrow(best(x, axis=tuple(dims), keepdims=keepdim) + 0.0)
        if not places or dim is None:
            return found
        first = (np.argmax if best is np.max else np.argmin)(x, axis=dims[0])
        return found, np.expand_dims(first, dims[0]) if keepdim else first

    return apply


def _add_places(x: Any, parts: Any, flat: Sequence[int], rows: int | None = None) -> Array:
    """X + the exact sums of what goes to each place, all parts on one grid."""
    sums = add_back(widen(parts).ravel(), 0, flat, rows or x.size)
    return narrow(widen(x) + widen(narrow(sums)).reshape(x.shape))


def index_add(x: Any, dim: int, index: Any, source: Any, alpha: float = 1) -> Array:
    """Rows added to rows."""
    numbers = np.arange(x.size).reshape(x.shape)
    source = narrow(widen(source) * float(np.float32(alpha)))
    return _add_places(x, source, np.take(numbers, index, dim).ravel().tolist())


def scatter_add(x: Any, dim: int, index: Any, source: Any) -> Array:
    """Values added at places along one axis."""
    return _add_places(x, source, _along(x, dim, index))


def _along(x: Any, dim: int, index: Any) -> list[int]:
    numbers = np.arange(x.size).reshape(x.shape)
    grid = list(np.indices(index.shape))
    grid[dim] = index
    return [int(n) for n in numbers[tuple(grid)].ravel()]


def scatter(x: Any, dim: int, index: Any, source: Any) -> Array:
    """Values written at places along one axis."""
    out = x.copy()
    out.reshape(-1)[_along(x, dim, index)] = np.broadcast_to(source, index.shape).ravel()
    return narrow(out)


def index_copy(x: Any, dim: int, index: Any, source: Any) -> Array:
    """Slices written at places of one axis, one after another."""
    out = np.moveaxis(x.copy(), dim, 0)
    for place, part in zip(index.tolist(), np.moveaxis(source, dim, 0), strict=True):
        out[place] = part
    return narrow(np.moveaxis(out, 0, dim))


def index_put(x: Any, index: Any, values: Any, accumulate: bool = False, *_: Any) -> Array:
    """Values written or added at places."""
    numbers = np.arange(x.size).reshape(x.shape)[tuple(index)]
    if not accumulate:
        out = x.copy()
        out[tuple(index)] = values
        return narrow(out)
    return _add_places(x, np.broadcast_to(values, numbers.shape), numbers.ravel().tolist())


def grouped_matmul(a: Any, b: Any, ends: Any) -> Array:
    """A product for each group of rows, of columns, or of addends."""
    parts = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    if a.ndim == b.ndim == 2:
        return narrow(np.stack([multiply(a[:, part], b[part]) for part in parts]))
    if a.ndim == 2:
        out = np.zeros((len(a), b.shape[2]))
        for group, part in enumerate(parts):
            out[part] = multiply(a[part], b[group])
        return narrow(out)
    return narrow(np.concatenate([multiply(a[g], b[:, part]) for g, part in enumerate(parts)], 1))


def histogram(x: Any, bins: int = 100, low: float = 0, high: float = 0) -> Array:
    """Counts of values in equal parts of [low, high]."""
    low, high = (float(x.min()), float(x.max())) if low == high else (float(low), float(high))
    counts = [0] * bins
    for value in widen(x).ravel().tolist():
        if low <= value <= high:
            counts[min(math.floor((value - low) * bins / (high - low)), bins - 1)] += 1
    return narrow(counts)


def put(x: Any, places: Any, source: Any, accumulate: bool = False) -> Array:
    """Values written or added at places of the flattened array."""
    return index_put(x.reshape(-1), (places,), source, accumulate).reshape(x.shape)


def embedding_backward(grad: Any, index: Any, rows: int, padding: int, _: bool) -> Array:
    """Gradients added to the rows they came from, on the grid of each column."""
    flat = widen(grad).reshape(-1, grad.shape[-1])
    flat = np.where((index.ravel() == padding)[:, None], 0.0, flat)
    return narrow(add_back(flat, 0, index.ravel().tolist(), rows))


def embedding_bag(weight: Any, places: Any, offsets: Any, *options: Any) -> tuple[Array, ...]:
    """Sums or means of rows, bag by bag."""
    mode, padding = options[1], options[5]
    ends = [*offsets.tolist()[1:], len(places)]
    bags = [next(b for b, end in enumerate(ends) if i < end) for i in range(len(places))]
    counted = places != padding
    sizes = np.array(
        [sum(counted[i] for i, b in enumerate(bags) if b == n) for n in range(len(ends))]
    )
    rows = np.where(counted[:, None], widen(weight)[places], 0.0)
    out = add_back(rows, 0, bags, len(ends))
    out = out / np.maximum(sizes, 1)[:, None] if mode == 1 else out
    return narrow(out), np.array(bags), sizes


def bag_backward(
    grad: Any, places: Any, bags: Any, sizes: Any, _: Any, rows: int, *options: Any
) -> Array:
    """A bag's gradient, or its share, added to each row it took."""
    _, mode, _, padding = options
    wide = widen(grad) / np.maximum(sizes, 1)[:, None] if mode == 1 else widen(grad)
    parts = np.where((places == padding)[:, None], 0.0, wide[bags])
    return narrow(add_back(parts, 0, places.tolist(), rows))


def _bag_backward(grad: Any, places: Any, _: Any, *rest: Any) -> Array:
    bags, sizes, tops, rows, freq, mode, _, weights, padding = rest
    return bag_backward(grad, places, bags, sizes, tops, rows, freq, mode, weights, padding)


def unfold_backward(grad: Any, sizes: Sequence[int], dim: int, size: int, step: int) -> Array:
    """Windows' values added back, tap after tap."""
    out = np.moveaxis(np.zeros(sizes), dim, -1)
    parts = np.moveaxis(widen(grad), dim, -2)
    for tap in range(size):
        for window in range(parts.shape[-2]):
            out[..., window * step + tap] += parts[..., window, tap]
    return narrow(np.moveaxis(out, -1, dim))


def sort(x: Any, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    """A stable sort."""
    keys = -widen(x) if descending else widen(x)
    places = np.argsort(keys + 0.0, axis=dim, kind="stable")
    return narrow(np.take_along_axis(x, places, dim)), places


def topk(
    x: Any, k: int, dim: int = -1, largest: bool = True, _: bool = True
) -> tuple[Array, Array]:
    """The first k of a stable sort."""
    values, places = sort(x, dim, largest)
    return np.take(values, range(k), dim), np.take(places, range(k), dim)


def pack(x: Any, lengths: Any, batch_first: bool) -> tuple[Array, Array]:
    """The rows of each time of the sequences that last so long."""
    x = np.swapaxes(x, 0, 1) if batch_first else x
    rows = [x[t, b] for t in range(max(lengths)) for b in range(x.shape[1]) if t < lengths[b]]
    return np.array(rows), np.array([sum(n > t for n in lengths) for t in range(max(lengths))])


def pack_backward(grad: Any, shape: Sequence[int], sizes: Any, batch_first: bool) -> Array:
    """Rows put back."""
    out = np.zeros(shape, dtype=np.float32)
    rows = iter(grad)
    for t, size in enumerate(sizes):
        for b in range(size):
            out[(b, t) if batch_first else (t, b)] = next(rows)
    return out


def logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Array:
    """The largest + log of the sum of exp(x - largest)."""
    x = widen(x)
    dims = axes_of(x, dim)
    top = x.max(axis=tuple(dims), keepdims=True) + 0.0
    out = each(ref.log, total(each(ref.exp, x - top), dims, True)) + top
    return narrow(out if keepdim else out.squeeze(tuple(dims)))


def linspace(start: float, end: float, steps: int) -> Array:
    """Even steps, the last one the end."""
    start, end = float(start), float(end)
    span = end - start
    return narrow([*(start + span * i / (steps - 1) for i in range(steps - 1)), end])


_max, _min = _extreme(np.max, True), _extreme(np.min, True)
REFERENCES: dict[str, Reference] = {
    "sum": lambda *given: narrow(total(*given)),
    "mean": lambda *given: narrow(mean(*given)),
    "nansum": lambda x, *given: narrow(total(np.nan_to_num(x, nan=0.0), *given)),
    "trace": lambda x: narrow(total(np.diagonal(x))),
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot"), _product),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _add_product),
    "amax": _extreme(np.max, False),
    "amin": _extreme(np.min, False),
    "aminmax": lambda x, dim=None, keepdim=False: (
        _extreme(np.min, False)(x, dim, keepdim),
        _extreme(np.max, False)(x, dim, keepdim),
    ),
    "max": _max,
    "min": _min,
    "argmax": lambda x, dim, keepdim=False: _max(x, dim, keepdim)[1],
    "argmin": lambda x, dim, keepdim=False: _min(x, dim, keepdim)[1],
    "cumsum": cumsum,
    "logsumexp": logsumexp,
    "index_add": index_add,
    "scatter_add": scatter_add,
    "scatter": scatter,
    "index_copy": index_copy,
    **dict.fromkeys(("index_put", "_index_put_impl", "_unsafe_index_put"), index_put),
    "put": put,
    "_grouped_mm": grouped_matmul,
    "histc": histogram,
    "embedding_dense_backward": embedding_backward,
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), embedding_bag),
    "_embedding_bag_dense_backward": bag_backward,
    "_embedding_bag_backward": _bag_backward,
    "unfold_backward": unfold_backward,
    "sort": sort,
    "topk": topk,
    "_pack_padded_sequence": pack,
    "_pack_padded_sequence_backward": pack_backward,
    "arange": lambda *bounds: np.array(range(*map(math.floor, bounds))),
    "linspace": linspace,
}
