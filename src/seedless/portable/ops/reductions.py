"""Sums, matrix products, maxima and minima, and sums at indices.

Law: a sum is exact in float64 and rounded once (`exact.sums`, `exact.product`). Of equal maxima or
minima the first is taken, and a NaN before every number. A maximum or minimum of zero is positive:
torch returns either of the two zeros, which are equal.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.exact import sums as r
from seedless.portable.exact.product import multiply_and_add, multiply_and_round
from seedless.portable.ops.elementwise import Implementation, shape_along
from seedless.portable.ops.scatter_write import write_at, write_flat

Dims = int | Sequence[int] | None


def sum_(
    x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    """Return the sum over ``dim``; torch's own sum of integers is exact."""
    target = dtype or x.dtype
    if not x.is_floating_point() and not target.is_floating_point:
        return torch.sum(x, r.list_axes(x, dim), keepdim, dtype=dtype)
    if x.dtype == target == torch.float32:
        return r.total_in_float32(x, dim, keepdim)
    return r.total(x, dim, keepdim).to(target)


def mean(
    x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    """Return the mean over ``dim``: the exact sum, divided by the count in float64."""
    return r.mean(x, dim, keepdim).to(dtype or x.dtype)


def nansum(
    x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    """Return the sum over ``dim`` of all values that are not NaN."""
    return r.total(torch.where(x != x, torch.zeros_like(x), x), dim, keepdim).to(dtype or x.dtype)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return aten.mm: (m, k) x (k, n) -> (m, n)."""
    return multiply_and_round(a[None], b[None])[0]


def batched_matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return aten.bmm: (batch, m, k) x (batch, k, n) -> (batch, m, n)."""
    return multiply_and_round(a, b)


def grouped_matmul(
    a: Tensor,
    b: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Return aten._grouped_mm: a product for each group, which ends at its offset.

    (rows, k) x (groups, k, n) -> (rows, n), groups of rows; (groups, m, k) x (k, columns) ->
    (m, columns), groups of columns; (m, k) x (k, n) -> (groups, m, n), groups of k. What follows
    the last group is zero.
    """
    if bias is not None or out_dtype not in (None, torch.float32):
        raise NumericsError("portable _grouped_mm takes no bias and no out_dtype; leave them out")
    if offs is None:
        return batched_matmul(a, b)
    ends = [int(end) for end in offs.tolist()]
    parts = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    if a.ndim == b.ndim == 2:
        return torch.stack([matmul(a[:, part], b[part]) for part in parts])
    if a.ndim == 2:
        out = a.new_zeros(len(a), b.shape[2])
        for group, part in enumerate(parts):
            out[part] = matmul(a[part], b[group])
        return out
    out = a.new_zeros(a.shape[1], b.shape[1])
    for group, part in enumerate(parts):
        out[:, part] = matmul(a[group], b[:, part])
    return out


def matrix_vector(a: Tensor, b: Tensor) -> Tensor:
    """Return aten.mv: (m, k) x (k,) -> (m,)."""
    return multiply_and_round(a[None], b[None, :, None])[0, :, 0]


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Return aten.dot: (k,) x (k,) -> ()."""
    return multiply_and_round(a[None, None], b[None, :, None])[0, 0, 0]


def _with_addend(product: Implementation) -> Implementation:
    """Return the op beta c + alpha (a b): the product is rounded to float32 first, as each step."""

    def apply(c: Tensor, a: Tensor, b: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
        if product is matmul and beta == alpha == 1 and c.ndim == 1:
            return multiply_and_add(a[None], b[None], c)[0]
        out: Tensor = product(a, b)
        out = out if alpha == 1 else out * alpha
        if beta == 0:
            return out
        return (c if beta == 1 else c * beta) + out

    return apply


def _extreme(find: Any) -> Implementation:
    """Return the op amax or amin over some axes; none: over all of them."""

    def apply(x: Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Tensor:
        return _make_zeros_positive(find(x, dim, keepdim) if x.ndim else x.clone())

    return apply


def _make_zeros_positive(x: Tensor) -> Tensor:
    """Return x with positive zeros: -0 + 0 is +0."""
    return x if x.dtype == torch.bool else x + 0


def _extreme_with_index(find: Any) -> Implementation:
    """Return the op max or min along an axis, with the first index of it."""

    def apply(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        if x.ndim == 0:
            return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
        best = find(x, dim, True)
        shape = shape_along(dim % x.ndim, x.ndim)
        indices = torch.arange(x.shape[dim], device=x.device).view(shape)
        is_best = (x == best) | (x != x)
        index = torch.where(is_best, indices, x.shape[dim] - 1).amin(dim, True)
        best = _make_zeros_positive(best)
        return (best, index) if keepdim else (best.squeeze(dim), index.squeeze(dim))

    return apply


_max = _extreme_with_index(torch.amax)
_min = _extreme_with_index(torch.amin)


def _index_only(find: Implementation) -> Implementation:
    """Return the op argmax or argmin, of all values where no axis is named."""

    def apply(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        out: Tensor = find(x.flatten(), 0)[1] if dim is None else find(x, dim, keepdim)[1]
        return out

    return apply


def aminmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the smallest and the largest value along ``dim``; None: of all."""
    dims = r.list_axes(x, dim)
    if not dims:
        return x.clone(), x.clone()
    return x.amin(dims, keepdim) + 0, x.amax(dims, keepdim) + 0


def cumsum(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Return the cumulative sum along ``dim``, on the grid of the whole row."""
    target = dtype or x.dtype
    if not x.is_floating_point() and not target.is_floating_point:
        return torch.cumsum(x, dim, dtype=dtype)
    return r.cumulative_total(x, dim).to(target)


def _list_all_axes(x: Tensor) -> list[int]:
    return list(range(x.ndim))


def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, alpha: float = 1) -> Tensor:
    """Return x with alpha source added at ``index`` of axis ``dim``, on one grid for all sums."""
    if not x.is_floating_point():
        return torch.index_add(x, dim, index, source, alpha=alpha)
    source = source if alpha == 1 else source * alpha
    axes = _list_all_axes(source)
    return r.add_at(x, source, axes, lambda out, q: out.index_add_(dim, index, q))


def scatter_add(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return x with each value of ``source`` added at its index of axis ``dim``, on one grid."""
    if not x.is_floating_point():
        return torch.scatter_add(x, dim, index, source)
    axes = _list_all_axes(source)
    return r.add_at(x, source, axes, lambda out, q: out.scatter_add_(dim, index, q))


def index_put(
    x: Tensor, index: Sequence[Any], values: Tensor, accumulate: bool = False, *_: object
) -> Tensor:
    """Return x with ``values`` added at an index, or written: then the last of several is kept."""
    if not accumulate:
        return write_at(x, index, values)
    # A tensor's own method takes no None, which stands for a whole axis.
    write, indices = torch.ops.aten.index_put_, list(index)
    if not x.is_floating_point():
        out: Tensor = write(x.clone(), indices, values, True)
        return out
    if values.ndim == 0:
        values = values.expand(torch.ops.aten.index(x, indices).shape)
    axes = _list_all_axes(values)
    return r.add_at(x, values, axes, lambda out, q: write(out, indices, q, True))


def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return x with ``source`` added, or written, at indices of the flattened x."""
    if not accumulate:
        return write_flat(x, index, source)
    if not x.is_floating_point():
        return torch.put(x, index, source, accumulate)
    flat, flat_index = source.reshape(-1), index.reshape(-1)
    return r.add_at(x, flat, [0], lambda out, q: out.put_(flat_index, q, True))


def embedding_backward(
    grad: Tensor, index: Tensor, rows: int, padding: int, scale_by_freq: bool
) -> Tensor:
    """Return (rows, width): each position's gradient added to its row, on a grid by column."""
    if scale_by_freq:
        raise NumericsError("portable embeddings have no scale_grad_by_freq; leave it off")
    flat, row_of = grad.reshape(-1, grad.shape[-1]), index.reshape(-1)
    if padding >= 0:
        flat = torch.where((row_of == padding)[:, None], torch.zeros_like(flat), flat)
    zeros = flat.new_zeros(rows, flat.shape[1])
    return r.add_at(zeros, flat, [0], lambda out, q: out.index_add_(0, row_of, q))


def unfold_backward(grad: Tensor, sizes: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    """Return the gradient of Tensor.unfold: windows added where they were read, in tap order."""
    dim %= len(sizes)
    wide = grad.to(torch.float64)
    out = torch.zeros(list(sizes), dtype=torch.float64, device=grad.device)
    windows = grad.shape[dim]
    for tap in range(size):
        region = [slice(None)] * len(sizes)
        region[dim] = slice(tap, tap + (windows - 1) * step + 1, step)
        out[tuple(region)] += wide[..., tap]
    return out.to(grad.dtype)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::sum": lambda x, dtype=None: sum_(x, None, False, dtype),
    "aten::sum.dim_IntList": sum_,
    "aten::nansum": nansum,
    "aten::trace": lambda x: r.total(x.diagonal()).to(x.dtype),
    "aten::mean": lambda x, dtype=None: mean(x, None, False, dtype),
    "aten::mean.dim": mean,
    "aten::mm": matmul,
    "aten::bmm": batched_matmul,
    "aten::_grouped_mm": grouped_matmul,
    "aten::mv": matrix_vector,
    "aten::dot": dot,
    "aten::vdot": dot,
    "aten::addmm": _with_addend(matmul),
    "aten::baddbmm": _with_addend(batched_matmul),
    "aten::addmv": _with_addend(matrix_vector),
    "aten::amax": _extreme(torch.amax),
    "aten::amin": _extreme(torch.amin),
    "aten::max": lambda x: _make_zeros_positive(torch.amax(x)),
    "aten::max.dim": _max,
    "aten::min": lambda x: _make_zeros_positive(torch.amin(x)),
    "aten::min.dim": _min,
    "aten::argmax": _index_only(_max),
    "aten::argmin": _index_only(_min),
    "aten::aminmax": aminmax,
    "aten::cumsum": cumsum,
    "aten::index_add": index_add,
    "aten::scatter_add": scatter_add,
    "aten::index_put": index_put,
    "aten::_index_put_impl": index_put,
    "aten::_unsafe_index_put": index_put,
    "aten::put": put,
    "aten::embedding_dense_backward": embedding_backward,
    "aten::unfold_backward": unfold_backward,
}
