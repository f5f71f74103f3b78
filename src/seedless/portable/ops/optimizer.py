"""Steps of Adam, AdamW and SGD with the arguments of torch's fused ops.

Law for Adam (Kingma & Ba, 2015) at step t, in float64, with g the gradient plus weight_decay p:
    m = b1 m + (1 - b1) g  and  v = b2 v + (1 - b2) g g, each rounded to float32,
    p = p - (lr / (1 - b1^t)) m / (sqrt(v) / sqrt(1 - b2^t) + eps), rounded to float32.
AdamW (Loshchilov & Hutter, 2019) takes g as it is and first multiplies p by 1 - lr weight_decay.
Powers are products, from the lowest bit of t up: torch's other forms of Adam take powers from the
host's math library.

The argument lists of `adam` and `sgd` are aten's, which passes the settings by name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from seedless.portable.constants import STEP_BITS
from seedless.portable.exact.elementary import root
from seedless.portable.kernels import adam as adam_kernel
from seedless.portable.kernels import rows
from seedless.portable.ops.elementwise import BLOCK_ELEMENTS, Implementation
from seedless.portable.refusal import ADVICE, refuse

GPU_BLOCK_ELEMENTS = 1 << 22  # computed at a time on a GPU, where each launch takes time


def raise_to_steps(base: float, steps: Tensor) -> Tensor:
    """Return base^t in float64 for each whole t below 2^24, a product for each bit of t."""
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
        """Return the block's values as one float64 vector."""
        parts = [tensors[i].reshape(-1)[start:end] for i, start, end in self.pieces]
        return torch.cat(parts).to(torch.float64)

    def repeat(self, numbers: Sequence[Tensor]) -> Tensor:
        """Return each tensor's number, repeated for each of its values in the block."""
        return torch.cat([numbers[i].expand(end - start) for i, start, end in self.pieces])

    def write(self, tensors: Sequence[Tensor], values: Tensor) -> None:
        """Write a vector of the block's values back into the tensors."""
        parts = values.split([end - start for _, start, end in self.pieces])  # type: ignore[no-untyped-call]  # untyped in torch
        for (i, start, end), part in zip(self.pieces, parts, strict=True):
            target = tensors[i]
            if target.is_contiguous():
                target.view(-1)[start:end].copy_(part)
            else:
                target.copy_(part.view(target.shape))


def list_blocks(*lists: Sequence[Tensor]) -> list[Block]:
    """Return blocks that cover the tensors: many small ones at once, large ones piece by piece.

    ``lists``: tensors that are written to, list by list of the same shapes. A tensor that is not
    contiguous is one piece, since a piece of it cannot be written.
    """
    capacity = BLOCK_ELEMENTS if lists[0][0].is_cpu else GPU_BLOCK_ELEMENTS
    blocks, space = [Block([])], capacity
    for i, tensors in enumerate(zip(*lists, strict=True)):
        start, size = 0, tensors[0].numel()
        is_divisible = all(tensor.is_contiguous() for tensor in tensors)
        while start < size:
            end = min(size, start + space) if is_divisible else size
            blocks[-1].pieces.append((i, start, end))
            start, space = end, space - (end - start)
            if space <= 0:
                blocks.append(Block([]))
                space = capacity
    return [block for block in blocks if block.pieces]


def _make_scalar(value: float | Tensor, like: Tensor) -> Tensor:
    """Return a number, or a tensor that holds one, in float64 on the device of ``like``."""
    if isinstance(value, Tensor):
        return value.to(like.device, torch.float64)
    return torch.full((), value, dtype=torch.float64, device=like.device)


def _refuse_scaling(grad_scale: Tensor | None, found_inf: Tensor | None) -> None:
    if grad_scale is not None or found_inf is not None:
        raise refuse("a step with a gradient scaler", ADVICE["scaler"])


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
    """Take a step of Adam, or with ``decoupled`` of AdamW, in place.

    Every list has one tensor for each parameter: ``averages`` are m, ``squares`` v, ``largest`` the
    largest v so far (amsgrad alone), ``steps`` t.
    """
    _refuse_scaling(grad_scale, found_inf)
    if not parameters:
        return
    rate, dtype = _make_scalar(lr, parameters[0]), squares[0].dtype
    # [Step 1] Let compiled kernels take the steps of the parameters that they can.
    lists = (parameters, grads, averages, squares, steps)
    if not (amsgrad or maximize):
        settings = (beta1, beta2, weight_decay, eps)
        rest = adam_kernel.adam(lists, rate, settings, decoupled)
        if not rest:
            return
        parameters, grads, averages, squares, steps = ([each[i] for i in rest] for each in lists)
    # [Step 2] Find for each other parameter lr / (1 - b1^t) and sqrt(1 - b2^t).
    times = torch.stack([step.reshape(()) for step in steps])
    step_sizes = list((rate / (1.0 - raise_to_steps(beta1, times))).unbind())
    roots = list(root(1.0 - raise_to_steps(beta2, times)).unbind())
    # [Step 3] Compute their steps, block by block.
    for block in list_blocks(parameters, averages, squares):
        p, g, average, square = (
            block.read(each) for each in (parameters, grads, averages, squares)
        )
        g = g.neg_() if maximize else g
        if weight_decay and decoupled:
            p = p.mul_(1.0 - rate * weight_decay)
        elif weight_decay:
            g = g.add_(p * weight_decay)
        new_square = (g * g).mul_(1.0 - beta2)
        square = square.mul_(beta2).add_(new_square).to(dtype)
        average = average.mul_(beta1).add_(g.mul_(1.0 - beta1)).to(dtype)
        block.write(averages, average)
        block.write(squares, square)
        if amsgrad:
            old_largest = block.read(largest).to(dtype)
            square = torch.where(square > old_largest, square, old_largest)
            block.write(largest, square)
        divisor = root(square.to(torch.float64)).div_(block.repeat(roots)).add_(eps)
        update = average.to(torch.float64).mul_(block.repeat(step_sizes)).div_(divisor)
        block.write(parameters, p.sub_(update))


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
    """Take a step of SGD in place: p - lr d, d = g + weight_decay p.

    With momentum the buffer becomes b = momentum b + (1 - dampening) d (d in the first step),
    rounded to float32, and d is replaced by b, or with nesterov by d + momentum b.
    """
    _refuse_scaling(grad_scale, found_inf)
    settings, choices = (weight_decay, momentum, dampening), (nesterov, maximize, is_first_step)
    for i, parameter in enumerate(parameters):
        buffer = buffers[i] if momentum else None
        if rows.sgd(parameter, grads[i], buffer, _make_scalar(lr, parameter), settings, choices):
            continue
        p, g = parameter.to(torch.float64), grads[i].to(torch.float64)
        g = -g if maximize else g
        g = g + p * weight_decay if weight_decay else g
        if momentum:
            old = buffers[i].to(torch.float64) * momentum
            buffers[i].copy_(g if is_first_step else old + g * (1.0 - dampening))
            rounded = buffers[i].to(torch.float64)
            g = g + rounded * momentum if nesterov else rounded
        parameter.copy_(p - g * _make_scalar(lr, p))


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::_fused_adam_": partial(adam, decoupled=False),
    "aten::_fused_adam_.tensor_lr": partial(adam, decoupled=False),
    "aten::_fused_adamw_": partial(adam, decoupled=True),
    "aten::_fused_adamw_.tensor_lr": partial(adam, decoupled=True),
    "aten::_fused_sgd_": sgd,
    "aten::_fused_sgd_.tensor_lr": sgd,
}
