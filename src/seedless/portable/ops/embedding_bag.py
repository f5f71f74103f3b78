"""Sums and means of rows of an embedding table, bag by bag: nn.EmbeddingBag.

Law: a bag is the sum of its rows, on a grid for each column that all rows of the call share. A mean
is that sum divided by the number of rows, in float64. The gradient of a row of the table is the sum
over the positions that read it. Each is rounded once.
"""

from typing import Any

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.ops.elementwise import Implementation
from seedless.portable.ops.padding import sum_at

SUM, MEAN = 0, 1  # aten's numbers for a bag's mode; 2 is the maximum


def _check_options(scale_by_freq: bool, mode: int, sparse: bool, weights: Tensor | None) -> None:
    """Refuse the options that have no portable form."""
    refused = {
        "scale_grad_by_freq": scale_by_freq,
        "mode='max'": mode not in (SUM, MEAN),
        "sparse=True": sparse,
        "per_sample_weights": weights is not None,
    }
    if any(refused.values()):
        asked = ", ".join(name for name, is_on in refused.items() if is_on)
        raise NumericsError(
            f"portable embedding bags take sums and means of whole rows; got {asked}: use "
            "nn.Embedding and reduce its rows yourself"
        )


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the bags (bags, width), and what the gradient needs.

    That is the bag of each position, (positions,), the number of rows in each bag, (bags,), and
    zeros in place of the indices of maxima, which only mode 2 has.
    """
    _check_options(scale_grad_by_freq, mode, sparse, per_sample_weights)
    # [Step 1] Find the bag of each position: the last one that starts at or before it.
    starts = offsets[:-1] if include_last_offset else offsets
    positions = torch.arange(len(indices), device=indices.device)
    bag_of = (positions[:, None] >= starts[None, :]).sum(1) - 1
    # [Step 2] Count the rows of each bag, 1 for each position and 0 for padding.
    counts = torch.ones_like(bag_of)
    counts = counts if padding_idx < 0 else (indices != padding_idx).to(bag_of.dtype)
    sizes = torch.zeros(len(starts), dtype=bag_of.dtype, device=bag_of.device)
    sizes = sizes.index_add_(0, bag_of, counts)
    # [Step 3] Add the rows of each bag exactly, and divide.
    rows = weight.index_select(0, indices).to(torch.float64) * counts[:, None].to(torch.float64)
    out = sum_at(rows, 0, bag_of, len(starts))
    if mode == MEAN:
        out = out / sizes.clamp(min=1)[:, None].to(torch.float64)
    return out.to(weight.dtype), bag_of, sizes, torch.zeros_like(sizes)


def embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    bag_of: Tensor,
    sizes: Tensor,
    maximum_indices: Tensor,
    rows: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """Return (rows, width): each bag's gradient, or share of it, added to the rows it read."""
    _check_options(scale_grad_by_freq, mode, False, per_sample_weights)
    wide = grad.to(torch.float64)
    if mode == MEAN:
        wide = wide / sizes.clamp(min=1)[:, None].to(torch.float64)
    parts = wide.index_select(0, bag_of)
    if padding_idx >= 0:
        parts = torch.where((indices == padding_idx)[:, None], torch.zeros_like(parts), parts)
    return sum_at(parts, 0, indices, rows).to(grad.dtype)


def _backward_with_offsets(
    grad: Tensor, indices: Tensor, offsets: Tensor, *saved_and_options: Any
) -> Tensor:
    """Return `embedding_bag_backward` from aten's list with offsets and ``sparse``."""
    bag_of, sizes, maximum_indices, *options = saved_and_options
    rows, scale_by_freq, mode, sparse, weights, padding = [*options, -1][:6]
    _check_options(scale_by_freq, mode, sparse, weights)
    saved = (grad, indices, bag_of, sizes, maximum_indices)
    return embedding_bag_backward(*saved, rows, scale_by_freq, mode, weights, padding)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::_embedding_bag": embedding_bag,
    "aten::_embedding_bag_forward_only": embedding_bag,
    "aten::_embedding_bag_backward": _backward_with_offsets,
    "aten::_embedding_bag_dense_backward": embedding_bag_backward,
}
