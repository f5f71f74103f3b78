"""Matrix products that no order, blocking, thread count or fused multiply-add can change.

Law: y[m, n] = round64(sum over k of p[m, k] q[k, n]) s[m] t[n], where p, s are the left rows and
q, t the right columns on their grids of 23 bits. A product of two such integers is below 2^46, so
float64 adds 128 of them exactly, in any order and with any fusing, and a library's own float64
product does the work. Longer sums are cut into chunks of 128, whose integers are added exactly.

The error of an element is at most k 2^-22 max|row| max|column| (and one rounding): of float32's own
size where large meets large. Where a row's large values meet only a column's tiny ones and the
other way round, by factors beyond 2^12 or so, float32 itself keeps more.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from seedless.numerics.portable.grid import split
from seedless.numerics.portable.sums import Operand, Parts, Sum, evaluate

BITS = 23
CHUNK = 1 << (53 - 2 * BITS)
_BLOCK = 1 << 22  # elements of chunk products held at a time


def multiply(left: Tensor, right: Tensor, chunk: int = CHUNK) -> Tensor:
    """(batch, m, k) x (batch, k, n) -> float64 (batch, m, n). ``chunk`` cannot change the result.

    Each element is a function of its own row and column alone: a batch's size cannot show.
    """
    if 0 in (*left.shape, right.shape[2]):
        shape = (left.shape[0], left.shape[1], right.shape[2])
        return torch.zeros(shape, dtype=torch.float64, device=left.device)
    operands = Operand(left, [2], BITS), Operand(right, [1], BITS)
    shape = (left.shape[0], left.shape[1], right.shape[2])
    add = partial(multiply_integers, chunk=chunk)
    return evaluate(Sum("product", operands, shape, left.shape[2], chunk, add))


def multiply_integers(p: Tensor, q: Tensor, chunk: int = CHUNK) -> Parts:
    """Return the exact product of integers of at most 23 bits held in float64, in two parts."""
    length = p.shape[2]
    if length <= chunk:
        return torch.bmm(p, q), None
    chunks = -(-length // chunk)
    batch, rows, columns = p.shape[0], p.shape[1], q.shape[2]
    room = max(1, _BLOCK // (batch * rows * columns))
    high = low = None
    for start in range(0, chunks, room):
        stop = min(start + room, chunks)
        one = _cut(p[:, :, start * chunk : stop * chunk], stop - start, chunk)
        two = _cut(q[:, start * chunk : stop * chunk].transpose(1, 2), stop - start, chunk)
        parts = torch.bmm(one, two.transpose(1, 2)).view(batch, stop - start, rows, columns)
        upper, lower = (part.sum(1) for part in split(parts))
        high = upper if high is None else high.add_(upper)
        low = lower if low is None else low.add_(lower)
    assert high is not None
    return high, low


def _cut(rows: Tensor, chunks: int, chunk: int) -> Tensor:
    """(batch, m, k) -> (batch x chunks, m, chunk), the last chunk filled with zeros."""
    batch, count, length = rows.shape
    if length < chunks * chunk:
        rows = F.pad(rows, (0, chunks * chunk - length))
    return rows.reshape(batch, count, chunks, chunk).transpose(1, 2).reshape(-1, count, chunk)
