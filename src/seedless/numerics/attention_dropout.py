"""Scaled dot-product attention whose dropout is drawn by sample."""

from math import sqrt

import torch
from torch import Tensor

from seedless.numerics.sample_draws import drop


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    layer: int,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return drop(softmax(q k' scale + mask)) v, with torch's arguments and shapes (B, ..., L, E).

    ``layer`` is the number of the layer. A query that may see no key gives zeros.

    Source: Vaswani et al., "Attention is all you need", NeurIPS 2017; torch's documentation of
    `scaled_dot_product_attention`.
    """
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    if is_causal:
        seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device)
        attn_mask = seen.tril() if attn_mask is None else attn_mask
    scores = query @ key.transpose(-2, -1) * (scale or 1.0 / sqrt(query.shape[-1]))
    if attn_mask is None:
        weights = scores.softmax(-1)
    elif attn_mask.dtype == torch.bool:
        # The smallest number in place of -inf: a row of -inf would have NaN for its gradient.
        least = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(~attn_mask, least).softmax(-1)
        weights = weights * attn_mask.any(-1, keepdim=True)
    else:
        weights = (scores + attn_mask).softmax(-1)
    return drop(weights, dropout_p, layer=layer, axis=0) @ value
