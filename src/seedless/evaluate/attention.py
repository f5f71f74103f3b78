"""Attention maps: the mean attention weight of each time step, block by block.

The weights a of a block (heads, queries, keys) have rows that sum to 1. The value of step k is the
mean over heads and queries of a_hqk: how much of the block's output comes from step k. It belongs
to no class.
"""

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
    evaluation_mode,
    finish_maps,
    name_samples,
    to_float64,
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
        ids: names of the samples; by default their indices.
        batch: samples at a time.
    """
    parts = as_batches(samples, batch)
    count, shape = sum(map(len, parts)), parts[0].shape[2:]
    weights = [average_attention(model, part) for part in parts]
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
def average_attention(model: nn.Module, samples: Tensor) -> dict[str, Float64]:
    """Return the mean weight of each step, (n, steps) with sum 1, by name of the attention block.

    The weights are computed again from the input of each block, so that the forward pass and its
    bits are not changed.
    """
    blocks = {
        name: module for name, module in model.named_modules() if isinstance(module, SelfAttention)
    }
    if not blocks:
        raise ModelError(f"{type(model).__name__} has no attention; Grad-CAM works on any model")
    weights: dict[str, Float64] = {}
    handles = []
    for name, block in blocks.items():

        def record(module: nn.Module, inputs: tuple[Any, ...], name: str = name) -> None:
            assert isinstance(module, SelfAttention)
            weights[name] = to_float64(module.attend(inputs[0])[1]).mean(axis=(1, 2))

        handles.append(block.register_forward_pre_hook(record))
    device = next(model.parameters()).device
    try:
        with evaluation_mode(model):
            model(samples.to(device))
    finally:
        for handle in handles:
            handle.remove()
    return weights
