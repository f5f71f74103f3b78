"""Orthogonal bases in which each entry is the float64 nearest to its real value.

A basis of size N is an N x N matrix, row i being basis vector i. A layer needs only its upper left
corner, so each function returns ``rows`` x ``columns`` entries, as a table and positions in it.
Phases are integers modulo the period, and amplitude and cosine are rounded together, so entries
that are equal as real numbers are equal bit for bit.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from seedless.core.checks import check_integer
from seedless.core.errors import InitError
from seedless.core.registry import choose
from seedless.init.tabled_matrix import TabledMatrix
from seedless.numerics.correct_rounding import rounded_cosines, rounded_sqrt

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Corner = Callable[[int, int, int], TabledMatrix]


def dct(size: int, rows: int, columns: int) -> TabledMatrix:
    """Return the DCT-II: a_i cos(pi i (2j+1) / 2N), a_0 = sqrt(1/N), else sqrt(2/N)."""
    return dct_entries(size, np.arange(rows), np.arange(columns))


def dct_entries(size: int, i: Int64, j: Int64) -> TabledMatrix:
    """Return the entries of the DCT-II in rows ``i`` (n,) and columns ``j`` (m,): (n, m)."""
    constant = 4 * size  # the place of the first row's entries, behind those of the phases
    table = np.append(_cosine_table(size, 2 * size, 2), rounded_sqrt(Fraction(1, size)))

    def find_positions(rows: Int64) -> Int64:
        positions: Int64 = i[rows, None] * (2 * j + 1) % (4 * size)
        positions[i[rows] == 0] = constant
        return positions

    return TabledMatrix(len(i), len(j), table, find_positions)


def sinusoidal(size: int, rows: int, columns: int) -> TabledMatrix:
    """Return the DST-II: b_i sin(pi (i+1) (2j+1) / 2N), b = sqrt(2/N), last sqrt(1/N)."""
    j = np.arange(columns)
    last = rounded_sqrt(Fraction(1, size))
    table = np.append(_cosine_table(size, 2 * size, 2), [last, -last])

    def find_positions(i: Int64) -> Int64:
        phases = size - (i[:, None] + 1) * (2 * j + 1)  # sin t = cos(pi/2 - t)
        positions: Int64 = phases % (4 * size)
        positions[i == size - 1] = 4 * size + j % 2
        return positions

    return TabledMatrix(rows, columns, table, find_positions)


def hartley(size: int, rows: int, columns: int) -> TabledMatrix:
    """Return (cos t + sin t) / sqrt(N), t = 2 pi i j / N, computed as sqrt(2/N) cos(t - pi/4)."""
    j = np.arange(columns)
    return TabledMatrix(rows, columns, _hartley_table(size), lambda i: i[:, None] * j % size)


def hadamard(size: int, rows: int, columns: int) -> TabledMatrix:
    """Return the N x N corner of Sylvester's +-1 matrix of the next power of two, over sqrt(N).

    Orthonormal only when N is a power of two; `Plan` reports the error of every layer.
    """
    j = np.arange(columns)
    table = np.array([1.0, -1.0]) * rounded_sqrt(Fraction(1, size))
    return TabledMatrix(rows, columns, table, lambda i: _is_negative(i[:, None], j))


def walsh(size: int, rows: int, columns: int) -> TabledMatrix:
    """Return the Kronecker product of the 2^a Hadamard matrix and the m-point DCT-II.

    N = 2^a m with m odd; the result is orthonormal for every N.
    """
    power = size & -size
    odd = size // power
    j = np.arange(columns)
    cosines = np.append(
        _cosine_table(odd, 2 * odd, Fraction(2, power)), rounded_sqrt(Fraction(1, size))
    )
    constant = 4 * odd

    def find_positions(i: Int64) -> Int64:
        positions: Int64 = (i % odd)[:, None] * (2 * (j % odd) + 1) % (4 * odd)
        positions[i % odd == 0] = constant
        return positions + len(cosines) * _is_negative((i // odd)[:, None], j // odd)

    table = np.append(cosines, -cosines) + 0.0  # +0.0: no negative zeros
    return TabledMatrix(rows, columns, table, find_positions)


BASES: dict[str, Corner] = {
    "dct": dct,
    "hadamard": hadamard,
    "hartley": hartley,
    "sinusoidal": sinusoidal,
    "walsh": walsh,
}


def basis(name: str, size: int) -> Float64:
    """Return a basis as a float64 matrix (size, size); row i is basis vector i.

    Example:
        >>> seedless.basis("dct", 4).shape
        (4, 4)
    """
    corner = choose("basis", name, BASES)
    check_integer("the size of a basis", size, 1, error=InitError)
    entries: Float64 = corner(size, size, size).fill()
    return entries


def _is_negative(i: Int64, j: Int64) -> Int64:
    """Return 1 where entry (i, j) of Sylvester's matrix is -1, else 0."""
    parity: Int64 = np.bitwise_count(i & j).astype(np.int64) % 2
    return parity


@lru_cache(maxsize=256)
def _cosine_table(size: int, denominator: int, power: int | Fraction) -> Float64:
    """Return sqrt(power / size) cos(pi m / denominator) for every m of one period."""
    return rounded_cosines(np.arange(2 * denominator), denominator, Fraction(power) / size)


@lru_cache(maxsize=256)
def _hartley_table(size: int) -> Float64:
    return rounded_cosines(8 * np.arange(size) - size, 4 * size, Fraction(2, size))
