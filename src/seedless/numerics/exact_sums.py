"""Sums and Gram matrices in float64 that are the same on every machine.

Sums are exactly rounded, so their bits do not depend on the order of summation. Gram matrices are
computed from integers small enough for float64 to add them without rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import NumericsError

Float64 = NDArray[np.float64]
_BLOCK = 1 << 15  # elements summed at a time: they stay in the cache


def exact_sum(values: NDArray[Any]) -> float:
    """Return the exactly rounded sum of all values."""
    return float(exact_row_sums(values.reshape(1, -1))[0])


def exact_row_sums(matrix: NDArray[Any]) -> Float64:
    """Return the exactly rounded sum of each row: (n, m) -> float64 (n,).

    Rump's extraction: with s a power of two above m * max|x|, q = (s + x) - s keeps the leading
    bits of x on a grid so coarse that float64 adds all q of a row without rounding, in any order.
    The remainders x - q are exact; they are extracted again until nothing remains. The few partial
    sums are added by `math.fsum`.
    """
    rows, columns = matrix.shape
    if columns == 0:
        return np.zeros(rows)
    if matrix.dtype.kind in "biu":
        bound = max(abs(int(matrix.min())), abs(int(matrix.max()))) * columns if rows else 0
        if bound < 1 << 63:
            sums: Float64 = matrix.sum(axis=1, dtype=np.int64).astype(np.float64)
            return sums
        return np.array([float(sum(row.tolist())) for row in matrix])
    step = max(1, _BLOCK // columns)
    blocks = [_sum_block(matrix[start : start + step]) for start in range(0, rows, step)]
    return np.concatenate(blocks) if blocks else np.zeros(0)


def _sum_block(block: NDArray[Any]) -> Float64:
    rest = block.astype(np.float64)  # always a copy: the remainders overwrite it
    headroom = (rest.shape[1] + 1).bit_length()
    partial: list[Float64] = []
    top = np.abs(rest).max(axis=1)
    while top.any():
        exponents = np.frexp(top)[1] + headroom
        if exponents.max() > 1023 or not np.isfinite(top).all():
            raise NumericsError("exact sums need finite values below 1e290")
        shield = np.ldexp(1.0, exponents)[:, None]
        kept = (shield + rest) - shield
        partial.append(kept.sum(axis=1))
        rest -= kept
        top = np.abs(rest).max(axis=1)
    if not partial:
        return np.zeros(len(rest))
    return np.array([math.fsum(parts) for parts in np.stack(partial, axis=1).tolist()])


def exact_gram(rows: NDArray[Any]) -> Float64:
    """Return rows @ rows.T to about 1e-17 of the rows' norms, the same bits on every machine.

    Each row is cut into three slices of integers of b bits with 2 b + log2(columns) <= 53 (Ozaki's
    scheme). Float64 then adds the products of slices exactly whatever the library's order, threads
    or fused operations, and only elementwise operations in a fixed order round.
    """
    rest = np.asarray(rows, dtype=np.float64)
    columns = rest.shape[1]
    bits = (53 - (columns - 1).bit_length()) // 2
    exponents = np.frexp(np.abs(rest).max(axis=1))[1]
    rest = np.ldexp(rest, -exponents[:, None])
    slices: list[Float64] = []
    for _ in range(3):
        rest = np.ldexp(rest, bits)
        slices.append(np.rint(rest))
        rest = rest - slices[-1]
    product = np.zeros((len(rest), len(rest)))
    for first, second in ((0, 2), (1, 1), (0, 1), (0, 0)):  # smallest first
        exact = slices[first] @ slices[second].T
        if first != second:
            exact = exact + exact.T
        product += np.ldexp(exact, -bits * (first + second + 2))
    scaled: Float64 = np.ldexp(product, exponents[:, None] + exponents[None, :])
    return scaled
