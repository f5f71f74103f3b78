"""Every weight, gradient and moment in one piece of memory, and Adam as one kernel over it.

The weight gradients of a fused block are written where they belong by the block itself; those of
all other layers are copied there before the update. Adam's arithmetic is by element: the bits are
those of the optimizer that updates one weight after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from benchmarks.fused_block.block import list_weights
from seedless.core.config import TrainConfig
from seedless.models.conformer import Bottleneck


class FlatAdam(torch.optim.Adam):
    """Fused Adam over flat memory; ``flat`` is filled by `flatten`."""

    flat: dict[str, Tensor]
    copied: list[tuple[nn.Parameter, Tensor]]

    # torch declares two overloads, for steps with and without a closure; this one takes none.
    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update all weights from their gradients."""
        (group,), flat = self.param_groups, self.flat
        given = [(view, weight.grad) for weight, view in self.copied if weight.grad is not None]
        torch._foreach_copy_([view for view, _ in given], [grad for _, grad in given])
        for weight, _ in self.copied:
            weight.grad = None
        beta1, beta2 = group["betas"]
        adam(
            [flat["weights"]],
            [flat["gradients"]],
            [flat["exp_avg"]],
            [flat["exp_avg_sq"]],
            [],
            [flat["step"]],
            fused=True,
            capturable=group["capturable"],
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


def flatten(
    model: nn.Module, config: TrainConfig, device: torch.device
) -> tuple[FlatAdam, dict[Bottleneck, Tensor]]:
    """Move a model's weights into flat memory; return their optimizer and each block's gradients.

    Raises:
        ValueError: the configuration's optimizer is not Adam.
    """
    if config.optimizer != "adam":
        raise ValueError(f"expected the optimizer adam, got {config.optimizer}")
    blocks = [module for module in model.modules() if isinstance(module, Bottleneck)]
    inside = [weight for block in blocks for weight in list_weights(block)]
    known = {id(weight) for weight in inside}
    others = [weight for weight in model.parameters() if id(weight) not in known]
    ordered = [*inside, *others]
    size = sum(weight.numel() for weight in ordered)
    flat = {
        name: torch.zeros(size, device=device)
        for name in ("weights", "gradients", "exp_avg", "exp_avg_sq")
    }
    flat["step"] = torch.zeros((), device=device)
    rate = torch.tensor(config.rate, dtype=torch.float32, device=device)
    optimizer = FlatAdam(
        ordered,
        lr=rate,
        fused=True,
        capturable=device.type == "cuda",
        weight_decay=config.weight_decay,
    )
    views = {name: cut(flat[name], ordered) for name in flat if name != "step"}
    with torch.no_grad():
        for number, weight in enumerate(ordered):
            views["weights"][number].copy_(weight)
            weight.data = views["weights"][number]
            optimizer.state[weight] = {
                "step": flat["step"],
                "exp_avg": views["exp_avg"][number],
                "exp_avg_sq": views["exp_avg_sq"][number],
            }
    optimizer.flat = flat
    optimizer.copied = list(zip(others, views["gradients"][len(inside) :], strict=True))
    starts = [0]
    for block in blocks:
        starts.append(starts[-1] + sum(weight.numel() for weight in list_weights(block)))
    pieces = {
        block: flat["gradients"][starts[number] : starts[number + 1]]
        for number, block in enumerate(blocks)
    }
    return optimizer, pieces


def cut(flat: Tensor, weights: Sequence[Tensor] | Iterable[Tensor]) -> list[Tensor]:
    """Return views of a flat tensor, one after another, in the shapes and layouts of weights.

    A weight must fill its memory without gaps; its axes may be stored in any order.
    """
    views, start = [], 0
    for weight in weights:
        piece = flat[start : start + weight.numel()]
        views.append(piece.as_strided(weight.shape, weight.stride(), piece.storage_offset()))
        start += weight.numel()
    return views
