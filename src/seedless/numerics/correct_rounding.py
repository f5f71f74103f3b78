"""Real numbers rounded once to float64, so that they are the same on every machine.

A math library's cosine or square root may differ in the last bit from machine to machine. Here a
real number is evaluated to many digits and rounded once, to the nearest float64.
"""

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


def rounded_sqrt(power: Fraction) -> float:
    """Return the float64 nearest to sqrt(power), with a single rounding."""
    return _scaled_cosine(0, 1, power)
