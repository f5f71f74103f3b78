"""Adam, AdamW and SGD steps, through torch's fused ops, in float64 and rounded once.

Law for Adam at step t, with g the gradient (plus weight_decay p, but for AdamW, which first takes
p (1 - lr weight_decay)): m = b1 m + (1 - b1) g and v = b2 v + (1 - b2) g g, each rounded to
float32; p = p - (lr / (1 - b1^t)) m / (sqrt(v) / sqrt(1 - b2^t) + eps). Powers are products, from
the lowest bit of t up: torch's other forms take them from the host's math library.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.numerics.portable.arithmetic import Handler
from seedless.numerics.portable.elementary import root

STEP_BITS = 24  # a float32 counts steps exactly up to 2^24


def raise_to(base: float, steps: Tensor) -> Tensor:
    """Return base^t in float64 for each whole t below 2^24: products from the lowest bit up."""
    counts = steps.to(torch.int64)
    out = torch.ones_like(steps, dtype=torch.float64)
    for bit in range(STEP_BITS):
        out = torch.where((counts >> bit) & 1 == 1, out * base, out)
        base = base * base
    return out


def _number(value: float | Tensor, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value.to(like.device, torch.float64)
    return torch.full((), value, dtype=torch.float64, device=like.device)


def _refuse_scaling(grad_scale: Tensor | None, found_inf: Tensor | None) -> None:
    if grad_scale is not None or found_inf is not None:
        raise NumericsError("portable optimizers work without a gradient scaler; leave it out")


def adam(
    parameters: Sequence[Tensor],
    grads: Sequence[Tensor],
    averages: Sequence[Tensor],
    squares: Sequence[Tensor],
    largest: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    decoupled: bool,
    lr: float | Tensor,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """aten._fused_adam_ and aten._fused_adamw_: every tensor in place."""
    _refuse_scaling(grad_scale, found_inf)
    if not parameters:
        return
    times = torch.stack([step.reshape(()) for step in steps])
    rate = _number(lr, parameters[0])
    sizes = (rate / (1.0 - raise_to(beta1, times))).unbind()
    roots = root(1.0 - raise_to(beta2, times)).unbind()
    for i, parameter in enumerate(parameters):
        p, g = parameter.to(torch.float64), grads[i].to(torch.float64)
        g = -g if maximize else g
        if weight_decay:
            p, g = (p * (1.0 - rate * weight_decay), g) if decoupled else (p, g + p * weight_decay)
        averages[i].copy_(averages[i].to(torch.float64) * beta1 + g * (1.0 - beta1))
        squares[i].copy_(squares[i].to(torch.float64) * beta2 + g * g * (1.0 - beta2))
        square = squares[i]
        if amsgrad:
            square = largest[i].copy_(torch.where(square > largest[i], square, largest[i]))
        bottom = root(square.to(torch.float64)) / roots[i] + eps
        parameter.copy_(p - averages[i].to(torch.float64) * sizes[i] / bottom)


def sgd(
    parameters: Sequence[Tensor],
    grads: Sequence[Tensor],
    buffers: Sequence[Tensor],
    *,
    weight_decay: float,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """aten._fused_sgd_: p - lr (g + weight_decay p), with momentum where asked for."""
    _refuse_scaling(grad_scale, found_inf)
    for i, parameter in enumerate(parameters):
        p, g = parameter.to(torch.float64), grads[i].to(torch.float64)
        g = -g if maximize else g
        g = g + p * weight_decay if weight_decay else g
        if momentum:
            old = buffers[i].to(torch.float64) * momentum
            buffers[i].copy_(g if is_first_step else old + g * (1.0 - dampening))
            kept = buffers[i].to(torch.float64)
            g = g + kept * momentum if nesterov else kept
        parameter.copy_(p - g * _number(lr, p))


HANDLERS: dict[str, Handler] = {
    "_fused_adam_": partial(adam, decoupled=False),
    "_fused_adamw_": partial(adam, decoupled=True),
    "_fused_sgd_": sgd,
}
