"""References of the optimizers' steps, on one parameter's values at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.portable.reference import laws as ref
from tests.portable.reference.arrays import Reference, each, narrow, widen


def raise_to(base: float, steps: int) -> float:
    """base^steps as products from the lowest bit of steps up."""
    out = 1.0
    while steps:
        if steps & 1:
            out = out * base
        base = base * base
        steps >>= 1
    return out


def _adam(decoupled: bool) -> Reference:
    def apply(
        parameters: Sequence[Any],
        grads: Sequence[Any],
        averages: Sequence[Any],
        squares: Sequence[Any],
        largest: Sequence[Any],
        steps: Sequence[Any],
        *,
        lr: float,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
    ) -> None:
        """Every array in place."""
        for i, parameter in enumerate(parameters):
            t = int(steps[i])
            size = lr / (1.0 - raise_to(beta1, t))
            spread = ref.root(1.0 - raise_to(beta2, t))
            p, g = widen(parameter), widen(-grads[i] if maximize else grads[i])
            if decoupled:
                p = p * (1.0 - lr * weight_decay)
            else:
                g = g + p * weight_decay
            averages[i][:] = narrow(widen(averages[i]) * beta1 + g * (1.0 - beta1))
            squares[i][:] = narrow(widen(squares[i]) * beta2 + g * g * (1.0 - beta2))
            square = squares[i]
            if amsgrad:
                largest[i][:] = np.maximum(square, largest[i])
                square = largest[i]
            bottom = each(ref.root, square) / spread + eps
            parameter[:] = narrow(p - widen(averages[i]) * size / bottom)

    return apply


def sgd(
    parameters: Sequence[Any],
    grads: Sequence[Any],
    buffers: Sequence[Any],
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
) -> None:
    """p - lr (g + weight_decay p), with momentum."""
    for i, parameter in enumerate(parameters):
        p, g = widen(parameter), widen(-grads[i] if maximize else grads[i])
        g = g + p * weight_decay
        old = widen(buffers[i]) * momentum
        buffers[i][:] = narrow(g if is_first_step else old + g * (1.0 - dampening))
        kept = widen(buffers[i])
        g = g + kept * momentum if nesterov else kept
        parameter[:] = narrow(p - g * lr)


REFERENCES: dict[str, Reference] = {
    "_fused_adam_": _adam(False),
    "_fused_adamw_": _adam(True),
    "_fused_sgd_": sgd,
}
