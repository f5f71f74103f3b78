"""A matrix product as two kernels of a GPU: c/fused_product.c.

The first finds the exponents of both operands' grids, the second multiplies. Operands are read as
they are, with any strides. Where a result has too few elements to occupy the device, the summed
axis is cut into parts and a third kernel adds their integers.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from seedless.portable.context import CONTEXT
from seedless.portable.kernels.launch import (
    LaunchShape,
    find_kernels,
    is_ready,
    launch,
    shape_map,
)

TILE_SIDE = 64  # rows and columns of the result that a block computes
TILE_THREADS = 128
WANTED_BLOCKS = 264  # two for each multiprocessor of an H200; the choice changes time alone
MIN_PART = 256  # of the summed axis: shorter parts cost more than they save
MAX_PART = 1 << 16  # so many products of 46 bits stay below 2^62
LINE_WARPS = 8  # of a block that finds exponents, as in fused_product.c
MAX_LINE_PARTS = 32
MAX_BLOCKS = 1 << 31  # that a GPU can launch in x


@dataclass(frozen=True)
class Lines:
    """An operand as the kernels read it: its rows, or columns, each with an exponent.

    Attributes:
        values: (batch, lines, length), float32 with any strides; one matrix where all are the same.
        parts: of the length, whose exponents are found apart.
        blocks: of threads that find them.
    """

    values: Tensor
    parts: int
    blocks: int

    @property
    def matrix_step(self) -> int:
        """Return how far one matrix's exponents are from the next one's: 0 where all are one."""
        return self.values.shape[1] if self.values.shape[0] > 1 else 0


def describe_lines(values: Tensor) -> Lines:
    """Return an operand (batch, lines, length) with as many parts as occupy the device."""
    if values.stride(0) == 0:
        values = values[:1]
    batch, lines, length = values.shape
    is_contiguous = values.stride(2) == 1
    groups = batch * -(-lines // (LINE_WARPS if is_contiguous else 32))
    longest = 512 if is_contiguous else 128  # elements of a part from which dividing it is useful
    parts = max(1, min(4 * WANTED_BLOCKS // groups, length // longest, MAX_LINE_PARTS))
    return Lines(values, parts, groups * parts)


def multiply(
    left: Tensor, right: Tensor, inner: int = 0, bias: Tensor | None = None
) -> Tensor | None:
    """Return the product of (batch, m, k) and (batch, k, n) in float32; None: no such kernels.

    With ``inner``, n is (samples, inner) and the result (samples, batch m, inner). ``bias``, (n,),
    is added to the rounded product.
    """
    if not _is_used(left, right) or not is_ready(left, bias):
        return None
    (batch, m, _), n = left.shape, right.shape[2]
    shape = (n // inner, batch * m, inner) if inner else (batch, m, n)
    out = torch.empty(shape, dtype=torch.float32, device=left.device)
    _launch(left, right, bias, out, None, inner)
    return out


def multiply_in_float64(left: Tensor, right: Tensor) -> Tensor | None:
    """Return the same product (batch, m, n), scaled from its grids but not rounded to float32."""
    if not _is_used(left, right):
        return None
    shape = (left.shape[0], left.shape[1], right.shape[2])
    whole = torch.empty(shape, dtype=torch.float64, device=left.device)
    _launch(left, right, None, None, whole, 0)
    return whole


def _is_used(left: Tensor, right: Tensor) -> bool:
    """Return whether the device has the kernels, and this product may use them."""
    if not (CONTEXT.fuses_products and CONTEXT.multiplies_in_float64(left.device)):
        return False
    if not is_ready(left, right):
        return False
    tiles = left.shape[0] * count_tiles(left.shape[1]) * count_tiles(right.shape[2])
    return has_kernels(left.device) and tiles < MAX_BLOCKS


def has_kernels(device: torch.device) -> bool:
    """Return whether products are fused on a device: a GPU with float64 units for matrices."""
    kernels = find_kernels(device)
    return kernels is not None and kernels.multiplies_tiles


def count_tiles(size: int) -> int:
    """Return how many tiles cover so many rows or columns."""
    return -(-size // TILE_SIDE)


def plan_parts(tiles: int, length: int) -> tuple[int, int]:
    """Return the number of parts of the summed axis, and the length of each.

    Example:
        >>> plan_parts(tiles=1000, length=512)
        (1, 512)
        >>> plan_parts(tiles=3, length=8064)
        (30, 272)
    """
    wanted = min(WANTED_BLOCKS // tiles, length // MIN_PART)
    wanted = max(1, wanted, -(-length // MAX_PART))
    part = -(-length // wanted)
    part = -(-part // 16) * 16 if wanted > 1 else part
    return -(-length // part), part


def _launch(
    left: Tensor,
    right: Tensor,
    bias: Tensor | None,
    out: Tensor | None,
    whole: Tensor | None,
    inner: int,
) -> None:
    """Multiply into ``out`` or ``whole``."""
    (batch, m, length), n, device = left.shape, right.shape[2], left.device
    # [Step 1] Find the exponents of both operands, part by part, in one kernel.
    rows, columns = describe_lines(left), describe_lines(right.mT)
    found = []
    for lines in (rows, columns):
        count = lines.values.shape[0] * lines.values.shape[1]
        found.append(torch.empty((lines.parts + 1, count), dtype=torch.int64, device=device))
    of_rows, of_columns = found
    x, y = rows.values, columns.values
    first = (x, of_rows, *x.shape, *x.stride(), rows.parts)
    second = (y, of_columns, *y.shape[:2], y.stride(0), y.stride(2), y.stride(1), columns.parts)
    work = LaunchShape(rows.blocks + columns.blocks, 1, 32, LINE_WARPS)
    launch("product_exponents", device, work, *first, *second, rows.blocks)
    # [Step 2] Multiply; the last row of the exponents takes the largest of each line's parts.
    tiles = batch * count_tiles(m) * count_tiles(n)
    splits, part = plan_parts(tiles, length)
    sums = None
    if splits > 1:
        sums = torch.empty((splits, batch, m, n), dtype=torch.int64, device=device)
    tops = (of_rows[-1], of_columns[-1])
    steps = (rows.matrix_step, columns.matrix_step)
    targets = (bias, out, whole, None) if sums is None else (None, None, None, sums)
    sizes = (splits, part, batch, m, n, length, inner)
    counts = (
        *(rows.parts, of_rows.shape[1], steps[0]),
        *(columns.parts, of_columns.shape[1], steps[1]),
    )
    work = LaunchShape(tiles * splits, 1, TILE_THREADS, 1)
    arrays = (left, right, of_rows, of_columns, *tops, *targets)
    launch("multiply_f32", device, work, *arrays, *sizes, *counts, *left.stride(), *right.stride())
    # [Step 3] Add the sums of all parts.
    if sums is not None:
        work = shape_map(sums[0].numel())
        last = (splits, batch, m, n, inner, *steps)
        launch("join_splits", device, work, sums, *tops, bias, out, whole, *last)
