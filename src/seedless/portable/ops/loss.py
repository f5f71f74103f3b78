"""Softmax and losses with their gradients, in float64 and rounded once."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.context import CONTEXT
from seedless.portable.exact import elementary as e
from seedless.portable.exact.sums import divide, mean, total
from seedless.portable.kernels import rows
from seedless.portable.ops.elementwise import Implementation, map_rows

NONE, MEAN = 0, 1  # aten's numbers for a loss's reduction; 2 is the sum


def _reduce(losses: Tensor, reduction: int) -> Tensor:
    if reduction == NONE:
        return losses
    return mean(losses) if reduction == MEAN else total(losses)


def _spread(grad: Tensor, like: Tensor, reduction: int) -> Tensor:
    """Return the gradient of each loss in float64."""
    wide = grad.to(torch.float64)
    return divide(wide, float(like.numel())) if reduction == MEAN else wide


def _weigh(x: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return x - max, its exponential, and the sum of that over ``dim``."""
    if x.ndim == 0:
        centred = torch.zeros_like(x, dtype=torch.float64)
    else:
        centred = x.to(torch.float64) - (x.amax(dim, True) + 0.0).to(torch.float64)
    weights = e.exp(centred)
    return centred, weights, total(weights, dim, True)


def _along(f: Callable[..., Tensor], dim: int, *inputs: Tensor) -> Tensor:
    """Return f(inputs, dim), for the last axis some rows at a time."""
    first = inputs[0]
    if first.ndim < 2 or dim % first.ndim != first.ndim - 1 or not first.numel():
        return f(*inputs, dim)
    rows = (x.reshape(-1, x.shape[-1]) for x in inputs)
    return map_rows(lambda *parts: [f(*parts, -1)], *rows)[0].view(first.shape)


def _is_last(x: Tensor, dim: int) -> bool:
    return x.ndim > 0 and dim % x.ndim == x.ndim - 1


def softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """exp(x) / sum(exp(x))."""

    def apply(x: Tensor, dim: int) -> Tensor:
        _, weights, norm = _weigh(x, dim)
        return weights.div_(norm).to(x.dtype)

    out = None if CONTEXT.redirects_sums or not _is_last(x, dim) else rows.softmax(x)
    return _along(apply, dim, x) if out is None else out


def safe_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Return the softmax, and zeros for a row of -infinity: a query that attends to nothing."""
    empty = (x == -math.inf).all(dim, keepdim=True)
    return torch.where(empty, torch.zeros_like(x), softmax(x, dim)).to(dtype or x.dtype)


def log_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """x - log(sum(exp(x)))."""
    centred, _, norm = _weigh(x, dim)
    return (centred - e.log(norm)).to(x.dtype)


def softmax_backward(grad: Tensor, y: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """y (g - sum(g y))."""

    def apply(grad: Tensor, y: Tensor, dim: int) -> Tensor:
        wide = y.to(torch.float64)
        product = grad.to(torch.float64) * wide
        return product.sub_(wide * total(product, dim, True)).to(dtype)

    fits = dtype == y.dtype and _is_last(y, dim) and not CONTEXT.redirects_sums
    out = rows.softmax_backward(grad, y) if fits else None
    return _along(apply, dim, grad, y) if out is None else out


def log_softmax_backward(grad: Tensor, y: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """g - exp(y) sum(g)."""
    wide = grad.to(torch.float64)
    return (wide - e.exp(y.to(torch.float64)) * total(wide, dim, True)).to(dtype)


def _class_axis(x: Tensor) -> int:
    return 0 if x.ndim == 1 else 1


def nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Return the loss and the total weight of the samples that count."""
    axis = _class_axis(x)
    counts = target != ignore_index
    chosen = torch.where(counts, target, torch.zeros_like(target))
    picked = -x.gather(axis, chosen.unsqueeze(axis)).squeeze(axis).to(torch.float64)
    weights = counts.to(torch.float64)
    if weight is not None:
        weights = weights * weight[chosen].to(torch.float64)
    losses = torch.where(counts, picked * weights, torch.zeros_like(picked))
    everything = total(weights)
    if reduction == NONE:
        return losses.to(x.dtype), x.new_zeros(())
    out = total(losses)
    out = out / everything if reduction == MEAN else out
    return out.to(x.dtype), everything.to(x.dtype)


def nll_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    everything: Tensor,
) -> Tensor:
    """- weight / total weight at the target's class, elsewhere zero."""
    axis = _class_axis(x)
    wide = grad.to(torch.float64)
    wide = wide / everything.to(torch.float64) if reduction == MEAN else wide
    shape = [-1 if a == axis else 1 for a in range(x.ndim)]
    classes = torch.arange(x.shape[axis], device=x.device).view(shape)
    place, counts = target.unsqueeze(axis), (target != ignore_index).unsqueeze(axis)
    wide = wide.unsqueeze(axis) if reduction == NONE else wide
    if weight is not None:
        wide = wide * weight.to(torch.float64).view(shape)
    return torch.where((classes == place) & counts, -wide, torch.zeros_like(wide)).to(x.dtype)


def bce_with_logits(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    """(1 - t) x + (1 + (w - 1) t) log(1 + exp(-x))."""
    wide, t = x.to(torch.float64), target.to(torch.float64)
    soft = e.softplus(-wide)
    if pos_weight is not None:
        soft = soft * ((pos_weight.to(torch.float64) - 1.0) * t + 1.0)
    losses = (1.0 - t) * wide + soft
    losses = losses if weight is None else losses * weight.to(torch.float64)
    return _reduce(losses, reduction).to(x.dtype)


def bce(x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN) -> Tensor:
    """- t log x - (1 - t) log(1 - x), each logarithm at least -100."""
    wide, t = x.to(torch.float64), target.to(torch.float64)
    floor = -100.0
    losses = (t - 1.0) * e.log1p(-wide).clamp(min=floor) - t * e.log(wide).clamp(min=floor)
    losses = losses if weight is None else losses * weight.to(torch.float64)
    return _reduce(losses, reduction).to(x.dtype)


def bce_backward(
    grad: Tensor, x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """(x - t) / max(x (1 - x), 1e-12)."""
    wide, t = x.to(torch.float64), target.to(torch.float64)
    slope = (wide - t) / ((1.0 - wide) * wide).clamp(min=1e-12)
    slope = slope if weight is None else slope * weight.to(torch.float64)
    return (_spread(grad, x, reduction) * slope).to(x.dtype)


def mse(x: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """(x - t)^2."""
    gap = x.to(torch.float64) - target.to(torch.float64)
    return _reduce(gap * gap, reduction).to(x.dtype)


def mse_backward(grad: Tensor, x: Tensor, target: Tensor, reduction: int) -> Tensor:
    """2 (x - t)."""
    gap = x.to(torch.float64) - target.to(torch.float64)
    return (_spread(grad, x, reduction) * (gap * 2.0)).to(x.dtype)


def huber(x: Tensor, target: Tensor, reduction: int = MEAN, delta: float = 1.0) -> Tensor:
    """gap^2 / 2 up to delta, then delta (gap - delta / 2)."""
    gap = (x.to(torch.float64) - target.to(torch.float64)).abs()
    losses = torch.where(gap <= delta, gap * gap * 0.5, (gap - 0.5 * delta) * delta)
    return _reduce(losses, reduction).to(x.dtype)


def huber_backward(grad: Tensor, x: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    """Return x - t within [-delta, delta], times the gradient."""
    gap = x.to(torch.float64) - target.to(torch.float64)
    return (_spread(grad, x, reduction) * gap.clamp(-delta, delta)).to(x.dtype)


def smooth_l1(x: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0) -> Tensor:
    """gap^2 / (2 beta) up to beta, then gap - beta / 2."""
    _check_beta(beta)
    gap = (x.to(torch.float64) - target.to(torch.float64)).abs()
    losses = torch.where(gap < beta, divide(gap * gap * 0.5, beta), gap - 0.5 * beta)
    return _reduce(losses, reduction).to(x.dtype)


def smooth_l1_backward(
    grad: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    """Return (x - t) / beta within [-1, 1], times the gradient."""
    _check_beta(beta)
    gap = x.to(torch.float64) - target.to(torch.float64)
    return (_spread(grad, x, reduction) * divide(gap, beta).clamp(-1.0, 1.0)).to(x.dtype)


def _check_beta(beta: float) -> None:
    if beta <= 0:
        raise NumericsError(
            f"portable smooth_l1_loss needs beta above 0, got {beta!r}; use l1_loss"
        )


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::_softmax": softmax,
    "aten::_softmax_backward_data": softmax_backward,
    "aten::_log_softmax": log_softmax,
    "aten::_log_softmax_backward_data": log_softmax_backward,
    "aten::nll_loss_forward": nll_loss,
    "aten::nll_loss_backward": nll_loss_backward,
    "aten::nll_loss2d_forward": nll_loss,
    "aten::nll_loss2d_backward": nll_loss_backward,
    "aten::binary_cross_entropy_with_logits": bce_with_logits,
    "aten::binary_cross_entropy": bce,
    "aten::binary_cross_entropy_backward": bce_backward,
    "aten::mse_loss": mse,
    "aten::mse_loss_backward": mse_backward,
    "aten::huber_loss": huber,
    "aten::huber_loss_backward": huber_backward,
    "aten::smooth_l1_loss": smooth_l1,
    "aten::smooth_l1_loss_backward": smooth_l1_backward,
    "aten::l1_loss": lambda x, t, reduction=MEAN: _reduce(
        (x.to(torch.float64) - t.to(torch.float64)).abs(), reduction
    ).to(x.dtype),
    "aten::_safe_softmax": safe_softmax,
}
