"""Numbers of bits, and tables for `exact.elementary` evaluated to 200 bits and rounded once."""

from functools import lru_cache
from typing import Any

import mpmath
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

_MP = mpmath.MPContext()
_MP.prec = 200
ERF_STEP, ERF_EDGE, ERF_DEGREE = 32, 6, 6  # centres in 1, largest argument, degree
# The exponents of grids; those of float32 and its squares lie within, an infinity has the highest.
LOWEST_EXPONENT, HIGHEST_EXPONENT = -400, 400
SUM_BITS, PRODUCT_BITS = 36, 23  # of integers on the grids of sums, and of a product's operands
MAX_EXACT_ADDENDS = 1 << (53 - SUM_BITS)  # so many integers of SUM_BITS add up to at most 2^53
MAX_PRODUCT_ADDENDS = 1 << (53 - 2 * PRODUCT_BITS)  # so many products do: 2^7
LOW_PART_BITS = 27  # of an exact sum that is split in two
HALF_BITS = 12  # of the low part of an operand that is split in two
HALF_BIAS = 0x1FF7A3BEA91D9B1B  # 2^51 x the exponent's bias, less what makes the error least
STEP_BITS = 24  # a float32 counts an optimizer's steps exactly up to 2^24
LOWEST_TURN, HIGHEST_TURN = -172, 104  # exponents of a float32 written as an integer of 24 bits


def _round(value: Any, bits: int | None = None) -> float:
    """Return the nearest float64, or the nearest multiple of 2^-bits."""
    if bits is None:
        return float(value)
    return float(_MP.ldexp(_MP.nint(_MP.ldexp(value, bits)), -bits))


LN2 = _round(_MP.ln2)
PER_LN10 = _round(1 / _MP.ln10)
PER_LN2 = _round(64 / _MP.ln2)  # steps of ln 2 / 64 in 1
STEP_HIGH = _round(_MP.ln2 / 64, 40)
STEP_LOW = _round(_MP.ln2 / 64 - STEP_HIGH)
ROOT_HALF = _round(_MP.sqrt(_MP.mpf(1) / 2))
ROOT_2_PER_PI = _round(_MP.sqrt(2 / _MP.pi))
HALF_PI = _round(_MP.pi / 2)
EXP = [_round(1 / _MP.factorial(k)) for k in range(7)]
ATANH = [_round(_MP.mpf(2) / (2 * k + 1)) for k in range(13)]
SIN = [_round((-1) ** k / _MP.factorial(2 * k + 1)) for k in range(9)]
COS = [_round((-1) ** k / _MP.factorial(2 * k)) for k in range(9)]
ATAN_STEP = 16  # centres of atan in 1
ATAN = [_round(_MP.mpf((-1) ** k) / (2 * k + 1)) for k in range(6)]
# For `exact.gamma`: B are Bernoulli numbers, zeta is Riemann's function.
PI, LOG_PI = _round(_MP.pi), _round(_MP.log(_MP.pi))
HALF_LOG_2_PI = _round(_MP.log(2 * _MP.pi) / 2)
STIRLING = [_round(_MP.bernoulli(2 * k) / (2 * k * (2 * k - 1))) for k in range(1, 10)]
DIGAMMA = [_round(_MP.bernoulli(2 * k) / (2 * k)) for k in range(1, 10)]
TRIGAMMA = [_round(_MP.bernoulli(2 * k)) for k in range(1, 10)]
LOG_GAMMA_2 = [
    _round(1 - _MP.euler),
    *(_round((-1) ** k * (_MP.zeta(k) - 1) / k) for k in range(2, 27)),
]


def powers() -> list[float]:
    """2^(j / 64) for j = 0 .. 63."""
    return [_round(_MP.power(2, _MP.mpf(j) / 64)) for j in range(64)]


def erf_rows() -> list[list[float]]:
    """Taylor coefficients of erf at i / 32 for |i| <= 192: row k holds the k-th of each."""
    rows = []
    for i in range(-ERF_STEP * ERF_EDGE, ERF_STEP * ERF_EDGE + 1):
        centre = _MP.mpf(i) / ERF_STEP
        slope = 2 / _MP.sqrt(_MP.pi) * _MP.exp(-centre * centre)
        derivative = [_MP.mpf(0), slope]  # Taylor coefficients of erf', one place late
        for k in range(ERF_DEGREE - 1):
            derivative.append(-2 * (centre * derivative[-1] + derivative[-2]) / (k + 1))
        row = [_MP.erf(centre)] + [derivative[k + 1] / (k + 1) for k in range(ERF_DEGREE)]
        rows.append([_round(value) for value in row])
    return [list(column) for column in zip(*rows, strict=True)]


def arctangents() -> list[float]:
    """atan(i / 16) for i = 0 .. 16."""
    return [_round(_MP.atan(_MP.mpf(i) / ATAN_STEP)) for i in range(ATAN_STEP + 1)]


def turns() -> list[list[float]]:
    """2^k 2/pi modulo 4 in three parts, two of 26 and 27 bits: what an integer times 2^k leaves.

    The product of the first two parts with an integer of 24 bits is exact in float64.
    """
    parts = []
    with _MP.workprec(400):
        for k in range(LOWEST_TURN, HIGHEST_TURN + 1):
            rest = _MP.fmod(_MP.ldexp(2 / _MP.pi, k), 4)
            bits = 26 - int(_MP.floor(_MP.log(rest, 2)))
            first = _round(rest, bits)
            second = _round(rest - first, bits + 27)
            parts.append((first, second, _round(rest - first - second)))
    return [list(part) for part in zip(*parts, strict=True)]


_MAKERS = {"powers": powers, "erf": erf_rows, "turns": turns, "atan": arctangents}


@lru_cache(maxsize=64)
def table(name: str, device: torch.device) -> Tensor:
    """Return a table by name as a float64 tensor on the device; recorded ops do not include it."""
    with _disable_current_modes():
        return torch.tensor(_MAKERS[name](), dtype=torch.float64, device=device)
