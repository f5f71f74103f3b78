"""Grids, sums and the surroundings of matrix products as fused kernels, as in `ops`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from seedless.portable.kernels.launch import (
    column_work,
    find_kernels,
    is_plain,
    is_ready,
    launch,
    map_work,
    row_work,
)
from seedless.portable.kernels.rows import MOST

FEW = 1 << 32  # elements that kernels count in 32 bits
_SUFFIX = {torch.float32: "f32", torch.float64: "f64"}


@dataclass(frozen=True)
class Layout:
    """(batch, rows, n) in memory, each row's n one after another.

    Rows lie ``down`` apart and matrices ``between``. ``across``: what shares a grid is a row,
    otherwise a column. ``turned``: the tensor has its last two axes the other way round.
    """

    batch: int
    rows: int
    n: int
    between: int
    down: int
    across: bool
    turned: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return what kernels are told."""
        return self.batch, self.rows, self.n, self.between, self.down


def lay_out(x: Tensor, dims: Sequence[int]) -> Layout | None:
    """Return how a tensor with a grid over ``dims`` lies in memory, where kernels can read it."""
    if x.dtype not in _SUFFIX or not is_plain(x) or not 0 < x.numel() < FEW:
        return None
    if find_kernels(x.device) is None:
        return None
    axes = sorted({axis % x.ndim for axis in dims if x.shape[axis] > 1})
    if not axes or axes[-1] - axes[0] + 1 != len(axes):
        return None
    if x.ndim == 3 and len(axes) == 1 and axes[0] > 0:
        return _lay_out_matrices(x, axes[0] == 2)
    if not x.is_contiguous():
        return None
    batch, rows = prod(x.shape[: axes[0]]), prod(x.shape[axes[0] : axes[-1] + 1])
    n = prod(x.shape[axes[-1] + 1 :])
    if n == 1:
        return Layout(1, batch, rows, 0, rows, True)
    return Layout(batch, rows, n, rows * n, n, False)


def _lay_out_matrices(x: Tensor, last: bool) -> Layout | None:
    """Return the layout of matrices (batch, r, c), parts of larger ones too, by rows or columns."""
    for turned in (False, True):
        plain = x.mT if turned else x
        (batch, rows, n), (between, down, along) = plain.shape, plain.stride()
        if along == 1 or n == 1:
            return Layout(batch, rows, n, between, down, last != turned, turned)
    return None


def _is_repeated(x: Tensor) -> bool:
    """Return whether matrices (batch, r, c) are one and the same memory, over and over."""
    return x.ndim == 3 and x.shape[0] > 1 and x.stride(0) == 0


def exponents(x: Tensor, dims: Sequence[int]) -> Tensor | None:
    """Return the exponents of the grids, the axes of ``dims`` kept with length 1."""
    if _is_repeated(x) and 0 not in dims and -3 not in dims:
        once = exponents(x[:1], dims)
        return None if once is None else once.expand(x.shape[0], -1, -1)
    found = lay_out(x, dims)
    if found is None:
        return None
    kind, shape = _SUFFIX[x.dtype], _keep(x, dims)
    if found.across:
        tops = torch.empty(shape, dtype=torch.int64, device=x.device)
        work = row_work(found.batch * found.rows, found.n)
        launch(f"row_tops_{kind}", x.device, work, x, tops, *found.sizes)
        return tops
    tops = torch.zeros(shape, dtype=torch.int64, device=x.device)
    columns = found.batch * found.n
    work = column_work(columns, found.rows)
    launch(f"column_tops_{kind}", x.device, work, x, tops, *found.sizes)
    launch(f"exponents_{kind}", x.device, map_work(columns), tops, columns)
    return tops


def _keep(x: Tensor, dims: Sequence[int]) -> list[int]:
    """Return the shape with ``dims`` reduced to 1."""
    reduced = {axis % x.ndim for axis in dims}
    return [1 if axis in reduced else size for axis, size in enumerate(x.shape)]


def place(
    x: Tensor, tops: Tensor, bits: int, halves: bool = False, into: Tensor | None = None
) -> tuple[Tensor, Tensor | None] | None:
    """Return x as integers of the grids with these exponents; with ``halves`` upper and lower."""
    if into is None and _is_repeated(x) and _is_repeated(tops):
        once = place(x[:1], tops[:1], bits, halves)
        if once is None:
            return None
        q, low = (None if part is None else part.expand(x.shape) for part in once)
        assert q is not None
        return q, low
    dims = [axis for axis in range(x.ndim) if tops.shape[axis] == 1]
    found = lay_out(x, dims)
    if found is None:
        return None
    shape = [*x.shape[:-2], x.shape[-1], x.shape[-2]] if found.turned else x.shape
    if into is None:
        into = torch.empty(shape, dtype=torch.float64, device=x.device)
    q = into.view(shape)
    low = torch.empty_like(q) if halves else None
    name = f"place_{'rows' if found.across else 'columns'}_{_SUFFIX[x.dtype]}"
    work = row_work(found.batch * found.rows, found.n)
    launch(name, x.device, work, x, tops.contiguous(), q, low, *found.sizes, bits)
    if not found.turned:
        return q, low
    return q.mT, None if low is None else low.mT


def total(x: Tensor, dims: Sequence[int]) -> Tensor | None:
    """Return the sum over ``dims`` in float64, kept as axes; up to 2^17 addends."""
    found = lay_out(x, dims)
    if found is None or found.across or found.turned or not 1 < found.rows <= MOST:
        return None
    kind, columns = _SUFFIX[x.dtype], found.batch * found.n
    shape = _keep(x, dims)
    tops = torch.zeros(columns, dtype=torch.int64, device=x.device)
    sums = torch.zeros(shape, dtype=torch.float64, device=x.device)
    work = column_work(columns, found.rows)
    launch(f"column_tops_{kind}", x.device, work, x, tops, *found.sizes)
    launch(f"column_sums_{kind}", x.device, work, x, tops, sums, *found.sizes)
    launch(f"finish_{kind}", x.device, map_work(columns), sums, tops, columns)
    return sums


def add_chunk(product: Tensor, high: Tensor, low: Tensor) -> bool:
    """Add a chunk's product to the two parts of those before; say whether that was done."""
    if find_kernels(product.device) is None or not is_plain(product):
        return False
    size = product.numel()
    launch("add_chunk", product.device, map_work(size), product, high, low, size)
    return True


def join(
    high: Tensor, low: Tensor | None, left: Tensor, right: Tensor, inner: int = 0
) -> Tensor | None:
    """Return a product (batch, m, n) off its grids, in float32.

    With ``inner``, n is (samples, inner) and the result (samples, batch m, inner).
    """
    batch, m, n = high.shape
    if find_kernels(high.device) is None or not (is_plain(high) and high.is_contiguous()):
        return None
    if high.numel() >= FEW:
        return None
    left, right = left.contiguous(), right.contiguous()
    shape = (n // inner, batch * m, inner) if inner else (batch, m, n)
    out = torch.empty(shape, dtype=torch.float32, device=high.device)
    work = row_work(batch * m, n)
    launch("join", high.device, work, high, low, left, right, out, batch, m, n, inner)
    return out


def gather_taps(
    parts: tuple[Tensor, Tensor | None],
    tops: Sequence[Tensor],
    shape: Sequence[int],
    positions: Sequence[int],
    windows: Sequence[Sequence[int]],
    groups: int,
    chunks: int = 0,
    into: Tensor | None = None,
) -> Tensor | None:
    """Return a transposed convolution of ``shape`` (samples, channels, height, width), in float32.

    ``parts`` is the product (groups, channels in group x taps, samples x positions) on its grids,
    or its first (groups, ``chunks``, ...); ``windows`` are kernel, stride, padding and dilation,
    each for height and width.
    """
    high, low = parts
    if not (is_plain(high) and high.is_contiguous()):
        return None
    samples, channels, height, width = shape
    if into is None:
        into = torch.empty(tuple(shape), dtype=torch.float32, device=high.device)
    sizes = (chunks, groups, channels // groups, samples, height, width, *positions)
    flat = [number for pair in windows for number in pair]
    work = row_work(samples * channels, height * width)
    left, right = (each.contiguous() for each in tops)
    launch("gather_taps", high.device, work, high, low, left, right, into, *sizes, *flat)
    return into


__all__ = ["add_chunk", "exponents", "gather_taps", "is_ready", "join", "place", "total"]
