"""Grids, sums over columns, and what comes before and after a matrix product, as kernels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from seedless.portable.constants import MAX_EXACT_ADDENDS
from seedless.portable.kernels.launch import (
    find_kernels,
    is_plain,
    is_ready,
    launch,
    make_column_zeros,
    shape_columns,
    shape_map,
    shape_rows,
)

INDEX_LIMIT = 1 << 32  # kernels count elements in 32 bits
_SUFFIX = {torch.float32: "f32", torch.float64: "f64"}


@dataclass(frozen=True)
class Layout:
    """The memory of a tensor as matrices (batch, rows, n), the n values of a row contiguous.

    Attributes:
        matrix_stride: from one matrix to the next.
        row_stride: from one row to the next.
        by_row: whether the values of a row share a grid, otherwise those of a column.
        transposed: whether the tensor's own last two axes are (n, rows).
    """

    batch: int
    rows: int
    n: int
    matrix_stride: int
    row_stride: int
    by_row: bool
    transposed: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the arguments of kernels that describe it."""
        return self.batch, self.rows, self.n, self.matrix_stride, self.row_stride


def find_layout(x: Tensor, dims: Sequence[int]) -> Layout | None:
    """Return the layout of a tensor with a grid over ``dims``; None where kernels have none."""
    if x.dtype not in _SUFFIX or not is_plain(x) or not 0 < x.numel() < INDEX_LIMIT:
        return None
    if find_kernels(x.device) is None:
        return None
    axes = sorted({axis % x.ndim for axis in dims if x.shape[axis] > 1})
    if not axes or axes[-1] - axes[0] + 1 != len(axes):
        return None
    if x.ndim == 3 and len(axes) == 1 and axes[0] > 0:
        return _find_matrix_layout(x, axes[0] == 2)
    if not x.is_contiguous():
        return None
    batch, rows = prod(x.shape[: axes[0]]), prod(x.shape[axes[0] : axes[-1] + 1])
    n = prod(x.shape[axes[-1] + 1 :])
    if n == 1:
        return Layout(1, batch, rows, 0, rows, True)
    return Layout(batch, rows, n, rows * n, n, False)


def _find_matrix_layout(x: Tensor, last: bool) -> Layout | None:
    """Return the layout of matrices (batch, r, c), parts of larger ones too, by rows or columns."""
    for transposed in (False, True):
        plain = x.mT if transposed else x
        (batch, rows, n), (matrix, row, along) = plain.shape, plain.stride()
        if along == 1 or n == 1:
            return Layout(batch, rows, n, matrix, row, last != transposed, transposed)
    return None


def _is_repeated(x: Tensor) -> bool:
    """Return whether all matrices (batch, r, c) are the same memory."""
    return x.ndim == 3 and x.shape[0] > 1 and x.stride(0) == 0


def find_exponents(x: Tensor, dims: Sequence[int]) -> Tensor | None:
    """Return the exponents of the grids, with length 1 for the axes of ``dims``."""
    if _is_repeated(x) and 0 not in dims and -3 not in dims:
        once = find_exponents(x[:1], dims)
        return None if once is None else once.expand(x.shape[0], -1, -1)
    layout = find_layout(x, dims)
    if layout is None:
        return None
    kind = _SUFFIX[x.dtype]
    make = torch.empty if layout.by_row else torch.zeros  # columns are found by maxima
    exponents = make(_reduce_shape(x, dims), dtype=torch.int64, device=x.device)
    if layout.by_row:
        work = shape_rows(layout.batch * layout.rows, layout.n)
        launch(f"row_exponents_{kind}", x.device, work, x, exponents, *layout.sizes)
        return exponents
    columns = layout.batch * layout.n
    work = shape_columns(columns, layout.rows)
    launch(f"column_maxima_{kind}", x.device, work, x, exponents, *layout.sizes)
    launch(f"exponents_{kind}", x.device, shape_map(columns), exponents, columns)
    return exponents


def _reduce_shape(x: Tensor, dims: Sequence[int]) -> list[int]:
    """Return the shape with ``dims`` reduced to 1."""
    reduced = {axis % x.ndim for axis in dims}
    return [1 if axis in reduced else size for axis, size in enumerate(x.shape)]


def round_to_grid(
    x: Tensor, exponents: Tensor, bits: int, in_halves: bool = False, memory: Tensor | None = None
) -> tuple[Tensor, Tensor | None] | None:
    """Return x as integers on its grids, and None; ``in_halves``: their upper and lower part."""
    if memory is None and _is_repeated(x) and _is_repeated(exponents):
        once = round_to_grid(x[:1], exponents[:1], bits, in_halves)
        if once is None:
            return None
        q, low = (None if part is None else part.expand(x.shape) for part in once)
        assert q is not None
        return q, low
    dims = [axis for axis in range(x.ndim) if exponents.shape[axis] == 1]
    layout = find_layout(x, dims)
    if layout is None:
        return None
    shape = [*x.shape[:-2], x.shape[-1], x.shape[-2]] if layout.transposed else x.shape
    if memory is None:
        memory = torch.empty(shape, dtype=torch.float64, device=x.device)
    q = memory.view(shape)
    low = torch.empty_like(q) if in_halves else None
    name = f"round_{'rows' if layout.by_row else 'columns'}_{_SUFFIX[x.dtype]}"
    work = shape_rows(layout.batch * layout.rows, layout.n)
    arrays = (x, exponents.contiguous(), q, low)
    launch(name, x.device, work, *arrays, *layout.sizes, bits)
    if not layout.transposed:
        return q, low
    return q.mT, None if low is None else low.mT


def total(x: Tensor, dims: Sequence[int], rounded: bool = False) -> Tensor | None:
    """Return the sum over ``dims`` in float64, with length 1 there; up to 2^17 addends.

    ``rounded``: in float32.
    """
    layout = find_layout(x, dims)
    if layout is None or layout.by_row or layout.transposed:
        return None
    if not 1 < layout.rows <= MAX_EXACT_ADDENDS:
        return None
    kind, columns = _SUFFIX[x.dtype], layout.batch * layout.n
    maxima, sums = make_column_zeros(columns, x.device)
    work = shape_columns(columns, layout.rows)
    launch(f"column_maxima_{kind}", x.device, work, x, maxima, *layout.sizes)
    launch(f"column_sums_{kind}", x.device, work, x, maxima, sums, *layout.sizes)
    out = torch.empty(columns, dtype=torch.float32, device=x.device) if rounded else None
    launch(f"scale_sums_{kind}", x.device, shape_map(columns), sums, maxima, out, columns)
    return (sums if out is None else out).view(_reduce_shape(x, dims))


def add_chunk(product: Tensor, high: Tensor, low: Tensor) -> bool:
    """Add a chunk's product to the two parts of those before; return whether that was done."""
    if find_kernels(product.device) is None or not is_plain(product):
        return False
    size = product.numel()
    launch("add_chunk", product.device, shape_map(size), product, high, low, size)
    return True


def join_parts(
    high: Tensor, low: Tensor | None, left: Tensor, right: Tensor, inner: int = 0
) -> Tensor | None:
    """Return a product (batch, m, n) scaled from its grids and rounded to float32.

    With ``inner``, n is (samples, inner) and the result (samples, batch m, inner).
    """
    batch, m, n = high.shape
    if find_kernels(high.device) is None or not (is_plain(high) and high.is_contiguous()):
        return None
    if high.numel() >= INDEX_LIMIT:
        return None
    left, right = left.contiguous(), right.contiguous()
    shape = (n // inner, batch * m, inner) if inner else (batch, m, n)
    out = torch.empty(shape, dtype=torch.float32, device=high.device)
    work = shape_rows(batch * m, n)
    launch("join_parts", high.device, work, high, low, left, right, out, batch, m, n, inner)
    return out


def gather_windows(
    x: Tensor,
    positions: Sequence[int],
    windows: Sequence[Sequence[int]],
    make_memory: Callable[[Sequence[int]], Tensor] | None = None,
) -> Tensor | None:
    """Return windows of (samples, channels, height, width) as (channels, taps, samples, positions).

    ``windows`` are kernel, stride, padding and dilation, each for height and width;
    ``make_memory`` returns float32 memory of a shape, None: new memory is used.
    """
    largest = max(x.numel(), prod(positions)) * prod(windows[0])
    if not is_ready(x) or prod(positions) == 0 or largest >= INDEX_LIMIT:
        return None
    (samples, channels, *_), plane = x.shape, prod(positions)
    shape = (channels, prod(windows[0]), samples, plane)
    if make_memory is None:
        out = torch.empty(shape, dtype=torch.float32, device=x.device)
    else:
        out = make_memory(shape)
    flat = [number for pair in windows for number in pair]
    work = shape_rows(prod(shape[:3]), plane)
    launch("gather_windows", x.device, work, x, out, *x.shape, *x.stride(), *positions, *flat)
    return out


def gather_taps(
    parts: tuple[Tensor, Tensor | None],
    exponents: Sequence[Tensor] | None,
    shape: Sequence[int],
    positions: Sequence[int],
    windows: Sequence[Sequence[int]],
    groups: int,
    memory: Tensor | None = None,
) -> Tensor | None:
    """Return a transposed convolution of ``shape`` (samples, channels, height, width), in float32.

    ``parts`` is the product (groups, channels in group x taps, samples x positions) on its grids,
    or with no exponents scaled from them; ``windows`` are kernel, stride, padding and dilation,
    each for height and width.
    """
    high, low = parts
    if not (is_plain(high) and high.is_contiguous()):
        return None
    samples, channels, height, width = shape
    if memory is None:
        memory = torch.empty(tuple(shape), dtype=torch.float32, device=high.device)
    sizes = (groups, channels // groups, samples, height, width, *positions)
    flat = [number for pair in windows for number in pair]
    work = shape_rows(samples * channels, height * width)
    tops = (None, None) if exponents is None else [each.contiguous() for each in exponents]
    arrays = (high, low, *tops, memory)
    launch("gather_taps", high.device, work, *arrays, *sizes, *flat)
    return memory
