"""Matrix products on a CPU, in chunks of the summed axis whose products are exact; as in `ops`.

The memory for integers and products is lent, and worked through in blocks: new memory costs a CPU
more than the arithmetic in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.kernels.grids import gather_taps
from seedless.portable.kernels.launch import is_ready, launch, row_work
from seedless.portable.kernels.scratch_memory import borrow

ROOM = 1 << 20  # elements of the products of chunks that are made at a time


def multiply(
    left: Tensor, right: Tensor, tops: Sequence[Tensor], most: int, inner: int = 0
) -> Tensor | None:
    """Return the product of (batch, m, k) and (batch, k, n) in float32, ``most`` of k a chunk.

    With ``inner``, n is (samples, inner) and the result (samples, batch m, inner).
    """
    if not left.is_cpu or not is_ready(left, right):
        return None
    (batch, m, k), n = left.shape, right.shape[2]
    chunks = -(-k // most)
    shape = (n // inner, batch * m, inner) if inner else (batch, m, n)
    out = torch.empty(shape, dtype=torch.float32, device="cpu")
    # All of the shorter side, and of the longer one as much as there is room for.
    high = m if m < n else max(1, ROOM // (batch * chunks * n))
    wide = n if m >= n else max(1, ROOM // (batch * chunks * m))
    p = q = None
    for row, column in itertools.product(range(0, m, high), range(0, n, wide)):
        rows, columns = slice(row, min(row + high, m)), slice(column, min(column + wide, n))
        left_tops, right_tops = tops[0][:, rows], tops[1][:, :, columns]
        if p is None or high < m:
            p = cut(left[:, rows], left_tops, True, chunks)
        if q is None or wide < n:
            q = cut(right[:, :, columns], right_tops, False, chunks)
        if p is None or q is None:
            return None
        products = borrow("products", (batch * chunks, p.shape[1], q.shape[2]))
        torch.bmm(p, q, out=products)
        given = (left_tops.contiguous(), right_tops.contiguous(), out, batch, chunks)
        sizes = (row, p.shape[1], m, column, q.shape[2], n, inner)
        launch("join_chunks", out.device, row_work(1, 1), products, *given, *sizes)
    return out


def convolve_transposed(
    filters: Tensor,
    rows: Tensor,
    tops: Sequence[Tensor],
    most: int,
    shape: Sequence[int],
    positions: Sequence[int],
    windows: Sequence[Sequence[int]],
) -> Tensor | None:
    """Return what `grids.gather_taps` makes of the product of (groups, m taps, k) and rows.

    ``rows`` are (groups, k, samples x positions); some samples are computed at a time.
    """
    if not rows.is_cpu or not is_ready(filters, rows):
        return None
    (groups, m, k), samples = filters.shape, shape[0]
    chunks, each = -(-k // most), rows.shape[2] // samples
    p = cut(filters, tops[0], True, chunks)
    if p is None:
        return None
    out = torch.empty(tuple(shape), dtype=torch.float32, device="cpu")
    step = max(1, ROOM // (groups * chunks * m * each))
    for first in range(0, samples, step):
        block = out[first : first + step]
        columns = slice(first * each, (first + len(block)) * each)
        own = tops[1][:, :, columns].contiguous()
        q = cut(rows[:, :, columns], own, False, chunks)
        if q is None:
            return None
        products = borrow("products", (groups * chunks, m, q.shape[2]))
        torch.bmm(p, q, out=products)
        sizes = (len(block), *shape[1:])
        gather_taps(
            (products, None), (tops[0], own), sizes, positions, windows, groups, chunks, block
        )
    return out


def cut(x: Tensor, tops: Tensor, last: bool, chunks: int) -> Tensor | None:
    """Return matrices on their grids as (batch x chunks, m, size), or not ``last``, (..., size, n).

    ``last``: chunks are cut from the last axis, otherwise from the one before it.
    """
    turned = x.stride(2) != 1 and x.shape[2] > 1
    plain = x.mT if turned else x
    if plain.stride(2) != 1 and plain.shape[2] > 1:
        return None
    batch, high, wide = plain.shape
    strides, tops = plain.stride()[:2], tops.contiguous()
    size = -(-x.shape[2 if last else 1] // chunks)
    name = "left" if last else "right"
    if last != turned:  # the chunked axis lies along the memory
        q = borrow(name, (batch * chunks, high, size))
        given = (x, tops, q, batch, high, wide, *strides, chunks, size)
        launch("chunk_rows", x.device, row_work(1, 1), *given)
    else:
        q = borrow(name, (batch * chunks, size, wide))
        given = (x, tops, q, batch, high, wide, *strides, chunks * size)
        launch("chunk_columns", x.device, row_work(1, 1), *given)
    return q.mT if turned else q
