"""References of softmax and losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.portable.reference import laws as ref
from tests.portable.reference.arrays import Array, Reference, each, mean, narrow, total, widen

MEAN = 1


def _weigh(x: Any, dim: int) -> tuple[Array, Array, Array]:
    centred = widen(x) - (widen(x).max(axis=(dim,), keepdims=True) + 0.0)
    weights = each(ref.exp, centred)
    return centred, weights, total(weights, dim, True)


def softmax(x: Any, dim: int, half: bool = False) -> Array:
    """exp(x) over its sum."""
    _, weights, norm = _weigh(x, dim)
    return narrow(weights / norm)


def safe_softmax(x: Any, dim: int) -> Array:
    """Softmax, zeros for a row of nothing but -infinity."""
    empty = (widen(x) == -math.inf).all(axis=dim, keepdims=True)
    with np.errstate(invalid="ignore"):
        return narrow(np.where(empty, 0.0, softmax(np.where(empty, 0.0, x), dim)))


def log_softmax(x: Any, dim: int, half: bool = False) -> Array:
    """X - log of the sum of exp(x)."""
    centred, _, norm = _weigh(x, dim)
    return narrow(centred - each(ref.log, norm))


def softmax_backward(grad: Any, y: Any, dim: int, _: Any) -> Array:
    """y (g - sum(g y))."""
    product = widen(grad) * widen(y)
    return narrow(product - widen(y) * total(product, dim, True))


def log_softmax_backward(grad: Any, y: Any, dim: int, _: Any) -> Array:
    """G - exp(y) sum(g)."""
    return narrow(widen(grad) - each(ref.exp, y) * total(grad, dim, True))


def _reduce(losses: Array, reduction: int) -> Array:
    return narrow([losses, mean(losses), total(losses)][reduction] if reduction else losses)


def _share(grad: Any, x: Any, reduction: int) -> Array:
    return widen(grad) / float(x.size) if reduction == MEAN else widen(grad)


def nll(x: Any, target: Any, weight: Any, reduction: int, ignored: int) -> tuple[Array, Array]:
    """The loss and the weight of what counts."""
    losses, weights = np.zeros(target.shape), np.zeros(target.shape)
    for place in np.ndindex(*target.shape):
        label = int(target[place])
        if label != ignored:
            weights[place] = 1.0 if weight is None else float(weight[label])
            losses[place] = -float(x[(place[0], label, *place[1:])]) * weights[place]
    if reduction == 0:
        return narrow(losses), narrow(0.0)
    everything = total(weights)
    out = total(losses)
    return narrow(out / everything if reduction == MEAN else out), narrow(everything)


def nll_backward(
    grad: Any, x: Any, target: Any, weight: Any, reduction: int, ignored: int, everything: Any
) -> Array:
    """- weight / total weight at the target's class."""
    out = np.zeros(x.shape)
    for place in np.ndindex(*target.shape):
        label = int(target[place])
        if label != ignored:
            g = float(grad[place] if reduction == 0 else grad)
            g = g / float(everything) if reduction == MEAN else g
            out[(place[0], label, *place[1:])] = -(
                g if weight is None else g * float(weight[label])
            )
    return narrow(out)


def bce_logits(x: Any, t: Any, weight: Any, positive: Any, reduction: int) -> Array:
    """(1 - t) x + (1 + (w - 1) t) log(1 + exp(-x))."""
    x, t = widen(x), widen(t)
    soft = each(lambda v: ref.softplus(-v), x)
    soft = soft if positive is None else soft * ((widen(positive) - 1.0) * t + 1.0)
    losses = (1.0 - t) * x + soft
    return _reduce(losses if weight is None else losses * widen(weight), reduction)


def bce(x: Any, t: Any, weight: Any, reduction: int) -> Array:
    """- t log x - (1 - t) log(1 - x)."""
    one = each(lambda v, t: (t - 1.0) * max(ref.log1p(-v), -100.0), x, t)
    two = each(lambda v, t: t * max(ref.log(v), -100.0), x, t)
    losses = one - two
    return _reduce(losses if weight is None else losses * widen(weight), reduction)


def bce_backward(grad: Any, x: Any, t: Any, weight: Any, reduction: int) -> Array:
    """(x - t) / max(x (1 - x), 1e-12)."""
    slope = each(lambda v, t: (v - t) / max((1.0 - v) * v, 1e-12), x, t)
    slope = slope if weight is None else slope * widen(weight)
    return narrow(_share(grad, x, reduction) * slope)


def _gap_loss(f: Callable[..., float]) -> Reference:
    return lambda x, t, reduction=MEAN, *numbers: _reduce(
        each(lambda a, b: f(a - b, *numbers), x, t), reduction
    )


def _gap_grad(f: Callable[..., float]) -> Reference:
    return lambda g, x, t, reduction, *numbers: narrow(
        _share(g, x, reduction) * each(lambda a, b: f(a - b, *numbers), x, t)
    )


def _huber(gap: float, delta: float) -> float:
    gap = abs(gap)
    return gap * gap * 0.5 if gap <= delta else (gap - 0.5 * delta) * delta


def _smooth(gap: float, beta: float) -> float:
    gap = abs(gap)
    return gap * gap * 0.5 / beta if gap < beta else gap - 0.5 * beta


REFERENCES: dict[str, Reference] = {
    "_softmax": softmax,
    "_safe_softmax": safe_softmax,
    "_log_softmax": log_softmax,
    "_softmax_backward_data": softmax_backward,
    "_log_softmax_backward_data": log_softmax_backward,
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), nll),
    **dict.fromkeys(("nll_loss_backward", "nll_loss2d_backward"), nll_backward),
    "binary_cross_entropy_with_logits": bce_logits,
    "binary_cross_entropy": bce,
    "binary_cross_entropy_backward": bce_backward,
    "mse_loss": _gap_loss(lambda gap: gap * gap),
    "mse_loss_backward": _gap_grad(lambda gap: gap * 2.0),
    "l1_loss": _gap_loss(abs),
    "huber_loss": _gap_loss(_huber),
    "huber_loss_backward": _gap_grad(lambda gap, delta: min(max(gap, -delta), delta)),
    "smooth_l1_loss": _gap_loss(_smooth),
    "smooth_l1_loss_backward": _gap_grad(lambda gap, beta: min(max(gap / beta, -1.0), 1.0)),
}
