"""Softmax and losses with their gradients, computed in float64 and rounded once.

Law: sums are exact (`exact.sums`), exponentials and logarithms those of `exact.elementary`. x is
the input, t the target, g the gradient of the result. The formulas are those of
torch.nn.functional; a loss is the formula's value for each element, or their mean or sum, as
``reduction`` says.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.context import CONTEXT
from seedless.portable.exact import elementary as e
from seedless.portable.exact.sums import divide, mean, total
from seedless.portable.kernels import rows
from seedless.portable.ops.elementwise import Implementation, map_rows, shape_along

NONE, MEAN = 0, 1  # aten's numbers for a loss's reduction; 2 is the sum


def _reduce(losses: Tensor, reduction: int) -> Tensor:
    """Return the losses, their mean or their sum, in float64."""
    if reduction == NONE:
        return losses
    return mean(losses) if reduction == MEAN else total(losses)


def _reduce_backward(grad: Tensor, like: Tensor, reduction: int) -> Tensor:
    """Return the gradient of each element's loss in float64, like x or a single number."""
    wide = grad.to(torch.float64)
    return divide(wide, float(like.numel())) if reduction == MEAN else wide


def _exponentiate(x: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return x - max(x), its exponential, and the sum of that over ``dim``, in float64."""
    if x.ndim == 0:
        centred = torch.zeros_like(x, dtype=torch.float64)
    else:
        centred = x.to(torch.float64) - (x.amax(dim, True) + 0.0).to(torch.float64)
    weights = e.exp(centred)
    return centred, weights, total(weights, dim, True)


def _apply_along(f: Callable[..., Tensor], dim: int, *inputs: Tensor) -> Tensor:
    """Return f(*inputs, dim), computed some rows at a time where ``dim`` is the last axis."""
    first = inputs[0]
    if first.ndim < 2 or dim % first.ndim != first.ndim - 1 or not first.numel():
        return f(*inputs, dim)
    rows = (x.reshape(-1, x.shape[-1]) for x in inputs)
    return map_rows(lambda *parts: [f(*parts, -1)], *rows)[0].view(first.shape)


def _is_last(x: Tensor, dim: int) -> bool:
    return x.ndim > 0 and dim % x.ndim == x.ndim - 1


def softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """Return exp(x) / sum(exp(x)) over ``dim``."""

    def apply(x: Tensor, dim: int) -> Tensor:
        _, weights, norm = _exponentiate(x, dim)
        return weights.div_(norm).to(x.dtype)

    out = None if CONTEXT.redirects_sums or not _is_last(x, dim) else rows.softmax(x)
    return _apply_along(apply, dim, x) if out is None else out


def safe_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Return the softmax, and zeros for a row of -infinity: a query that attends to nothing."""
    empty = (x == -math.inf).all(dim, keepdim=True)
    return torch.where(empty, torch.zeros_like(x), softmax(x, dim)).to(dtype or x.dtype)


def log_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """Return x - log(sum(exp(x))) over ``dim``."""
    centred, _, norm = _exponentiate(x, dim)
    return (centred - e.log(norm)).to(x.dtype)


def softmax_backward(grad: Tensor, y: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """Return y (g - sum(g y)), y the softmax."""

    def apply(grad: Tensor, y: Tensor, dim: int) -> Tensor:
        wide = y.to(torch.float64)
        product = grad.to(torch.float64) * wide
        return product.sub_(wide * total(product, dim, True)).to(dtype)

    fits = dtype == y.dtype and _is_last(y, dim) and not CONTEXT.redirects_sums
    out = rows.softmax_backward(grad, y) if fits else None
    return _apply_along(apply, dim, grad, y) if out is None else out


def log_softmax_backward(grad: Tensor, y: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """Return g - exp(y) sum(g), y the logarithm of the softmax."""
    wide = grad.to(torch.float64)
    return (wide - e.exp(y.to(torch.float64)) * total(wide, dim, True)).to(dtype)


def _find_class_axis(x: Tensor) -> int:
    return 0 if x.ndim == 1 else 1


def nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Return the loss -w[t] x[t] and the total weight, of the samples that are not ignored.

    x is ([batch,] classes, ...), t ([batch,] ...); a mean is divided by the total weight.
    """
    axis = _find_class_axis(x)
    is_counted = target != ignore_index
    classes = torch.where(is_counted, target, torch.zeros_like(target))
    losses = -x.gather(axis, classes.unsqueeze(axis)).squeeze(axis).to(torch.float64)
    weights = is_counted.to(torch.float64)
    if weight is not None:
        weights = weights * weight[classes].to(torch.float64)
    losses = torch.where(is_counted, losses * weights, torch.zeros_like(losses))
    total_weight = total(weights)
    if reduction == NONE:
        return losses.to(x.dtype), x.new_zeros(())
    out = total(losses)
    out = out / total_weight if reduction == MEAN else out
    return out.to(x.dtype), total_weight.to(x.dtype)


def nll_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """Return the gradient like x: -g weight (/ total weight) at the target's class, else zero."""
    axis = _find_class_axis(x)
    wide = grad.to(torch.float64)
    wide = wide / total_weight.to(torch.float64) if reduction == MEAN else wide
    shape = shape_along(axis, x.ndim)
    classes = torch.arange(x.shape[axis], device=x.device).view(shape)
    target, is_counted = target.unsqueeze(axis), (target != ignore_index).unsqueeze(axis)
    wide = wide.unsqueeze(axis) if reduction == NONE else wide
    if weight is not None:
        wide = wide * weight.to(torch.float64).view(shape)
    is_target = (classes == target) & is_counted
    return torch.where(is_target, -wide, torch.zeros_like(wide)).to(x.dtype)


def bce_with_logits(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    """Return (1 - t) x + (1 + (pos_weight - 1) t) log(1 + exp(-x)), times weight."""
    wide, t = x.to(torch.float64), target.to(torch.float64)
    soft = e.softplus(-wide)
    if pos_weight is not None:
        soft = soft * ((pos_weight.to(torch.float64) - 1.0) * t + 1.0)
    losses = (1.0 - t) * wide + soft
    losses = losses if weight is None else losses * weight.to(torch.float64)
    return _reduce(losses, reduction).to(x.dtype)


def bce(x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN) -> Tensor:
    """Return -t log x - (1 - t) log(1 - x), each logarithm at least -100, times weight."""
    wide, t = x.to(torch.float64), target.to(torch.float64)
    floor = -100.0
    losses = (t - 1.0) * e.log1p(-wide).clamp(min=floor) - t * e.log(wide).clamp(min=floor)
    losses = losses if weight is None else losses * weight.to(torch.float64)
    return _reduce(losses, reduction).to(x.dtype)


def bce_backward(
    grad: Tensor, x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """Return g weight (x - t) / max(x (1 - x), 1e-12)."""
    wide, t = x.to(torch.float64), target.to(torch.float64)
    slope = (wide - t) / ((1.0 - wide) * wide).clamp(min=1e-12)
    slope = slope if weight is None else slope * weight.to(torch.float64)
    return (_reduce_backward(grad, x, reduction) * slope).to(x.dtype)


def _subtract(x: Tensor, target: Tensor) -> Tensor:
    return x.to(torch.float64) - target.to(torch.float64)


def l1(x: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """Return |x - t|."""
    return _reduce(_subtract(x, target).abs(), reduction).to(x.dtype)


def mse(x: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """Return (x - t)^2."""
    d = _subtract(x, target)
    return _reduce(d * d, reduction).to(x.dtype)


def mse_backward(grad: Tensor, x: Tensor, target: Tensor, reduction: int) -> Tensor:
    """Return 2 g (x - t)."""
    d = _subtract(x, target)
    return (_reduce_backward(grad, x, reduction) * (d * 2.0)).to(x.dtype)


def huber(x: Tensor, target: Tensor, reduction: int = MEAN, delta: float = 1.0) -> Tensor:
    """Return d^2 / 2 for d = |x - t| up to delta, then delta (d - delta / 2)."""
    d = _subtract(x, target).abs()
    losses = torch.where(d <= delta, d * d * 0.5, (d - 0.5 * delta) * delta)
    return _reduce(losses, reduction).to(x.dtype)


def huber_backward(grad: Tensor, x: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    """Return g times x - t limited to [-delta, delta]."""
    d = _subtract(x, target)
    return (_reduce_backward(grad, x, reduction) * d.clamp(-delta, delta)).to(x.dtype)


def smooth_l1(x: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0) -> Tensor:
    """Return d^2 / (2 beta) for d = |x - t| below beta, then d - beta / 2."""
    _check_beta(beta)
    d = _subtract(x, target).abs()
    losses = torch.where(d < beta, divide(d * d * 0.5, beta), d - 0.5 * beta)
    return _reduce(losses, reduction).to(x.dtype)


def smooth_l1_backward(
    grad: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    """Return g times (x - t) / beta limited to [-1, 1]."""
    _check_beta(beta)
    d = _subtract(x, target)
    return (_reduce_backward(grad, x, reduction) * divide(d, beta).clamp(-1.0, 1.0)).to(x.dtype)


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
    "aten::l1_loss": l1,
    "aten::_safe_softmax": safe_softmax,
}
