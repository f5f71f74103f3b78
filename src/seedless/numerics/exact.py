"""Float64 results that are the same on every machine.

Three means, with no math library's rounding among them:
- real numbers are evaluated to many digits and rounded once (`round_real`, `cosines`, `root`);
- sums are exactly rounded, so the order of summation cannot show (`total`, `row_sums`);
- Gram matrices are taken of integers small enough for float64 to add without rounding (`gram`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from threading import Lock
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import NumericsError

Float64 = NDArray[np.float64]
_MP = mpmath.MPContext()  # a context of our own: nobody else's precision changes, nor ours
_MP_LOCK = Lock()  # its precision is state
_BLOCK = 1 << 15  # elements summed at a time: they stay in the cache


def round_real(evaluate: Callable[[Any], Any]) -> float:
    """Return the float64 nearest to the real number ``evaluate(context)`` approximates.

    The working precision doubles until both ends of the error interval round to the same float64
    (Ziv's test); the interval allows for an error of 2^10 units in the last place.
    """
    precision = 120
    while precision <= 4000:
        with _MP_LOCK:
            _MP.prec = precision
            value = _as_fraction(evaluate(_MP))
        slack = max(Fraction(1), abs(value)) / 2 ** (precision - 10)
        low, high = float(value - slack), float(value + slack)
        if low == high:
            return low
        if abs(value) <= slack:  # a true zero: no precision would ever separate it from 0.0
            return 0.0
        precision *= 2
    raise NumericsError("a real number lies too near the midpoint of two float64 values to round")


def _as_fraction(value: Any) -> Fraction:
    """Return an mpmath number exactly; float() of a Fraction is then rounded to nearest."""
    mantissa, exponent = value.man_exp  # unsigned
    magnitude: Fraction = Fraction(int(mantissa)) * Fraction(2) ** exponent
    return -magnitude if value < 0 else magnitude


def cosines(phases: NDArray[np.int64], denominator: int, power: Fraction = Fraction(1)) -> Float64:
    """Return sqrt(power) * cos(pi * phase / denominator) for each integer phase.

    Every entry is the float64 nearest to its real value, amplitude included, so entries that are
    equal as real numbers are equal bit for bit. Phases are reduced as integers: there is no
    argument reduction in floating point.
    """
    known: dict[int, float] = {}
    out = np.empty(len(phases))
    for position, phase in enumerate(phases.tolist()):
        phase %= 2 * denominator
        phase = min(phase, 2 * denominator - phase)  # cos is even
        sign = 1.0
        if 2 * phase > denominator:  # cos(pi - t) = -cos(t)
            phase, sign = denominator - phase, -1.0
        if phase not in known:
            known[phase] = _scaled_cosine(phase, denominator, power)
        out[position] = sign * known[phase] + 0.0  # +0.0: no negative zeros
    return out


def _scaled_cosine(phase: int, denominator: int, power: Fraction) -> float:
    if 2 * phase == denominator:
        return 0.0

    def evaluate(mp: Any) -> Any:
        amplitude = mp.sqrt(mp.mpf(power.numerator) / power.denominator)
        return amplitude * mp.cospi(mp.mpf(phase) / denominator)

    return round_real(evaluate)


def root(power: Fraction) -> float:
    """Return sqrt(power), correctly rounded: one rounding, not one for the quotient and another."""
    return _scaled_cosine(0, 1, power)


def total(values: NDArray[Any]) -> float:
    """Return the exactly rounded sum of all values."""
    return float(row_sums(values.reshape(1, -1))[0])


def row_sums(matrix: NDArray[Any]) -> Float64:
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


def gram(rows: NDArray[Any]) -> Float64:
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
