"""Real numbers rounded once to float64, so that they are the same on every machine.

A math library's cosine or square root may differ in the last bit from machine to machine. Here a
real number is evaluated to many digits and rounded once, to the nearest float64.
"""

from __future__ import annotations

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


def rounded_cosines(
    phases: NDArray[np.int64], denominator: int, power: Fraction = Fraction(1)
) -> Float64:
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


def rounded_sqrt(power: Fraction) -> float:
    """Return sqrt(power), correctly rounded: one rounding, not one for the quotient and another."""
    return _scaled_cosine(0, 1, power)
