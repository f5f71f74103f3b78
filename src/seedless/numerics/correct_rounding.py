"""Real numbers rounded once to float64, so that they are the same on every machine.

A math library's cosine or square root may differ in the last bit from machine to machine. Here a
real number is evaluated to many digits and rounded once, to the nearest float64.
"""

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
_MP = mpmath.MPContext()  # a context of our own, so that no other code changes its precision
_MP_LOCK = Lock()  # held while the precision is set and used
_START_BITS, _MAX_BITS = 120, 4000  # working precision
_TABLE_SHARE = 16  # a table is made if more than one phase in so many of the denominator is wanted
_RECURRENCE_BITS, _RECURRENCE_ERROR_BITS = 320, 100
_GUARD_BITS = 10  # mpmath's result is assumed to be correct except for this many last bits


def round_real(evaluate: Callable[[Any], Any]) -> float:
    """Return the float64 nearest to the real number that ``evaluate(context)`` approximates.

    This is Ziv's rounding test ("Fast evaluation of elementary mathematical functions with
    correctly rounded last bit", ACM TOMS 17, 1991).

    Args:
        evaluate: computes the number with an mpmath context, to the context's precision.
    """
    precision = _START_BITS
    while precision <= _MAX_BITS:
        # [Step 1] Evaluate to the working precision.
        with _MP_LOCK:
            _MP.prec = precision
            value = _as_fraction(evaluate(_MP))
        # [Step 2] Round both ends of the error interval. If they agree, so does every number
        # between them, the true one included.
        error = max(Fraction(1), abs(value)) / 2 ** (precision - _GUARD_BITS)
        low, high = float(value - error), float(value + error)
        if low == high:
            return low
        # [Step 3] A true zero is never separated from its neighbours: accept it.
        if abs(value) <= error:
            return 0.0
        # [Step 4] Otherwise try again with twice the precision.
        precision *= 2
    raise NumericsError(
        "expected a real number that rounds to one float64, got one too close to the midpoint of "
        f"two of them to decide with {_MAX_BITS} bits"
    )


def _as_fraction(value: Any) -> Fraction:
    """Return an mpmath number exactly; float() of a Fraction rounds it to the nearest float64."""
    mantissa, exponent = value.man_exp  # unsigned
    magnitude: Fraction = Fraction(int(mantissa)) * Fraction(2) ** exponent
    return -magnitude if value < 0 else magnitude


def rounded_cosines(
    phases: NDArray[np.int64], denominator: int, power: Fraction = Fraction(1)
) -> Float64:
    """Return sqrt(power) * cos(pi * phase / denominator) for each integer phase: float64 (n,).

    Every entry is the float64 nearest to its real value, amplitude included, so entries that are
    equal as real numbers are equal bit for bit. Phases are reduced to [0, pi/2] as integers, so
    the reduction does not round.

    Args:
        phases: (n,) int64.
        power: the square of the amplitude, so that amplitude and cosine are rounded together.
    """
    # [Step 1] Reduce: cos is even, and cos(pi - t) = -cos(t).
    reduced = phases % (2 * denominator)
    reduced = np.minimum(reduced, 2 * denominator - reduced)
    is_negative = 2 * reduced > denominator
    reduced = np.where(is_negative, denominator - reduced, reduced)
    # [Step 2] Evaluate each phase once; in a table if most of a quarter of the period is wanted.
    wanted, places = np.unique(reduced, return_inverse=True)
    if len(wanted) * _TABLE_SHARE > denominator:
        table = _quarter_of_cosines(denominator, power)
        values = np.array([table[phase] for phase in wanted.tolist()])
    else:
        values = np.array([_scaled_cosine(phase, denominator, power) for phase in wanted.tolist()])
    found = values[places.reshape(phases.shape)]
    return np.where(is_negative, -found, found) + 0.0  # +0.0: no negative zeros


def _quarter_of_cosines(denominator: int, power: Fraction) -> list[float]:
    """Return sqrt(power) * cos(pi m / denominator), m = 0, 1, ... denominator // 2.

    cos((m+1) t) = 2 cos(t) cos(m t) - cos((m-1) t), in integers of 2^-320. An error in one cosine
    grows with m to at most m times itself, so after 2^30 steps all of them together are below
    2^-320 2^62, far below the error that the test of the rounding allows.
    """
    bits = _RECURRENCE_BITS
    with _MP_LOCK:
        _MP.prec = 2 * bits
        first = int(_MP.floor(_MP.ldexp(_MP.cospi(_MP.mpf(1) / denominator), bits)))
        root = _MP.sqrt(_MP.mpf(power.numerator) / power.denominator)
        amplitude = int(_MP.floor(_MP.ldexp(root, bits)))
    error = (amplitude + (1 << bits)) << _RECURRENCE_ERROR_BITS
    before, cosine = first, 1 << bits  # of the phases -1 and 0
    table = []
    for phase in range(denominator // 2 + 1):
        value = amplitude * cosine
        low, high = float(value - error), float(value + error)
        exact = low == high and 2 * phase != denominator
        scaled = math.ldexp(low, -2 * bits)
        table.append(scaled if exact else _scaled_cosine(phase, denominator, power))
        before, cosine = cosine, ((first * cosine) >> (bits - 1)) - before
    return table


def _scaled_cosine(phase: int, denominator: int, power: Fraction) -> float:
    if 2 * phase == denominator:
        return 0.0

    def evaluate(mp: Any) -> Any:
        amplitude = mp.sqrt(mp.mpf(power.numerator) / power.denominator)
        return amplitude * mp.cospi(mp.mpf(phase) / denominator)

    return round_real(evaluate)


def rounded_sqrt(power: Fraction) -> float:
    """Return the float64 nearest to sqrt(power), with a single rounding."""
    return _scaled_cosine(0, 1, power)
