"""Adam, AdamW and SGD steps, as torch's fused ops, in float64 and rounded once.

Law for Adam at step t, with g the gradient (plus weight_decay p, but for AdamW, which first takes
p (1 - lr weight_decay)): m = b1 m + (1 - b1) g and v = b2 v + (1 - b2) g g, each rounded to
float32; p = p - (lr / (1 - b1^t)) m / (sqrt(v) / sqrt(1 - b2^t) + eps). Powers are products, from
the lowest bit of t up: torch's other forms take them from the host's math library.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.exact.elementary import root
from seedless.portable.kernels import rows
from seedless.portable.ops.elementwise import BLOCK_ELEMENTS, Implementation

GPU_BLOCK_ELEMENTS = 1 << 22  # computed at a time on a GPU, where each launch takes time
STEP_BITS = 24  # a float32 counts steps exactly up to 2^24


def raise_to(base: float, steps: Tensor) -> Tensor:
    """Return base^t in float64 for each whole t below 2^24: products from the lowest bit up."""
    counts = steps.to(torch.int64)
    out = torch.ones_like(steps, dtype=torch.float64)
    for bit in range(STEP_BITS):
        out = torch.where((counts >> bit) & 1 == 1, out * base, out)
        base = base * base
    return out


@dataclass
class Block:
    """Pieces of tensors that are computed together: index of the tensor, start and end in it."""

    pieces: list[tuple[int, int, int]]

    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the values in float64, one after another."""
        parts = [tensors[i].reshape(-1)[start:end] for i, start, end in self.pieces]
        return torch.cat(parts).to(torch.float64)

    def spread(self, numbers: Sequence[Tensor]) -> Tensor:
        """Return each tensor's number once for each of its values."""
        return torch.cat([numbers[i].expand(end - start) for i, start, end in self.pieces])

    def write(self, tensors: Sequence[Tensor], values: Tensor) -> None:
        """Write the values back into the tensors."""
        parts = values.split([end - start for _, start, end in self.pieces])  # type: ignore[no-untyped-call]  # untyped in torch
        for (i, start, end), part in zip(self.pieces, parts, strict=True):
            target = tensors[i]
            if target.is_contiguous():
                target.view(-1)[start:end].copy_(part)
            else:
                target.copy_(part.view(target.shape))


def cut(*lists: Sequence[Tensor]) -> list[Block]:
    """Return blocks that cover the tensors: many small ones at once, large ones piece by piece."""
    most = BLOCK_ELEMENTS if lists[0][0].is_cpu else GPU_BLOCK_ELEMENTS
    blocks, room = [Block([])], most
    for i, tensors in enumerate(zip(*lists, strict=True)):
        start, size = 0, tensors[0].numel()
        divisible = all(tensor.is_contiguous() for tensor in tensors)
        while start < size:
            end = min(size, start + room) if divisible else size
            blocks[-1].pieces.append((i, start, end))
            start, room = end, room - (end - start)
            if room <= 0:
                blocks.append(Block([]))
                room = most
    return [block for block in blocks if block.pieces]


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
    rate, kept = _number(lr, parameters[0]), squares[0].dtype
    sizes = list((rate / (1.0 - raise_to(beta1, times))).unbind())
    roots = list(root(1.0 - raise_to(beta2, times)).unbind())
    if not (amsgrad or maximize):
        settings = (beta1, beta2, weight_decay, eps)
        given = zip(parameters, grads, averages, squares, strict=True)
        numbers = zip(sizes, roots, strict=True)
        left = [
            i
            for i, (tensors, pair) in enumerate(zip(given, numbers, strict=True))
            if not rows.adam(tensors, (rate, *pair), settings, decoupled)
        ]
        if not left:
            return
        parameters, grads, averages, squares, sizes, roots = (
            [each[i] for i in left] for each in (parameters, grads, averages, squares, sizes, roots)
        )
    for block in cut(parameters, averages, squares):
        p, g, average, square = (
            block.read(each) for each in (parameters, grads, averages, squares)
        )
        g = g.neg_() if maximize else g
        if weight_decay and decoupled:
            p = p.mul_(1.0 - rate * weight_decay)
        elif weight_decay:
            g = g.add_(p * weight_decay)
        second = (g * g).mul_(1.0 - beta2)
        square = square.mul_(beta2).add_(second).to(kept)
        average = average.mul_(beta1).add_(g.mul_(1.0 - beta1)).to(kept)
        block.write(averages, average)
        block.write(squares, square)
        if amsgrad:
            most = block.read(largest).to(kept)
            square = torch.where(square > most, square, most)
            block.write(largest, square)
        bottom = root(square.to(torch.float64)).div_(block.spread(roots)).add_(eps)
        move = average.to(torch.float64).mul_(block.spread(sizes)).div_(bottom)
        block.write(parameters, p.sub_(move))


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
    settings, choices = (weight_decay, momentum, dampening), (nesterov, maximize, is_first_step)
    for i, parameter in enumerate(parameters):
        buffer = buffers[i] if momentum else None
        if rows.sgd(parameter, grads[i], buffer, _number(lr, parameter), settings, choices):
            continue
        p, g = parameter.to(torch.float64), grads[i].to(torch.float64)
        g = -g if maximize else g
        g = g + p * weight_decay if weight_decay else g
        if momentum:
            old = buffers[i].to(torch.float64) * momentum
            buffers[i].copy_(g if is_first_step else old + g * (1.0 - dampening))
            kept = buffers[i].to(torch.float64)
            g = g + kept * momentum if nesterov else kept
        parameter.copy_(p - g * _number(lr, p))


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::_fused_adam_": partial(adam, decoupled=False),
    "aten::_fused_adam_.tensor_lr": partial(adam, decoupled=False),
    "aten::_fused_adamw_": partial(adam, decoupled=True),
    "aten::_fused_adamw_.tensor_lr": partial(adam, decoupled=True),
    "aten::_fused_sgd_": sgd,
    "aten::_fused_sgd_.tensor_lr": sgd,
}
