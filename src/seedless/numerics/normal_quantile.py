"""The normal quantile function, with the same bits on every machine.

Source: Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied
Statistics 37, 1988, routine PPND16 (relative accuracy about 1e-16). It needs a logarithm in the
tails. A math library's logarithm may differ in the last bit from machine to machine, so it is
computed here from +, -, * and /, which IEEE 754 defines to the last bit.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

# Numerators and denominators of the three rational approximations, constant term first: for
# |p - 1/2| <= 0.425, for sqrt(-log(tail)) <= 5, and for the rest.
_CENTRE = (
    (
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ),
    (
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
)
_SHOULDER = (
    (
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)
_TAIL = (
    (
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)
_CENTRE_HALF_WIDTH, _SHOULDER_END = 0.425, 5.0
_LN2 = 0.6931471805599453
_ATANH = [2.0 / (2 * k + 1) for k in range(14)]  # 2 atanh(s) / s in powers of s^2


def normal_quantile(probability: Float64) -> Float64:
    """Return x with Phi(x) = probability, float64 of the same shape, for 0 < probability < 1."""
    # [Step 1] The centre, |p - 1/2| <= 0.425: a rational function of 0.425^2 - (p - 1/2)^2.
    offset = probability - 0.5
    square = 0.180625 - offset * offset
    centre = offset * _evaluate_ratio(_CENTRE, square)
    # [Step 2] Further out: rational functions of r = sqrt(-log(min(p, 1 - p))).
    tail = np.minimum(probability, 1.0 - probability)
    radius = np.sqrt(-compute_log(tail))
    shoulder = _evaluate_ratio(_SHOULDER, radius - 1.6)
    outer = np.where(
        radius <= _SHOULDER_END, shoulder, _evaluate_ratio(_TAIL, radius - _SHOULDER_END)
    )
    # [Step 3] Choose by p, and give the lower half its sign.
    in_centre = np.abs(offset) <= _CENTRE_HALF_WIDTH
    return np.where(in_centre, centre, np.where(offset < 0, -outer, outer))


def _evaluate_ratio(coefficients: tuple[Sequence[float], Sequence[float]], x: Float64) -> Float64:
    numerator, denominator = coefficients
    return _evaluate_polynomial(numerator, x) / _evaluate_polynomial(denominator, x)


def _evaluate_polynomial(coefficients: Sequence[float], x: Float64) -> Float64:
    """Return the polynomial at x by Horner's scheme; the constant coefficient comes first."""
    value = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient  # two ufuncs, two roundings: never a fused multiply-add
    return value


def compute_log(x: Float64) -> Float64:
    """Return the natural logarithm of x > 0.

    x = 2^e m with m in [0.7, 1.4), and log m = 2 atanh((m-1)/(m+1)), a power series.
    """
    mantissa, exponent = np.frexp(x)
    small = mantissa < 0.7
    mantissa = np.where(small, 2.0 * mantissa, mantissa)
    exponent = exponent - small
    s = (mantissa - 1.0) / (mantissa + 1.0)
    return exponent * _LN2 + s * _evaluate_polynomial(_ATANH, s * s)
