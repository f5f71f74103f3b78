"""References of functions, activations and elementwise ops: the formula, on one Python float."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from seedless.portable import constants as c
from tests.portable.reference import laws as ref
from tests.portable.reference.arrays import Array, Reference, each, narrow, widen


def of_one(f: Callable[..., float]) -> Reference:
    """Return the reference of an op on x and numbers, rounded once."""
    return lambda x, *numbers, **named: narrow(each(lambda v: f(v, *numbers, **named), x))


def of_two(f: Callable[..., float]) -> Reference:
    """Return the reference of an op on two arrays and numbers, rounded once."""
    return lambda a, b, *numbers, **named: narrow(
        each(lambda u, v: f(u, v, *numbers, **named), a, b)
    )


def gelu(x: float, approximate: str = "none") -> float:
    """X (1 + erf(x / sqrt 2)) / 2, or its tanh form."""
    bend = ref.erf(x * c.ROOT_HALF) if approximate == "none" else _bend(x)[0]
    return (bend + 1.0) * 0.5 * x


def _bend(x: float) -> tuple[float, float]:
    square = x * x
    bend = ref.tanh((square * x * 0.044715 + x) * c.ROOT_2_PER_PI)
    return bend, (square * (3 * 0.044715) + 1.0) * c.ROOT_2_PER_PI


def gelu_grad(g: float, x: float, approximate: str = "none") -> float:
    """The derivative times g."""
    if approximate == "none":
        bend, slope = ref.erf(x * c.ROOT_HALF), ref.exp(x * x * -0.5) * c.ROOT_2_PER_PI
    else:
        bend, inner = _bend(x)
        slope = (1.0 - bend * bend) * inner
    return ((bend + 1.0) + slope * x) * 0.5 * g


def silu_grad(g: float, x: float) -> float:
    """G s (1 + x (1 - s))."""
    s = ref.sigmoid(x)
    return g * (s * (x * (1.0 - s) + 1.0))


def mish_grad(g: float, x: float) -> float:
    """G (b + x s (1 - b^2)) with b = tanh(softplus(x))."""
    bend, s = ref.tanh(ref.softplus(x)), ref.sigmoid(x)
    return g * (bend + x * s * (1.0 - bend * bend))


def softplus(x: float, beta: float = 1, threshold: float = 20) -> float:
    """log(1 + exp(beta x)) / beta."""
    return x if x * beta > threshold else ref.softplus(x * beta) / beta


def elu(x: float, alpha: float = 1, scale: float = 1, inner: float = 1) -> float:
    """X, or alpha (exp(x) - 1) below zero, times scale."""
    return x * scale if x > 0 else ref.expm1(x * inner) * (alpha * scale)


def elu_grad(
    g: float, alpha: float, scale: float, inner: float, is_result: bool, x: float
) -> float:
    """The derivative times g, from x or from the result."""
    below = x + alpha * scale if is_result else ref.exp(x * inner) * (alpha * scale)
    return g * scale if x > 0 else g * (below * inner)


def clamp(x: float, low: float | None = None, high: float | None = None) -> float:
    """X within [low, high]."""
    x = low if low is not None and x < low else x
    return high if high is not None and x > high else x


def power(x: float, y: float) -> float:
    """x^y of two arrays' values: exp(y log|x|) and the sign of x where y is odd."""
    if y == 0 or x == 1:
        return 1.0
    if x < 0 and y != math.floor(y):
        return math.nan
    out = ref.exp(y * ref.log(abs(x)))
    return -out if x < 0 and y % 2 == 1 else out


def lse_pair(a: float, b: float) -> float:
    """The larger + log1p(exp(-|a - b|))."""
    return max(a, b) + ref.log1p(ref.exp(-abs(a - b)))


def _alpha(sign: float) -> Reference:
    def apply(a: Any, b: Any, alpha: float = 1) -> Array:
        # Torch rounds a number to float32 first; the float64 product of two float32 is exact.
        moved = narrow(widen(b) * float(np.float32(alpha)))
        return narrow(widen(a) + sign * widen(moved))

    return apply


def _addc(product: bool) -> Reference:
    def apply(x: Any, a: Any, b: Any, value: float = 1) -> Array:
        scaled = narrow(widen(a) * float(np.float32(value)))
        part = narrow(widen(scaled) * widen(b)) if product else narrow(widen(scaled) / widen(b))
        return narrow(widen(x) + widen(part))

    return apply


def _lerp(x: Any, y: Any, weight: Any) -> Array:
    gap = narrow(widen(y) - widen(x))
    return narrow(widen(x) + widen(narrow(widen(gap) * widen(narrow(weight)))))


def _halves(x: Any, dim: int) -> tuple[Array, Array]:
    first, second = np.split(widen(x), 2, dim)
    return first, second


def glu(x: Any, dim: int = -1) -> Array:
    """The first half times the sigmoid of the second."""
    return narrow(each(lambda a, b: a * ref.sigmoid(b), *_halves(x, dim)))


def glu_grad(g: Any, x: Any, dim: int) -> Array:
    """The gradients of both halves, joined."""
    a, b = _halves(x, dim)
    one = each(lambda g, a, b: g * ref.sigmoid(b), g, a, b)
    two = each(lambda g, a, b: g * a * (ref.sigmoid(b) * (1.0 - ref.sigmoid(b))), g, a, b)
    return narrow(np.concatenate([one, two], dim))


def _shrink_grad(g: float, x: float, edge: float) -> float:
    return 0.0 if -edge <= x <= edge else g


REFERENCES: dict[str, Reference] = {
    **{
        name: of_one(getattr(ref, name))
        for name in (
            *("exp", "expm1", "log", "log1p", "erf", "sigmoid", "tanh", "sin", "cos"),
            *("atan", "asin", "acos"),
        )
    },
    "sqrt": of_one(ref.root),
    "rsqrt": of_one(lambda x: 1.0 / ref.root(x)),
    "log2": of_one(lambda x: ref.log(x) * (1 / c.LN2)),
    "log10": of_one(lambda x: ref.log(x) * c.PER_LN10),
    "exp2": of_one(lambda x: ref.exp(x * c.LN2)),
    "pow": of_two(power),
    "xlogy": of_two(lambda x, y: 0.0 if x == 0 else x * ref.log(y)),
    "logaddexp": of_two(lse_pair),
    "square": of_one(lambda x: x * x),
    "reciprocal": of_one(lambda x: 1.0 / x),
    "relu": of_one(lambda x: 0.0 if x <= 0 else x),
    "add": _alpha(1.0),
    "sub": _alpha(-1.0),
    "rsub": lambda a, b, alpha=1: _alpha(-1.0)(b, a, alpha),
    "div": of_two(lambda a, b: a / b),
    "floor_divide": of_two(lambda a, b: float(math.floor(a / float(np.float32(b))))),
    "addcmul": _addc(True),
    "addcdiv": _addc(False),
    "lerp": _lerp,
    "maximum": of_two(lambda a, b: a if a > b else b),
    "minimum": of_two(lambda a, b: a if a < b else b),
    "clamp": lambda x, low, high: narrow(each(clamp, x, low, high)),
    "clamp_min": lambda x, low: narrow(each(clamp, x, low)),
    "clamp_max": lambda x, high: narrow(each(clamp, x, -math.inf, high)),
    "round": of_one(lambda x: float(round(x))),
    "gelu": of_one(gelu),
    "gelu_backward": of_two(gelu_grad),
    "silu": of_one(lambda x: x * ref.sigmoid(x)),
    "silu_backward": of_two(silu_grad),
    "mish": of_one(lambda x: x * ref.tanh(ref.softplus(x))),
    "mish_backward": of_two(mish_grad),
    "sigmoid_backward": of_two(lambda g, y: g * (y * (1.0 - y))),
    "tanh_backward": of_two(lambda g, y: g * (1.0 - y * y)),
    "glu": glu,
    "glu_backward": glu_grad,
    "softplus": of_one(softplus),
    "softplus_backward": of_two(
        lambda g, x, beta, edge: g if x * beta > edge else g * ref.sigmoid(x * beta)
    ),
    "elu": of_one(elu),
    "elu_backward": lambda g, alpha, scale, inner, is_result, x: narrow(
        each(lambda u, v: elu_grad(u, alpha, scale, inner, is_result, v), g, x)
    ),
    "celu": of_one(lambda x, alpha=1.0: elu(x, alpha, 1.0, 1.0 / alpha)),
    "leaky_relu": of_one(lambda x, slope=0.01: x if x > 0 else x * slope),
    "leaky_relu_backward": of_two(lambda g, x, slope, _: g if x > 0 else g * slope),
    "hardswish": of_one(lambda x: x * clamp(x + 3.0, 0.0, 6.0) / 6.0),
    "hardswish_backward": of_two(
        lambda g, x: 0.0 if x < -3 else g * (x / 3.0 + 0.5) if x <= 3 else g
    ),
    "hardsigmoid": of_one(lambda x: clamp(x + 3.0, 0.0, 6.0) / 6.0),
    "hardsigmoid_backward": of_two(lambda g, x: g / 6.0 if -3 < x < 3 else 0.0),
    "hardtanh": of_one(lambda x, low=-1.0, high=1.0: clamp(x, low, high)),
    "hardtanh_backward": of_two(lambda g, x, low, high: g if low < x < high else 0.0),
    "hardshrink": of_one(lambda x, edge=0.5: 0.0 if abs(x) <= edge else x),
    "hardshrink_backward": of_two(_shrink_grad),
    "softshrink": of_one(
        lambda x, edge=0.5: 0.0 if abs(x) <= edge else x - edge if x > 0 else x + edge
    ),
    "softshrink_backward": of_two(_shrink_grad),
    "threshold": of_one(lambda x, edge, value: value if x <= edge else x),
    "threshold_backward": of_two(lambda g, x, edge: 0.0 if x <= edge else g),
    "log_sigmoid_forward": lambda x: (narrow(each(lambda v: -ref.softplus(-v), x)),),
    "log_sigmoid_backward": lambda g, x, _: narrow(each(lambda u, v: u * ref.sigmoid(-v), g, x)),
    "_prelu_kernel": of_two(lambda x, w: x if x > 0 else w * x),
    "_prelu_kernel_backward": lambda g, x, w: (
        narrow(each(lambda g, x, w: g if x > 0 else w * g, g, x, w)),
        narrow(each(lambda g, x: 0.0 if x > 0 else x * g, g, x)),
    ),
}
