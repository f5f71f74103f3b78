"""Orthogonal bases in which each entry is the float64 nearest to its real value.

A basis of size N is an N x N matrix, row i being basis vector i. A layer needs only its upper left
corner, so each function returns ``rows`` x ``columns`` entries. Phases are integers modulo the
period, and amplitude and cosine are rounded together, so entries that are equal as real numbers are
equal bit for bit.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from seedless.core.checks import check_integer
from seedless.core.errors import InitError
from seedless.core.registry import choose
from seedless.numerics.correct_rounding import rounded_cosines, rounded_sqrt

Float64 = NDArray[np.float64]
Corner = Callable[[int, int, int], Float64]


def dct(size: int, rows: int, columns: int) -> Float64:
    """Return the DCT-II: a_i cos(pi i (2j+1) / 2N), a_0 = sqrt(1/N), else sqrt(2/N)."""
    return dct_entries(size, *_indices(rows, columns))


def dct_entries(size: int, i: NDArray[np.int64], j: NDArray[np.int64]) -> Float64:
    """Return the entries of the DCT-II in rows ``i`` (n, 1) and columns ``j`` (1, m): (n, m)."""
    entries = _cosine_table(size, 2 * size, 2)[i * (2 * j + 1) % (4 * size)]
    constant: Float64 = np.where(i == 0, rounded_sqrt(Fraction(1, size)), entries)
    return constant


def sinusoidal(size: int, rows: int, columns: int) -> Float64:
    """Return the DST-II: b_i sin(pi (i+1) (2j+1) / 2N), b = sqrt(2/N), last sqrt(1/N)."""
    i, j = _indices(rows, columns)
    phases = size - (i + 1) * (2 * j + 1)  # sin t = cos(pi/2 - t)
    entries: Float64 = _cosine_table(size, 2 * size, 2)[phases % (4 * size)]
    if rows == size:
        signs = 1 - 2 * (np.arange(columns) % 2)
        entries[-1] = signs * rounded_sqrt(Fraction(1, size))
    return entries


def hartley(size: int, rows: int, columns: int) -> Float64:
    """Return (cos t + sin t) / sqrt(N), t = 2 pi i j / N, computed as sqrt(2/N) cos(t - pi/4)."""
    i, j = _indices(rows, columns)
    entries: Float64 = _hartley_table(size)[i * j % size]
    return entries


def hadamard(size: int, rows: int, columns: int) -> Float64:
    """Return the N x N corner of Sylvester's +-1 matrix of the next power of two, over sqrt(N).

    Orthonormal only when N is a power of two; `Plan` reports the error of every layer.
    """
    return _walsh_signs(*_indices(rows, columns)) * rounded_sqrt(Fraction(1, size))


def walsh(size: int, rows: int, columns: int) -> Float64:
    """Return the Kronecker product of the 2^a Hadamard matrix and the m-point DCT-II.

    N = 2^a m with m odd; the result is orthonormal for every N.
    """
    odd = size // (size & -size)
    i, j = _indices(rows, columns)
    cosine = _cosine_table(odd, 2 * odd, Fraction(2 * odd, size))
    entries = cosine[(i % odd) * (2 * (j % odd) + 1) % (4 * odd)]
    entries = np.where(i % odd == 0, rounded_sqrt(Fraction(1, size)), entries)
    return _walsh_signs(i // odd, j // odd) * entries + 0.0  # +0.0: no negative zeros


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
    return corner(size, size, size)


def _indices(rows: int, columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.arange(rows, dtype=np.int64)[:, None], np.arange(columns, dtype=np.int64)[None, :]


def _walsh_signs(i: NDArray[np.int64], j: NDArray[np.int64]) -> Float64:
    signs: Float64 = 1.0 - 2.0 * (np.bitwise_count(i & j) % 2)
    return signs


@lru_cache(maxsize=256)
def _cosine_table(size: int, denominator: int, power: int | Fraction) -> Float64:
    """Return sqrt(power / size) cos(pi m / denominator) for every m of one period."""
    return rounded_cosines(np.arange(2 * denominator), denominator, Fraction(power) / size)


@lru_cache(maxsize=256)
def _hartley_table(size: int) -> Float64:
    return rounded_cosines(8 * np.arange(size) - size, 4 * size, Fraction(2, size))
