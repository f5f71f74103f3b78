"""Sums and matrix products in float64 that have the same bits on every machine.

Two laws are used:
- A sum that is rounded once, from its exact value, does not depend on the order of its terms.
- Float64 adds integers without rounding while every partial sum is below 2^53.

Sources: Rump, Ogita and Oishi, "Accurate floating-point summation", SIAM J. Sci. Comput. 31, 2008
(extraction of leading bits); Ozaki et al., "Error-free transformations of matrix multiplication",
Numer. Algorithms 59, 2012 (products of slices).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import NumericsError

Float64 = NDArray[np.float64]
_BLOCK_ELEMENTS = 1 << 15  # elements summed at a time, so that they stay in the CPU's cache
_SLICES = 3  # slices of a row in `exact_product`


def exact_sum(values: NDArray[Any]) -> float:
    """Return the sum of all values, rounded once from its exact value.

    Example:
        >>> exact_sum(np.array([1e16, 1.0, -1e16]))
        1.0
    """
    return float(exact_row_sums(values.reshape(1, -1))[0])


def exact_weighted_sum(values: Float64, counts: NDArray[np.int64]) -> float:
    """Return the sum of values[i] * counts[i], rounded once from its exact value.

    It is `exact_sum` of an array that holds value i ``counts[i]`` times. Counts are below 2^35 and
    values are 0 or above 1e-280 in size.

    Example:
        >>> exact_weighted_sum(np.array([0.1, -0.5]), np.array([3, 1]))
        -0.19999999999999998
    """
    # [Step 1] A value is an integer of 53 bits times 2^e: cut it into three pieces of 18 bits.
    fractions, exponents = np.frexp(values)
    rest = np.ldexp(fractions, 18)
    products = []
    for piece in range(1, 4):
        leading = np.trunc(rest)
        # [Step 2] A piece times a count is below 2^53: float64 holds it without rounding.
        products.append(np.ldexp(leading * counts, exponents - 18 * piece))
        rest = np.ldexp(rest - leading, 18)
    # [Step 3] Add these products with a single rounding.
    return exact_sum(np.concatenate(products))


def exact_row_sums(matrix: NDArray[Any]) -> Float64:
    """Return the sum of each row, rounded once from its exact value: (n, m) -> float64 (n,).

    Integers and booleans are summed in int64, or in Python's integers where int64 could overflow.
    Other values must be finite and below 1e290 in size.
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
    step = max(1, _BLOCK_ELEMENTS // columns)
    blocks = [_sum_block(matrix[start : start + step]) for start in range(0, rows, step)]
    return np.concatenate(blocks) if blocks else np.zeros(0)


def _sum_block(block: NDArray[Any]) -> Float64:
    """Return the exactly rounded row sums of a few rows, by Rump's extraction of leading bits."""
    rest = block.astype(np.float64)  # always a copy: the remainders overwrite it
    headroom = (rest.shape[1] + 1).bit_length()
    partial_sums: list[Float64] = []
    largest = np.abs(rest).max(axis=1)
    while largest.any():
        # [Step 1] For each row take a power of two s above columns * max|x|.
        exponents = np.frexp(largest)[1] + headroom
        if exponents.max() > 1023 or not np.isfinite(largest).all():
            raise NumericsError("expected finite values below 1e290 for an exact sum; got others")
        power = np.ldexp(1.0, exponents)[:, None]
        # [Step 2] (s + x) - s is x rounded to a multiple of s 2^-52. The sum of these multiples is
        # below s in size, so float64 adds them without rounding, in any order.
        leading = (power + rest) - power
        partial_sums.append(leading.sum(axis=1))
        # [Step 3] The remainder is exact. Repeat until nothing remains.
        rest -= leading
        largest = np.abs(rest).max(axis=1)
    if not partial_sums:
        return np.zeros(len(rest))
    # [Step 4] Add the few partial sums of each row with a single rounding.
    return np.array([math.fsum(parts) for parts in np.stack(partial_sums, axis=1).tolist()])


def exact_gram(rows: NDArray[Any]) -> Float64:
    """Return rows @ rows.T, float64 (n, n) of (n, m), as `exact_product` computes it."""
    return exact_product(rows, rows)


def exact_product(left: NDArray[Any], right: NDArray[Any]) -> Float64:
    """Return left @ right.T, float64 (n, k) of (n, m) and (k, m): the same bits on every machine.

    The error is about 1e-17 of the product of the two rows' norms.
    """
    # [Step 1] Cut each row into slices of integers of b bits, 2 b + log2(columns) <= 53.
    bits = (53 - (left.shape[1] - 1).bit_length()) // 2
    slices, exponents = _slice_rows(left, bits)
    others, other_exponents = (slices, exponents) if right is left else _slice_rows(right, bits)
    # [Step 2] Multiply slices: float64 adds these integers exactly, whatever the BLAS library's
    # order, threads or fused operations. Only the elementwise sums of the products round, and their
    # order is fixed: smallest first.
    product = np.zeros((len(left), len(right)))
    for first, second in ((0, 2), (1, 1), (0, 1), (0, 0)):
        exact = slices[first] @ others[second].T
        if first != second:
            exact = exact + (exact.T if right is left else slices[second] @ others[first].T)
        product += np.ldexp(exact, -bits * (first + second + 2))
    # [Step 3] Undo the scaling of the rows.
    scaled: Float64 = np.ldexp(product, exponents[:, None] + other_exponents[None, :])
    return scaled


def _slice_rows(rows: NDArray[Any], bits: int) -> tuple[list[Float64], NDArray[np.int32]]:
    """Return slices of integers, and the exponent of each row.

    A row is the sum of its slices times 2^-bits, 2^-2bits, ..., times 2^exponent, up to a remainder
    below the last slice.
    """
    rest = np.asarray(rows, dtype=np.float64)
    exponents = np.frexp(np.abs(rest).max(axis=1))[1]
    rest = np.ldexp(rest, -exponents[:, None])  # the largest entry of a row is below 1
    slices: list[Float64] = []
    for _ in range(_SLICES):
        rest = np.ldexp(rest, bits)
        slices.append(np.rint(rest))
        rest = rest - slices[-1]
    return slices, exponents
