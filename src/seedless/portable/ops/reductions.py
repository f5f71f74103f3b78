"""Sums, matrix products, maxima and minima, and additions at indices."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.exact import sums as r
from seedless.portable.exact.product import multiply_and_round
from seedless.portable.ops.elementwise import Implementation
from seedless.portable.ops.scatter_write import write_at

Dims = int | Sequence[int] | None


def sum_(
    x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    """aten.sum; integers add exactly as they are."""
    target = dtype or x.dtype
    if not x.is_floating_point() and not target.is_floating_point:
        return torch.sum(x, r.list_axes(x, dim), keepdim, dtype=dtype)
    return r.total(x, dim, keepdim).to(target)


def mean(
    x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    """aten.mean."""
    return r.mean(x, dim, keepdim).to(dtype or x.dtype)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """aten.mm."""
    return multiply_and_round(a[None], b[None])[0]


def batched_matmul(a: Tensor, b: Tensor) -> Tensor:
    """aten.bmm."""
    return multiply_and_round(a, b)


def matrix_vector(a: Tensor, b: Tensor) -> Tensor:
    """aten.mv."""
    return multiply_and_round(a[None], b[None, :, None])[0, :, 0]


def dot(a: Tensor, b: Tensor) -> Tensor:
    """aten.dot."""
    return multiply_and_round(a[None, None], b[None, :, None])[0, 0, 0]


def _with_addend(product: Implementation) -> Implementation:
    """beta c + alpha (a b): the product rounded to float32, then each step in its own kernel."""

    def apply(c: Tensor, a: Tensor, b: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
        out: Tensor = product(a, b)
        out = out if alpha == 1 else out * alpha
        if beta == 0:
            return out
        return (c if beta == 1 else c * beta) + out

    return apply


def _extreme(find: Any) -> Implementation:
    """Return amax or amin; + 0 makes a negative zero, which equals zero, positive."""

    def apply(x: Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Tensor:
        return _make_zeros_positive(find(x, dim, keepdim) if x.ndim else x.clone())

    return apply


def _make_zeros_positive(x: Tensor) -> Tensor:
    return x if x.dtype == torch.bool else x + 0


def _extreme_with_place(find: Any) -> Implementation:
    """Return max or min along an axis, with the first index of it."""

    def apply(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        if x.ndim == 0:
            return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
        best = find(x, dim, True)
        shape = [-1 if axis == dim % x.ndim else 1 for axis in range(x.ndim)]
        places = torch.arange(x.shape[dim], device=x.device).view(shape)
        hits = (x == best) | (x != x)
        place = torch.where(hits, places, x.shape[dim] - 1).amin(dim, True)
        best = _make_zeros_positive(best)
        return (best, place) if keepdim else (best.squeeze(dim), place.squeeze(dim))

    return apply


_max = _extreme_with_place(torch.amax)
_min = _extreme_with_place(torch.amin)


def _place(find: Implementation) -> Implementation:
    def apply(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        out: Tensor = find(x.flatten(), 0)[1] if dim is None else find(x, dim, keepdim)[1]
        return out

    return apply


def running_total(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """aten.cumsum."""
    target = dtype or x.dtype
    if not x.is_floating_point() and not target.is_floating_point:
        return torch.cumsum(x, dim, dtype=dtype)
    return r.cumulative_total(x, dim).to(target)


def _all(x: Tensor) -> list[int]:
    return list(range(x.ndim))


def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, alpha: float = 1) -> Tensor:
    """aten.index_add."""
    if not x.is_floating_point():
        return torch.index_add(x, dim, index, source, alpha=alpha)
    source = source if alpha == 1 else source * alpha
    return r.add_at(x, source, _all(source), lambda out, q: out.index_add_(dim, index, q))


def scatter_add(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """aten.scatter_add."""
    if not x.is_floating_point():
        return torch.scatter_add(x, dim, index, source)
    return r.add_at(x, source, _all(source), lambda out, q: out.scatter_add_(dim, index, q))


def index_put(
    x: Tensor, index: Sequence[Any], values: Tensor, accumulate: bool = False, *_: object
) -> Tensor:
    """aten.index_put; without accumulation the last value written to a place stays."""
    if not accumulate:
        return write_at(x, index, values)
    put, places = torch.ops.aten.index_put_, list(index)  # a tensor's own method knows no None
    if not x.is_floating_point():
        out: Tensor = put(x.clone(), places, values, True)
        return out
    if values.ndim == 0:
        values = values.expand(torch.ops.aten.index(x, places).shape)
    return r.add_at(x, values, _all(values), lambda out, q: put(out, places, q, True))


def embedding_backward(
    grad: Tensor, index: Tensor, rows: int, padding: int, scale_by_freq: bool
) -> Tensor:
    """Add each position's gradient to its row of the table, on the grid of each column."""
    if scale_by_freq:
        raise NumericsError("portable embeddings have no scale_grad_by_freq; leave it off")
    flat, places = grad.reshape(-1, grad.shape[-1]), index.reshape(-1)
    if padding >= 0:
        flat = torch.where((places == padding)[:, None], torch.zeros_like(flat), flat)
    zeros = flat.new_zeros(rows, flat.shape[1])
    return r.add_at(zeros, flat, [0], lambda out, q: out.index_add_(0, places, q))


def unfold_backward(grad: Tensor, sizes: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    """Add the values of each window where they were taken from, tap by tap, in float64."""
    dim %= len(sizes)
    wide = grad.to(torch.float64)
    out = torch.zeros(list(sizes), dtype=torch.float64, device=grad.device)
    windows = grad.shape[dim]
    for tap in range(size):
        place = [slice(None)] * len(sizes)
        place[dim] = slice(tap, tap + (windows - 1) * step + 1, step)
        out[tuple(place)] += wide[..., tap]
    return out.to(grad.dtype)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::sum": lambda x, dtype=None: sum_(x, None, False, dtype),
    "aten::sum.dim_IntList": sum_,
    "aten::mean": lambda x, dtype=None: mean(x, None, False, dtype),
    "aten::mean.dim": mean,
    "aten::mm": matmul,
    "aten::bmm": batched_matmul,
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
    "aten::argmax": _place(_max),
    "aten::argmin": _place(_min),
    "aten::cumsum": running_total,
    "aten::index_add": index_add,
    "aten::scatter_add": scatter_add,
    "aten::index_put": index_put,
    "aten::_index_put_impl": index_put,
    "aten::_unsafe_index_put": index_put,
    "aten::embedding_dense_backward": embedding_backward,
    "aten::unfold_backward": unfold_backward,
}
