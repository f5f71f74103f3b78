"""The slow reference of each portable law: Python integers and fractions, one value at a time.

Nothing here shares code with the tensor ops, but for the tables of coefficients. Python's float
operations are IEEE's, each rounded by itself, so the references of elementary functions are these
formulas and nothing else; sums and products are integers of any size.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from seedless.portable import constants as c

Row = Sequence[float]


def to_grid(row: Row, bits: int) -> tuple[list[int], Fraction]:
    """Return the integers of a finite row and the step of their grid."""
    top = max(map(abs, row), default=0.0)
    exponent = max(math.frexp(top)[1], -400) if top else -400
    step = Fraction(2) ** (exponent - bits)
    return [round(Fraction(value) / step) for value in row], step  # round() takes ties to even


def total(row: Row) -> float:
    """The sum of a finite row; a single value is its own."""
    if len(row) == 1:
        return row[0] + 0.0
    integers, step = to_grid(row, 36)
    return float(float(sum(integers)) * step)


def mean(row: Row) -> float:
    """The sum over the count."""
    return total(row) / len(row)


def dot(left: Row, right: Row) -> float:
    """One element of a matrix product of finite float32 values, before it is rounded to float32."""
    (p, s), (q, t) = to_grid(left, 23), to_grid(right, 23)
    exact = sum(a * b for a, b in zip(p, q, strict=True))
    return float(Fraction(float(exact)) * s * t)


def exact_dot(left: Row, right: Row) -> Fraction:
    """The true value."""
    return sum((Fraction(a) * Fraction(b) for a, b in zip(left, right, strict=True)), Fraction(0))


def layer_norm(row: Row, eps: float, narrow: object) -> list[float]:
    """One row without weight and bias; ``narrow`` rounds a float64 to float32."""
    assert callable(narrow)
    centre = mean(row)
    scale = narrow(1.0 / root(mean([(x - centre) * (x - centre) for x in row]) + eps))
    kept = narrow(centre)
    return [narrow((x - kept) * scale) for x in row]


def conv1d(signal: Sequence[Row], filters: Sequence[Row], stride: int, padding: int) -> list[float]:
    """One output channel: (in, time), (in, kernel) -> windows, before rounding to float32."""
    length, kernel = len(signal[0]), len(filters[0])
    edge = [0.0] * padding
    padded = [[*edge, *channel, *edge] for channel in signal]
    weights = [value for channel in filters for value in channel]
    starts = range(0, length + 2 * padding - kernel + 1, stride)
    return [
        dot(weights, [value for channel in padded for value in channel[start : start + kernel]])
        for start in starts
    ]


def multiply_add(a: float, b: float, addend: float) -> float:
    """A b + addend, rounded twice: what a device does that contracts nothing."""
    return a * b + addend


def horner(coefficients: Row, x: float) -> float:
    """The polynomial with these coefficients, the constant first."""
    out = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        out = multiply_add(out, x, coefficient)
    return out


_erf_rows = lru_cache(c.erf_rows)
_powers = lru_cache(c.powers)
_turns = lru_cache(c.turns)


def exp(x: float) -> float:
    """2^(n / 64) times a polynomial in what is left."""
    x = max(-700.0, min(700.0, x))
    n = round(x * c.PER_LN2)
    rest = (x - n * c.STEP_HIGH) - n * c.STEP_LOW
    return horner(c.EXP, rest) * _powers()[n & 63] * 2.0 ** (n >> 6)


def log(x: float) -> float:
    """E ln 2 + 2 atanh((m - 1) / (m + 1)) with m in [0.75, 1.5); x positive and finite."""
    mantissa, exponent = math.frexp(x)  # in [0.5, 1)
    if mantissa < 0.75:
        mantissa, exponent = mantissa * 2, exponent - 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    return multiply_add(horner(c.ATANH, s * s), s, exponent * c.LN2)


def erf(x: float) -> float:
    """A Taylor polynomial about the nearest multiple of 1/32."""
    x = max(-6.0, min(6.0, x))
    centre = round(x * c.ERF_STEP)
    rest = x - centre * (1 / c.ERF_STEP)
    column = [row[centre + c.ERF_STEP * c.ERF_EDGE] for row in _erf_rows()]
    return horner(column, rest)


def log1p(x: float) -> float:
    """log(1 + x), corrected for what 1 + x rounds away; x finite and above -1."""
    up = x + 1.0
    kept = up - 1.0
    return x if kept == 0 else log(up) * (x / kept)


def expm1(x: float) -> float:
    """exp(x) - 1; for small x by its series."""
    if abs(x) < 1e-5:
        return (x * (1 / 6) + 0.5) * x * x + x
    return exp(x) - 1.0


def softplus(x: float) -> float:
    """log(1 + exp(x))."""
    return (x if x > 0 else 0.0) + log1p(exp(-abs(x)))


def sin(x: float) -> float:
    """Of a finite float32."""
    return x if x == 0 else _wave(x, 0)


def cos(x: float) -> float:
    """Of a finite float32."""
    return _wave(x, 1)


def _wave(x: float, quarter: int) -> float:
    """sin(x + quarter pi/2), with x = m 2^k and m an integer of 24 bits."""
    k = max(math.frexp(x)[1] - 24, c.LOWEST_TURN) if x else c.LOWEST_TURN
    m = math.ldexp(x, -k)
    first, second, third = (part[k - c.LOWEST_TURN] for part in _turns())
    one, two = m * first, m * second
    rest = ((one - round(one)) + (two - round(two))) + m * third
    angle = (rest - round(rest)) * c.HALF_PI
    index = (round(one) + round(two) + round(rest) + quarter) % 4
    square = angle * angle
    out = horner(c.SIN, square) * angle if index % 2 == 0 else horner(c.COS, square)
    return -out if index >= 2 else out


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x))."""
    return 1.0 / (exp(-x) + 1.0)


def tanh(x: float) -> float:
    """1 - 2 / (exp(2 x) + 1); for small x by its series."""
    if abs(x) < 1e-3:
        square = x * x
        return (square * (2 / 15) - (1 / 3)) * square * x + x
    return 1.0 - 2.0 / (exp(max(-30.0, min(30.0, x)) * 2.0) + 1.0)


def root(x: float) -> float:
    """Four Newton steps from the halved exponent; x finite and not negative."""
    if x == 0:
        return x
    (bits,) = struct.unpack("<q", struct.pack("<d", x))
    (guess,) = struct.unpack("<d", struct.pack("<q", (bits >> 1) + 0x1FF7A3BEA91D9B1B))
    for _ in range(4):
        guess = (guess + x / guess) * 0.5
    return float(guess)


_arctangents = lru_cache(c.arctangents)


def atan(x: float) -> float:
    """atan(i / 16) and a series in what is left; x finite."""
    size = abs(x)
    a = 1.0 / size if size > 1 else size
    centre = round(a * c.ATAN_STEP)
    step = centre * (1 / c.ATAN_STEP)
    t = (a - step) / (a * step + 1.0)
    out = horner(c.ATAN, t * t) * t + _arctangents()[centre]
    return math.copysign(c.HALF_PI - out if size > 1 else out, x)


def asin(x: float) -> float:
    """atan(x / sqrt((1 - x) (1 + x))) of |x| below 1."""
    return atan(x / root((1.0 - x) * (x + 1.0)))


def acos(x: float) -> float:
    """2 atan(sqrt((1 - x) / (1 + x))) of |x| below 1."""
    return atan(root((1.0 - x) / (x + 1.0))) * 2.0


def fused(a: float, b: float, addend: float) -> float:
    """A b + addend rounded once, as a contracted multiply-add does: what must never happen."""
    return float(Fraction(a) * Fraction(b) + Fraction(addend))
