"""Sums and means of embedding rows, bag by bag: nn.EmbeddingBag.

Law: a bag's rows are added on the grid of each column of all rows taken, the mean is that sum over
the bag's count, and each is rounded once; so is a row's gradient, the sum over its places.
"""

from typing import Any

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.ops.elementwise import Implementation
from seedless.portable.ops.padding import gather_back

SUM, MEAN = 0, 1  # aten's numbers for a bag's mode; 2 is the maximum


def _check(scale_by_freq: bool, mode: int, sparse: bool, weights: Tensor | None) -> None:
    found = {
        "scale_grad_by_freq": scale_by_freq,
        "mode='max'": mode not in (SUM, MEAN),
        "sparse=True": sparse,
        "per_sample_weights": weights is not None,
    }
    if any(found.values()):
        asked = ", ".join(name for name, on in found.items() if on)
        raise NumericsError(
            f"portable embedding bags take sums and means of whole rows; got {asked}: use "
            "nn.Embedding and reduce its rows yourself"
        )


def embedding_bag(
    weight: Tensor,
    places: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the bags, the bag of each place, the size of each bag, and nothing for maxima."""
    _check(scale_grad_by_freq, mode, sparse, per_sample_weights)
    starts = offsets[:-1] if include_last_offset else offsets
    order = torch.arange(len(places), device=places.device)
    bags = (order[:, None] >= starts[None, :]).sum(1) - 1
    counted = torch.ones_like(bags) if padding_idx < 0 else (places != padding_idx).to(bags.dtype)
    sizes = torch.zeros(len(starts), dtype=bags.dtype, device=bags.device)
    sizes = sizes.index_add_(0, bags, counted)
    rows = weight.index_select(0, places).to(torch.float64) * counted[:, None].to(torch.float64)
    out = gather_back(rows, 0, bags, len(starts))
    if mode == MEAN:
        out = out / sizes.clamp(min=1)[:, None].to(torch.float64)
    return out.to(weight.dtype), bags, sizes, torch.zeros_like(sizes)


def embedding_bag_backward(
    grad: Tensor,
    places: Tensor,
    bags: Tensor,
    sizes: Tensor,
    _: Tensor,
    rows: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """Add the gradient of each bag, or its share of it, to the rows in the bag."""
    _check(scale_grad_by_freq, mode, False, per_sample_weights)
    wide = grad.to(torch.float64)
    if mode == MEAN:
        wide = wide / sizes.clamp(min=1)[:, None].to(torch.float64)
    parts = wide.index_select(0, bags)
    if padding_idx >= 0:
        parts = torch.where((places == padding_idx)[:, None], torch.zeros_like(parts), parts)
    return gather_back(parts, 0, places, rows).to(grad.dtype)


def _backward(
    grad: Tensor, places: Tensor, _: Tensor, bags: Tensor, sizes: Tensor, tops: Tensor, *rest: Any
) -> Tensor:
    """aten._embedding_bag_backward: the same, with offsets and the choice of a sparse gradient."""
    rows, scale_by_freq, mode, sparse, weights, padding = [*rest, -1][:6]
    _check(scale_by_freq, mode, sparse, weights)
    return embedding_bag_backward(
        grad, places, bags, sizes, tops, rows, scale_by_freq, mode, weights, padding
    )


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::_embedding_bag": embedding_bag,
    "aten::_embedding_bag_forward_only": embedding_bag,
    "aten::_embedding_bag_backward": _backward,
    "aten::_embedding_bag_dense_backward": embedding_bag_backward,
}
