"""References of the gamma function's logarithm and derivatives: the formulas, on one float."""

from __future__ import annotations

import numpy as np

from seedless.portable import constants as c
from tests.portable.reference import laws as ref
from tests.portable.reference.arrays import Array, Reference, each, narrow


def _sine_and_cosine(size: float) -> tuple[float, float, float]:
    """|sin(pi x)|, |cos(pi x)| and the sign of their quotient."""
    rest = size - round(size)
    a = abs(rest)
    near, far = a * c.PI, (0.5 - a) * c.PI
    if a <= 0.25:
        pair = ref.horner(c.SIN, near * near) * near, ref.horner(c.COS, near * near)
    else:
        pair = ref.horner(c.COS, far * far), ref.horner(c.SIN, far * far) * far
    return *pair, float(np.sign(rest))


def _above_zero(x: float) -> float:
    if x < 0.5:
        return _from_half(x + 1.0) - ref.log(x)
    return _from_half(x)


def _from_half(w: float) -> float:
    if w < 1.5:
        t = w - 1.0
        return ref.horner(c.LOG_GAMMA_2, t) * t - ref.log1p(t)
    if w < 2.5:
        return ref.horner(c.LOG_GAMMA_2, w - 2.0) * (w - 2.0)
    z, product = w, 1.0
    if w < 8:
        z = w + 6.0
        product = w
        for i in range(1, 6):
            product *= w + i
    series = ref.horner(c.STIRLING, 1.0 / (z * z)) / z
    large = (z - 0.5) * ref.log(z) - z + c.HALF_LOG_2_PI + series
    return large - ref.log(product) if w < 8 else large


def lgamma(x: float) -> float:
    """Log |Gamma(x)| of a finite x that is neither zero nor a negative whole number."""
    if x > 0:
        return _above_zero(x)
    sine, _, _ = _sine_and_cosine(-x)
    return (c.LOG_PI - ref.log(-x * sine)) - _above_zero(-x)


def digamma(x: float) -> float:
    """Its derivative."""
    size = abs(x)
    z = size + 8.0 if size < 8 else size
    square = 1.0 / (z * z)
    above = ref.log(z) - (1.0 / z) * 0.5 - ref.horner(c.DIGAMMA, square) * square
    if size < 8:
        moved = 0.0
        for i in reversed(range(8)):
            moved += 1.0 / (size + i)
        above -= moved
    if x > 0:
        return above
    sine, cosine, sign = _sine_and_cosine(size)
    return above + 1.0 / size + sign * (cosine / sine) * c.PI


def trigamma(x: float) -> float:
    """Its second derivative."""
    size = abs(x)
    inverse = 1.0 / (size + 8.0 if size < 8 else size)
    square = inverse * inverse
    above = inverse + square * 0.5 + ref.horner(c.TRIGAMMA, square) * square * inverse
    if size < 8:
        moved = 0.0
        for i in reversed(range(8)):
            moved += 1.0 / ((size + i) * (size + i))
        above += moved
    if x > 0:
        return above
    sine, _, _ = _sine_and_cosine(size)
    return (c.PI / sine) * (c.PI / sine) - above + 1.0 / (size * size)


def polygamma(n: int, x: Array) -> Array:
    """The derivative of order n of digamma."""
    return narrow(each(trigamma if n else digamma, x))


REFERENCES: dict[str, Reference] = {
    "lgamma": lambda x: narrow(each(lgamma, x)),
    "digamma": lambda x: narrow(each(digamma, x)),
    "polygamma": polygamma,
}
