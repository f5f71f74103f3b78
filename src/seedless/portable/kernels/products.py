"""Matrix products on a CPU, from chunks of the summed axis whose products are exact.

Memory for integers and products is used again, and worked through in blocks: new memory costs a CPU
more than the arithmetic in it.
"""

import itertools
import math
import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable.kernels.launch import is_ready, launch, shape_rows
from seedless.portable.kernels.rounding_grids import gather_taps

MAX_BLOCK_ELEMENTS = 1 << 20  # of the products of chunks that are computed at a time
MAX_SCRATCH_ELEMENTS = 1 << 23  # of memory that is reused under one name: 64 MiB


class _Scratch(threading.local):
    """Each thread's own memory, by name."""

    def __init__(self) -> None:
        self.memory: dict[str, Tensor] = {}


_SCRATCH = _Scratch()


def get_scratch(name: str, shape: Sequence[int]) -> Tensor:
    """Return float64 memory on the CPU with any content, valid until the next call of this name."""
    size = math.prod(shape)
    if size > MAX_SCRATCH_ELEMENTS:
        return torch.empty(tuple(shape), dtype=torch.float64, device="cpu")
    memory = _SCRATCH.memory.get(name)
    if memory is None or memory.numel() < size:
        memory = _SCRATCH.memory[name] = torch.empty(size, dtype=torch.float64, device="cpu")
    return memory[:size].view(tuple(shape))


def multiply(
    left: Tensor, right: Tensor, exponents: Sequence[Tensor], chunk: int, inner: int = 0
) -> Tensor | None:
    """Return the product of (batch, m, k) and (batch, k, n) in float32, ``chunk`` of k at a time.

    With ``inner``, n is (samples, inner) and the result (samples, batch m, inner).
    """
    if not left.is_cpu or not is_ready(left, right):
        return None
    (batch, m, k), n = left.shape, right.shape[2]
    chunks = -(-k // chunk)
    shape = (n // inner, batch * m, inner) if inner else (batch, m, n)
    out = torch.empty(shape, dtype=torch.float32, device="cpu")
    # A block has all of the shorter side, and of the longer one as much as MAX_BLOCK_ELEMENTS hold.
    height = m if m < n else max(1, MAX_BLOCK_ELEMENTS // (batch * chunks * n))
    width = n if m >= n else max(1, MAX_BLOCK_ELEMENTS // (batch * chunks * m))
    p = q = None
    for row, column in itertools.product(range(0, m, height), range(0, n, width)):
        rows, columns = slice(row, min(row + height, m)), slice(column, min(column + width, n))
        of_rows, of_columns = exponents[0][:, rows], exponents[1][:, :, columns]
        # [Step 1] Round the block's operands to their grids, laid out chunk by chunk.
        if p is None or height < m:
            p = _round_in_chunks(left[:, rows], of_rows, True, chunks)
        if q is None or width < n:
            q = _round_in_chunks(right[:, :, columns], of_columns, False, chunks)
        if p is None or q is None:
            return None
        # [Step 2] Multiply all chunks at once, exactly.
        products = get_scratch("products", (batch * chunks, p.shape[1], q.shape[2]))
        torch.bmm(p, q, out=products)
        # [Step 3] Add the chunks exactly, scale, and round to float32 in place.
        arrays = (products, of_rows.contiguous(), of_columns.contiguous(), out)
        sizes = (batch, chunks, row, p.shape[1], m, column, q.shape[2], n, inner)
        launch("join_chunks", out.device, shape_rows(1, 1), *arrays, *sizes)
    return out


def convolve_transposed(
    filters: Tensor,
    rows: Tensor,
    exponents: Sequence[Tensor],
    chunk: int,
    shape: Sequence[int],
    positions: Sequence[int],
    windows: Sequence[Sequence[int]],
) -> Tensor | None:
    """Return `rounding_grids.gather_taps` of the product of (groups, m taps, k) and rows.

    ``rows`` are (groups, k, samples x positions); some samples are computed at a time.
    """
    if not rows.is_cpu or not is_ready(filters, rows):
        return None
    (groups, m, k), samples = filters.shape, shape[0]
    chunks, each = -(-k // chunk), rows.shape[2] // samples
    p = _round_in_chunks(filters, exponents[0], True, chunks)
    if p is None:
        return None
    out = torch.empty(tuple(shape), dtype=torch.float32, device="cpu")
    step = max(1, MAX_BLOCK_ELEMENTS // (groups * chunks * m * each))
    for first in range(0, samples, step):
        block = out[first : first + step]
        columns = slice(first * each, (first + len(block)) * each)
        of_columns = exponents[1][:, :, columns].contiguous()
        q = _round_in_chunks(rows[:, :, columns], of_columns, False, chunks)
        if q is None:
            return None
        products = get_scratch("products", (groups * chunks, m, q.shape[2]))
        torch.bmm(p, q, out=products)
        parts, both = (products, None), (exponents[0], of_columns)
        sizes = (len(block), *shape[1:])
        gather_taps(parts, both, sizes, positions, windows, groups, chunks, block)
    return out


def _round_in_chunks(x: Tensor, exponents: Tensor, last: bool, chunks: int) -> Tensor | None:
    """Return matrices on their grids as (batch x chunks, m, size), or (batch x chunks, size, n).

    ``last``: chunks are cut from the last axis, otherwise from the one before it.
    """
    transposed = x.stride(2) != 1 and x.shape[2] > 1
    plain = x.mT if transposed else x
    if plain.stride(2) != 1 and plain.shape[2] > 1:
        return None
    batch, height, width = plain.shape
    strides, exponents = plain.stride()[:2], exponents.contiguous()
    size = -(-x.shape[2 if last else 1] // chunks)
    name = "left" if last else "right"
    if last != transposed:  # the axis that is divided is contiguous in memory
        q = get_scratch(name, (batch * chunks, height, size))
        kernel, counts = "chunk_rows", [chunks, size]
    else:
        q = get_scratch(name, (batch * chunks, size, width))
        kernel, counts = "chunk_columns", [chunks * size]
    sizes = (batch, height, width, *strides, *counts)
    launch(kernel, x.device, shape_rows(1, 1), x, exponents, q, *sizes)
    return q.mT if transposed else q
