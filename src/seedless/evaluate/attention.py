"""What attention looks at: the weight each moment receives, block by block.

A block's weights a (heads, queries, keys) have rows that sum to 1. Key k's value is the mean over
heads and queries of a_hqk: how much of the block's output comes from moment k. It belongs to no
class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seedless.core.errors import ModelError
from seedless.evaluate.attribution import (
    Attribution,
    Float64,
    as_batches,
    finish_maps,
    name_samples,
    to_float64,
    undisturbed,
)
from seedless.models.layers import SelfAttention


def explain_attention(
    model: nn.Module,
    samples: NDArray[np.float32] | Tensor,
    *,
    ids: Sequence[str] | None = None,
    batch: int = 64,
) -> tuple[Attribution, ...]:
    """Return one attribution for each attention block, from the first to the last.

    Args:
        model: a model with `SelfAttention` blocks, such as the conformer.
        samples: (n, leads, time), as the model receives them.
        ids: names of the samples; their places where left out.
        batch: samples at a time.
    """
    parts = as_batches(samples, batch)
    count, shape = sum(map(len, parts)), parts[0].shape[2:]
    weights = [weigh_moments(model, part) for part in parts]
    return tuple(
        Attribution(
            ids=name_samples(ids, count),
            classes=("",) * count,
            method="attention",
            layer=layer,
            maps=finish_maps(np.concatenate([part[layer] for part in weights]), shape),
        )
        for layer in weights[0]
    )


@torch.no_grad()
def weigh_moments(model: nn.Module, samples: Tensor) -> dict[str, Float64]:
    """Return (n, steps) for each attention block by name: its mean weight on each step, sum 1.

    Each block's weights are computed again from what the block receives, so that the forward pass
    itself, and its bits, are the model's own.
    """
    blocks = {
        name: module for name, module in model.named_modules() if isinstance(module, SelfAttention)
    }
    if not blocks:
        raise ModelError(f"{type(model).__name__} has no attention; Grad-CAM works on any model")
    found: dict[str, Float64] = {}
    handles = []
    for name, block in blocks.items():

        def watch(module: nn.Module, inputs: tuple[Any, ...], name: str = name) -> None:
            assert isinstance(module, SelfAttention)
            found[name] = to_float64(module.attend(inputs[0])[1]).mean(axis=(1, 2))

        handles.append(block.register_forward_pre_hook(watch))
    device = next(model.parameters()).device
    try:
        with undisturbed(model):
            model(samples.to(device))
    finally:
        for handle in handles:
            handle.remove()
    return found
