"""The logarithm of the gamma function and its first two derivatives, from float64 operations.

Law: a fixed sequence of IEEE operations on float64, as in `exact.elementary`. Arguments above zero
are moved upwards by Gamma(x + 1) = x Gamma(x), to where the asymptotic series (Abramowitz and
Stegun, 6.1.40, 6.3.18, 6.4.12) has an error below 2^-50. About the zeros of log Gamma at 1 and 2
there is a series of its own. Arguments below zero follow from the reflection formulas (6.1.17).

The error is below 2^-40 of the result, except next to a zero of the function at which the formula
subtracts: there the error is below 2^-45 of the numbers that are subtracted.
"""

import math

import torch
from torch import Tensor

from seedless.portable import constants as c
from seedless.portable.exact.elementary import horner, invert, log, log1p

_SHIFT = 8  # by which small arguments are moved upwards


def _sin_and_cos_of_pi(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return |sin(pi x)| and |cos(pi x)|, and the sign of their quotient; exact for whole x."""
    rest = x - x.round()
    size = rest.abs()
    is_low = size <= 0.25
    near, far = size * c.PI, (0.5 - size) * c.PI
    near_square, far_square = near * near, far * far
    sine = torch.where(is_low, horner(c.SIN, near_square) * near, horner(c.COS, far_square))
    cosine = torch.where(is_low, horner(c.COS, near_square), horner(c.SIN, far_square) * far)
    return sine, cosine, rest.sign()


def _lgamma_near_two(t: Tensor) -> Tensor:
    """log Gamma(2 + t) for |t| <= 1/2, by its Taylor series."""
    return horner(c.LOG_GAMMA_2, t) * t


def _lgamma_above_zero(x: Tensor) -> Tensor:
    """Log Gamma(x) for x >= 0."""
    # [Step 1] Below 1/2, Gamma(x) = Gamma(x + 1) / x.
    is_small = x < 0.5
    w = torch.where(is_small, x + 1.0, x)
    # [Step 2] From 1/2 to 5/2 by the series about 2; below 3/2, Gamma(w) = Gamma(w + 1) / w.
    t = (w - 1.0).clamp(-0.5, 0.5)
    about_one = _lgamma_near_two(t) - log1p(t)
    about_two = _lgamma_near_two((w - 2.0).clamp(-0.5, 0.5))
    # [Step 3] Above, the asymptotic series; Gamma(w) = Gamma(w + 6) / (w (w + 1) ... (w + 5)).
    is_moved = w < _SHIFT
    product = w
    for i in range(1, 6):
        product = product * (w + float(i))
    z = torch.where(is_moved, w + 6.0, w)
    series = horner(c.STIRLING, invert(z * z)) / z
    large = (z - 0.5) * log(z) - z + c.HALF_LOG_2_PI + series
    large = torch.where(is_moved, large - log(product), large)
    out = torch.where(w < 1.5, about_one, torch.where(w < 2.5, about_two, large))
    out = torch.where(is_small, out - log(x), out)
    return torch.where(x == math.inf, math.inf, out)


def lgamma(x: Tensor) -> Tensor:
    """log |Gamma(x)|; infinite at zero and at negative whole numbers."""
    size = x.abs()
    above = _lgamma_above_zero(size)
    # Gamma(x) Gamma(-x) = -pi / (x sin(pi x))
    sine, _, _ = _sin_and_cos_of_pi(size)
    below = (c.LOG_PI - log(size * sine)) - above
    return torch.where(x < 0, torch.where(size == math.inf, math.inf, below), above)


def digamma(x: Tensor) -> Tensor:
    """The derivative of log Gamma; NaN at negative whole numbers, infinite at zero."""
    size = x.abs()
    is_moved = size < _SHIFT
    z = torch.where(is_moved, size + float(_SHIFT), size)
    square = invert(z * z)
    above = log(z) - invert(z) * 0.5 - horner(c.DIGAMMA, square) * square
    moved = torch.zeros_like(size)
    for i in reversed(range(_SHIFT)):  # the smallest first
        moved = moved + invert(size + float(i))
    above = torch.where(is_moved, above - moved, above)
    # psi(x) = psi(-x) - 1 / x - pi cot(pi x)
    sine, cosine, sign = _sin_and_cos_of_pi(size)
    below = above + invert(size) + sign * (cosine / sine) * c.PI
    below = torch.where((size == size.floor()), math.nan, below)
    out = torch.where(x < 0, below, above)
    return torch.where(x == 0, torch.copysign(torch.full_like(x, math.inf), -x), out)


def trigamma(x: Tensor) -> Tensor:
    """The second derivative of log Gamma; infinite at zero and at negative whole numbers."""
    size = x.abs()
    is_moved = size < _SHIFT
    z = torch.where(is_moved, size + float(_SHIFT), size)
    inverse = invert(z)
    square = inverse * inverse
    above = inverse + square * 0.5 + horner(c.TRIGAMMA, square) * square * inverse
    moved = torch.zeros_like(size)
    for i in reversed(range(_SHIFT)):
        shifted = size + float(i)
        moved = moved + invert(shifted * shifted)
    above = torch.where(is_moved, above + moved, above)
    # psi'(x) = pi^2 / sin(pi x)^2 - psi'(-x) + 1 / x^2
    sine, _, _ = _sin_and_cos_of_pi(size)
    per_sine = c.PI / sine
    below = per_sine * per_sine - above + invert(size * size)
    below = torch.where(size == math.inf, math.nan, below)
    below = torch.where(sine == 0, math.inf, below)
    return torch.where(x < 0, below, torch.where(x == math.inf, 0.0, above))
