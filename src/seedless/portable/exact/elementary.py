"""exp, log, erf, tanh, sin, atan, roots and powers from float64 +, -, *, /, each its own kernel.

Law: each function takes float64 and is a fixed sequence of IEEE operations on it, so its bits are
those of the formula. The error is below 2^-40 of the result where that is a normal float32, so the
float32 it is rounded to is the nearest one, except for about one input in 2^15.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.portable import constants as c
from seedless.portable.exact.rounding_grid import power_of_two


def horner(coefficients: Sequence[float], x: Tensor) -> Tensor:
    """Return the polynomial with these coefficients, the constant first."""
    return _horner(coefficients, x, torch.empty_like(x))


def _horner(coefficients: Sequence[float], x: Tensor, out: Tensor) -> Tensor:
    """Write the polynomial into ``out``."""
    torch.mul(x, coefficients[-1], out=out).add_(coefficients[-2])
    for coefficient in reversed(coefficients[:-2]):
        out.mul_(x).add_(coefficient)
    return out


def exp(x: Tensor) -> Tensor:
    """2^(n / 64) exp(rest), n the nearest integer to 64 x / ln 2; constant beyond +-700."""
    # [Step 1] Subtract n ln 2 / 64 in two parts, the first of which is exact.
    rest = x.clamp(-700.0, 700.0)
    steps = (rest * c.PER_LN2).round_()
    spare = steps * c.STEP_HIGH
    rest.sub_(spare).sub_(torch.mul(steps, c.STEP_LOW, out=spare))
    # [Step 2] Look 2^(j / 64) up, j = n mod 64. Memory is reused, since new memory takes time.
    n = spare.view(torch.int64).copy_(steps.nan_to_num_(nan=0.0))
    row = torch.bitwise_and(n, 63, out=steps.view(torch.int64))
    fraction = c.table("powers", x.device).index_select(0, row.flatten()).view(x.shape)
    # [Step 3] Multiply the polynomial by it, and by the whole power of two.
    out = _horner(c.EXP, rest, steps).mul_(fraction)
    return out.mul_(n.bitwise_right_shift_(6).add_(1023).bitwise_left_shift_(52).view(x.dtype))


def log(x: Tensor) -> Tensor:
    """e ln 2 + 2 atanh((m - 1) / (m + 1)) with x = m 2^e and m in [0.75, 1.5)."""
    # [Step 1] Split x into m and e by its bits; 0x3FE8... are those of 0.75.
    bits = x.view(torch.int64)
    exponent = (bits - 0x3FE8000000000000) >> 52
    mantissa = (bits - (exponent << 52)).view(torch.float64)
    # [Step 2] Evaluate the series of atanh.
    s = (mantissa - 1.0) / (mantissa + 1.0)
    out = horner(c.ATANH, s * s).mul_(s).add_(exponent.to(torch.float64).mul_(c.LN2))
    # [Step 3] Zero, infinity, negative numbers and NaN.
    out = torch.where(x == 0, -math.inf, out)
    out = torch.where(x == math.inf, math.inf, out)
    return torch.where((x < 0) | (x != x), math.nan, out)


def log1p(x: Tensor) -> Tensor:
    """log(1 + x) = log(u) x / (u - 1) with u = 1 + x rounded, which corrects for that rounding."""
    u = x + 1.0
    rest = u - 1.0
    is_special = (rest == 0) | (rest == math.inf)
    divisor = torch.where(is_special, torch.ones_like(rest), rest)
    return torch.where(rest == 0, x, torch.where(is_special, u, log(u) * (x / divisor)))


def expm1(x: Tensor) -> Tensor:
    """exp(x) - 1; for small x by its series."""
    small = ((x * (1 / 6) + 0.5) * x).mul_(x).add_(x)
    return torch.where(x.abs() < 1e-5, small, exp(x) - 1.0)


def erf(x: Tensor) -> Tensor:
    """A Taylor polynomial about the nearest multiple of 1/32; constant beyond +-6."""
    rest = x.clamp(-float(c.ERF_EDGE), float(c.ERF_EDGE))
    centre = (rest * c.ERF_STEP).round_()
    rest.sub_(centre * (1 / c.ERF_STEP))
    row = centre.nan_to_num_(nan=0.0).to(torch.int64).add_(c.ERF_STEP * c.ERF_EDGE).flatten()
    columns = c.table("erf", x.device).index_select(1, row).view(c.ERF_DEGREE + 1, *x.shape)
    out = columns[c.ERF_DEGREE]
    for k in range(c.ERF_DEGREE - 1, -1, -1):
        out.mul_(rest).add_(columns[k])
    return out


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return invert(exp(-x).add_(1.0))


def tanh(x: Tensor) -> Tensor:
    """1 - 2 / (exp(2 x) + 1); for small x by its series."""
    square = x * x
    small = (square * (2 / 15) - (1 / 3)).mul_(square).mul_(x).add_(x)
    fraction = torch.full_like(x, 2.0).div_(exp(x.clamp(-30.0, 30.0) * 2.0).add_(1.0))
    return torch.where(x.abs() < 1e-3, small, 1.0 - fraction)


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))."""
    return torch.where(x > 0, x, torch.zeros_like(x)) + log1p(exp(-x.abs()))


def invert(x: Tensor) -> Tensor:
    """1 / x by a true division: ``1 / x`` calls a kernel for reciprocals."""
    return torch.ones_like(x).div_(x)


def root(x: Tensor) -> Tensor:
    """sqrt(x) by four Newton steps from the halved exponent, within one unit of the last place.

    Libraries behind torch misround about 1 in 70 float64 roots. A float32's root lies further than
    2^-51 from the midpoint of two float32 values, so rounded to float32 this is the nearest.
    """
    guess = ((x.view(torch.int64) >> 1) + c.HALF_BIAS).view(torch.float64)
    for _ in range(4):
        guess = (guess + x / guess).mul_(0.5)
    out = torch.where((x == 0) | (x == math.inf), x, guess)
    return torch.where(x < 0, math.nan, out)


def rsqrt(x: Tensor) -> Tensor:
    """1 / sqrt(x)."""
    return invert(root(x))


def raise_power(x: Tensor, exponent: float) -> Tensor:
    """x^exponent: products for small integers, else exp(exponent log |x|).

    Below zero that is NaN where the exponent is no integer, and negative where it is an odd one.
    """
    whole = float(exponent).is_integer()
    if whole and abs(exponent) <= 8:
        out = torch.ones_like(x)
        for _ in range(int(abs(exponent))):
            out = out * x
        return out if exponent >= 0 else invert(out)
    if exponent in (0.5, -0.5):
        return root(x) if exponent > 0 else rsqrt(x)
    out = exp(log(x.abs() if whole else x) * exponent)
    if whole and exponent % 2:
        out = torch.where(x < 0, -out, out)
    edge = 0.0 if exponent > 0 else math.inf
    out = torch.where(x == 0, edge, out)
    return torch.where(x == math.inf, math.inf if exponent > 0 else 0.0, out)


def sin(x: Tensor) -> Tensor:
    """sin of float32 values held in float64."""
    return torch.where(x == 0, x, _wave(x, 0))


def cos(x: Tensor) -> Tensor:
    """cos of float32 values held in float64."""
    return _wave(x, 1)


def _wave(x: Tensor, quarter: int) -> Tensor:
    """sin(x + quarter pi/2), with x = m 2^k and m an integer of 24 bits.

    m (2^k 2/pi mod 4) is the angle in quarter turns. Two of its three parts are exact, so that no
    argument is too large.
    """
    # [Step 1] Split x into m and k by its bits.
    k = (((x.view(torch.int64) >> 52) & 0x7FF) - 1046).clamp_(c.LOWEST_TURN, c.HIGHEST_TURN)
    m = x * power_of_two(-k)
    parts = c.table("turns", x.device).index_select(1, (k - c.LOWEST_TURN).flatten())
    first, second, third = parts.view(3, *x.shape).unbind()
    # [Step 2] Count whole quarter turns, and keep the rest of each part.
    one, two = m * first, m * second
    whole_one, whole_two = one.round(), two.round()
    rest = ((one - whole_one) + (two - whole_two)) + m * third
    whole = rest.round()
    # [Step 3] Evaluate the series of sin or cos, by the quarter, in the angle that is left.
    angle = (rest - whole) * c.HALF_PI
    turns = (whole_one + whole_two + whole).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    index = (turns.to(torch.int64) + quarter) & 3
    square = angle * angle
    out = torch.where((index & 1) == 0, horner(c.SIN, square) * angle, horner(c.COS, square))
    out = torch.where(index >= 2, -out, out)
    return torch.where(x.abs() < math.inf, out, math.nan)


def atan(x: Tensor) -> Tensor:
    """atan(i / 16) + atan((a - i / 16) / (1 + a i / 16)) with a = |x|, or 1 / |x| above 1."""
    size = x.abs()
    is_large = size > 1.0
    a = torch.where(is_large, invert(size), size)
    centre = (a * float(c.ATAN_STEP)).round()
    step = centre * (1 / c.ATAN_STEP)
    t = (a - step) / (a * step + 1.0)
    row = centre.nan_to_num(nan=0.0).to(torch.int64).flatten()
    start = c.table("atan", x.device).index_select(0, row).view(x.shape)
    out = horner(c.ATAN, t * t) * t + start
    out = torch.where(is_large, c.HALF_PI - out, out)
    return torch.copysign(torch.where(x != x, x, out), x)


def asin(x: Tensor) -> Tensor:
    """atan(x / sqrt((1 - x) (1 + x))); NaN beyond +-1."""
    rest = root((1.0 - x) * (x + 1.0))
    out = atan(x / rest)
    return torch.where(x.abs() > 1.0, math.nan, out)


def acos(x: Tensor) -> Tensor:
    """2 atan(sqrt((1 - x) / (1 + x))); NaN beyond +-1."""
    out = atan(root((1.0 - x) / (x + 1.0))) * 2.0
    return torch.where(x.abs() > 1.0, math.nan, out)
