"""Activations and their gradients, computed in float64 and rounded once.

The formulas are those of torch.nn.functional. In a gradient g is the gradient of the result and y
the result; a slope is the derivative of the activation.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from seedless.portable import constants as c
from seedless.portable.exact import elementary as e
from seedless.portable.kernels.rows import apply_map
from seedless.portable.ops.elementwise import (
    Implementation,
    clamp,
    compute_in_float64,
    in_float64,
    with_kernel,
)

_CUBIC = 0.044715  # of GELU's tanh form (Hendrycks & Gimpel, 2016)


def gradient_in_float64(f: Callable[..., Tensor]) -> Implementation:
    """Return f(gradient, x, *numbers) computed in float64 and rounded to the gradient's type."""

    def apply(grad: Tensor, x: Tensor, *numbers: Any, **named: Any) -> Tensor:
        return compute_in_float64(lambda g, v: f(g, v, *numbers, **named), grad, x)

    return apply


def in_float64_with_options(f: Callable[..., Tensor]) -> Implementation:
    """Return f(x, *numbers) computed in float64 and rounded to x's type."""

    def apply(x: Tensor, *numbers: Any, **named: Any) -> Tensor:
        return compute_in_float64(lambda v: f(v, *numbers, **named), x)

    return apply


def _gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """Return x (1 + s) / 2, s = erf(x / sqrt 2) or its approximation by tanh."""
    s = e.erf(x * c.ROOT_HALF) if approximate == "none" else _approximate_erf(x)[0]
    return s.add_(1.0).mul_(0.5).mul_(x)


def _gelu_grad(grad: Tensor, x: Tensor, approximate: str = "none") -> Tensor:
    """Return g (1 + s + x s') / 2."""
    if approximate == "none":
        s = e.erf(x * c.ROOT_HALF)
        slope = e.exp(x * x * -0.5).mul_(c.ROOT_2_PER_PI)
    else:
        s, inner_slope = _approximate_erf(x)
        slope = (1.0 - s * s) * inner_slope
    return s.add_(1.0).add_(slope.mul_(x)).mul_(0.5).mul_(grad)


def _approximate_erf(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return tanh(sqrt(2/pi) (x + 0.044715 x^3)) and the derivative of its argument."""
    square = x * x
    s = e.tanh((square * x * _CUBIC + x) * c.ROOT_2_PER_PI)
    return s, (square * (3 * _CUBIC) + 1.0) * c.ROOT_2_PER_PI


def _silu_grad(grad: Tensor, x: Tensor) -> Tensor:
    """Return g s (1 + x (1 - s)), s the sigmoid of x."""
    s = e.sigmoid(x)
    return grad * (s * (x * (1.0 - s) + 1.0))


def _softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Return log(1 + exp(beta x)) / beta, and x where beta x is above the threshold."""
    scaled = x * beta
    soft = e.softplus(scaled) / torch.full_like(x, beta)
    return torch.where(scaled > threshold, x, soft)


def _softplus_grad(grad: Tensor, x: Tensor, beta: float, threshold: float) -> Tensor:
    """Return g sigmoid(beta x), and g where beta x is above the threshold."""
    scaled = x * beta
    return torch.where(scaled > threshold, grad, grad * e.sigmoid(scaled))


def _elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """Return scale x above zero, else scale alpha (exp(input_scale x) - 1)."""
    return torch.where(x > 0, x * scale, e.expm1(x * input_scale) * (alpha * scale))


def _elu_grad(
    grad: Tensor, x: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool
) -> Tensor:
    """Return the gradient of `_elu`; with ``is_result`` x is its result, as of an op in place."""
    below = x + alpha * scale if is_result else e.exp(x * input_scale) * (alpha * scale)
    return torch.where(x > 0, grad * scale, grad * (below * input_scale))


def elu_backward(
    grad: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, x: Tensor
) -> Tensor:
    """Return the gradient of elu, with aten's order of arguments."""
    out: Tensor = gradient_in_float64(_elu_grad)(grad, x, alpha, scale, input_scale, is_result)
    return out


def _leaky(x: Tensor, slope: float = 0.01) -> Tensor:
    return torch.where(x > 0, x, x * slope)


def _leaky_grad(grad: Tensor, x: Tensor, slope: float, is_result: bool) -> Tensor:
    return torch.where(x > 0, grad, grad * slope)


def _hardswish(x: Tensor) -> Tensor:
    """Return x clamp(x + 3, 0, 6) / 6."""
    return x * clamp(x + 3.0, 0.0, 6.0) / torch.full_like(x, 6.0)


def _hardswish_grad(grad: Tensor, x: Tensor) -> Tensor:
    """Return g (x / 3 + 1/2) within [-3, 3], zero below and g above."""
    middle = grad * (x / torch.full_like(x, 3.0) + 0.5)
    return torch.where(x < -3, torch.zeros_like(x), torch.where(x <= 3, middle, grad))


def _hardsigmoid(x: Tensor) -> Tensor:
    """Return clamp(x + 3, 0, 6) / 6."""
    return clamp(x + 3.0, 0.0, 6.0) / torch.full_like(x, 6.0)


def _hardsigmoid_grad(grad: Tensor, x: Tensor) -> Tensor:
    """Return g / 6 within (-3, 3), else zero."""
    is_inside = (x > -3) & (x < 3)
    return torch.where(is_inside, grad / torch.full_like(x, 6.0), torch.zeros_like(x))


def _mish_grad(grad: Tensor, x: Tensor) -> Tensor:
    """Return g (u + x s (1 - u^2)), u = tanh(softplus(x)), s the sigmoid of x."""
    u, s = e.tanh(e.softplus(x)), e.sigmoid(x)
    return grad * (u + x * s * (1.0 - u * u))


def _hardtanh(x: Tensor, low: float = -1, high: float = 1) -> Tensor:
    return clamp(x, low, high)  # torch's own may or may not keep a zero's sign


def _hardtanh_grad(grad: Tensor, x: Tensor, low: float, high: float) -> Tensor:
    return torch.where((x <= low) | (x >= high), torch.zeros_like(x), grad)


def _log_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return -log(1 + exp(-x)), and an empty buffer, which aten has for its gradient."""
    return (-e.softplus(-x.to(torch.float64))).to(x.dtype), x.new_empty(0)


def _log_sigmoid_grad(grad: Tensor, x: Tensor, _: Tensor) -> Tensor:
    out: Tensor = gradient_in_float64(lambda g, v: g * e.sigmoid(-v))(grad, x)
    return out


def _softshrink(x: Tensor, edge: float = 0.5) -> Tensor:
    """Return x moved towards zero by ``edge``, and zero where |x| is at most ``edge``."""
    moved = torch.where(x > 0, x - edge, x + edge)
    return torch.where(x.abs() <= edge, torch.zeros_like(x), moved)


def _shrink_grad(grad: Tensor, x: Tensor, edge: float) -> Tensor:
    return torch.where((x >= -edge) & (x <= edge), torch.zeros_like(grad), grad)


def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """Return x where it is positive, else weight x."""
    return torch.where(x > 0, x, weight * x)


def prelu_backward(grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of x and of the weight, the second for each element of x."""
    zero = torch.zeros_like(grad)
    return torch.where(x > 0, grad, weight * grad), torch.where(x > 0, zero, x * grad)


def glu(x: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of ``dim`` times the sigmoid of the second."""
    a, b = x.to(torch.float64).chunk(2, dim)
    return (a * e.sigmoid(b)).to(x.dtype)


def glu_backward(grad: Tensor, x: Tensor, dim: int) -> Tensor:
    """Return the gradients of both halves, joined along ``dim``."""
    a, b = x.to(torch.float64).chunk(2, dim)
    wide, s = grad.to(torch.float64), e.sigmoid(b)
    return torch.cat([wide * s, wide * a * (s * (1.0 - s))], dim).to(x.dtype)


def threshold_backward(grad: Tensor, x: Tensor, threshold: float) -> Tensor:
    """Return the gradient where x is above the threshold or NaN, else zero."""
    out = apply_map("relu_backward", grad, x) if threshold == 0 else None
    return torch.where(x <= threshold, torch.zeros_like(grad), grad) if out is None else out


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::gelu": with_kernel("gelu", in_float64_with_options(_gelu)),
    "aten::gelu_backward": with_kernel("gelu_backward", gradient_in_float64(_gelu_grad)),
    "aten::silu": with_kernel("silu", in_float64(lambda x: x * e.sigmoid(x))),
    "aten::silu_backward": with_kernel("silu_backward", gradient_in_float64(_silu_grad)),
    "aten::mish": in_float64(lambda x: x * e.tanh(e.softplus(x))),
    "aten::mish_backward": gradient_in_float64(_mish_grad),
    "aten::sigmoid_backward": gradient_in_float64(lambda grad, y: grad * (y * (1.0 - y))),
    "aten::tanh_backward": gradient_in_float64(lambda grad, y: grad * (1.0 - y * y)),
    "aten::glu": glu,
    "aten::glu_backward": glu_backward,
    "aten::softplus": in_float64_with_options(_softplus),
    "aten::softplus_backward": gradient_in_float64(_softplus_grad),
    "aten::elu": in_float64_with_options(_elu),
    "aten::elu_backward": elu_backward,
    "aten::celu": in_float64_with_options(lambda x, alpha=1.0: _elu(x, alpha, 1.0, 1.0 / alpha)),
    "aten::leaky_relu": in_float64_with_options(_leaky),
    "aten::leaky_relu_backward": gradient_in_float64(_leaky_grad),
    "aten::hardswish": in_float64(_hardswish),
    "aten::hardswish_backward": gradient_in_float64(_hardswish_grad),
    "aten::hardsigmoid": in_float64(_hardsigmoid),
    "aten::hardsigmoid_backward": gradient_in_float64(_hardsigmoid_grad),
    "aten::hardtanh": in_float64_with_options(_hardtanh),
    "aten::hardtanh_backward": gradient_in_float64(_hardtanh_grad),
    "aten::log_sigmoid_forward": _log_sigmoid,
    "aten::log_sigmoid_backward": _log_sigmoid_grad,
    "aten::_prelu_kernel": prelu,
    "aten::_prelu_kernel_backward": prelu_backward,
    "aten::threshold": lambda x, t, value: torch.where(x <= t, torch.full_like(x, value), x),
    "aten::hardshrink": lambda x, edge=0.5: torch.where(x.abs() <= edge, torch.zeros_like(x), x),
    "aten::hardshrink_backward": _shrink_grad,
    "aten::softshrink": in_float64_with_options(_softshrink),
    "aten::softshrink_backward": _shrink_grad,
    "aten::threshold_backward": threshold_backward,
}
