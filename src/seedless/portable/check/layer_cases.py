"""Committed ops that layers and losses call: padding, resizing, windows, recurrence, losses."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from seedless.portable.test_inputs import (
    IMAGE,
    LOGITS,
    SIGNAL,
    Case,
    Input,
    make_indices,
    make_labels,
)

VOLUME = Input((2, 3, 6, 7, 5))
SEQUENCE = Input((7, 4, 10))
LENGTHS = (7, 5, 5, 2)


def _run_lstm(x: Tensor, w_in: Tensor, w_state: Tensor) -> Tensor:
    """Return the outputs of an LSTM over packed sequences of unequal length."""
    lengths = torch.tensor(LENGTHS)
    rows, sizes = torch._pack_padded_sequence(x, lengths, False)
    start = x.new_zeros(1, len(LENGTHS), w_state.shape[1])
    flat: Any = [w_in, w_state]
    out: Tensor = torch.lstm(rows, sizes, [start, start], flat, False, 1, 0.0, True, False)[0]
    return out


def _run_gru(x: Tensor, w_in: Tensor, w_state: Tensor, b_in: Tensor, b_state: Tensor) -> Tensor:
    """Return the outputs of a GRU, and of one more step of its cell."""
    flat: Any = [w_in, w_state, b_in, b_state]
    start = x.new_zeros(1, x.shape[1], w_state.shape[1])
    out, last = torch.gru(x, start, flat, True, 1, 0.0, True, False, False)
    more = torch.gru_cell(x[0], last[0], w_in, w_state, b_in, b_state)
    return torch.cat([out.flatten(0, 1), more])


def _attend(x: Tensor, w_in: Tensor, w_out: Tensor) -> Tensor:
    """Return multi-head attention of x to itself, some keys masked."""
    mask = torch.arange(x.shape[0], device=x.device)[None, :].expand(x.shape[1], -1) > 5
    out: Tensor = F.multi_head_attention_forward(
        x, x, x, 10, 2, w_in, None, None, None, False, 0.0, w_out, None, True, mask, False
    )[0]
    return out


def _clip(x: Tensor, y: Tensor, by_norm: bool) -> Tensor:
    """Return gradients of a product, clipped as optimizers' users do."""
    leaves = [x.detach().requires_grad_(), y.detach().requires_grad_()]
    torch.autograd.backward((leaves[0] * leaves[1]).sum())
    if by_norm:
        clip_grad_norm_(leaves, 0.7)
    else:
        clip_grad_value_(leaves, 0.3)
    grads = [leaf.grad for leaf in leaves if leaf.grad is not None]
    return torch.cat([grads[0] * x, grads[1] * y])


def _pad(x: Tensor, mode: str) -> Tensor:
    return F.pad(x, (2, 3, 1, 2), mode=mode)


def _resize(x: Tensor, mode: str, **options: Any) -> Tensor:
    return F.interpolate(x, mode=mode, **options)


def _pool_and_unpool(x: Tensor) -> Tensor:
    """Return x with every value but the maxima of its windows set to zero."""
    values, indices = F.max_pool2d_with_indices(x, [2, 2])
    return F.max_unpool2d(values, indices, [2, 2], output_size=x.shape)


LAYERS: dict[str, Case] = {
    "pad_reflect": Case(lambda x: _pad(x, "reflect"), (IMAGE,)),
    "pad_replicate": Case(lambda x: _pad(x, "replicate"), (IMAGE,)),
    "pad_circular": Case(lambda x: _pad(x, "circular"), (IMAGE,)),
    "pad_replicate3d": Case(lambda x: F.pad(x, (1, 2, 2, 0, 1, 1), mode="replicate"), (VOLUME,)),
    "nearest": Case(lambda x: _resize(x, "nearest", scale_factor=2), (IMAGE,)),
    "nearest_uneven": Case(lambda x: _resize(x, "nearest", size=(7, 19)), (IMAGE,)),
    "nearest_exact": Case(lambda x: _resize(x, "nearest-exact", size=(7, 19)), (IMAGE,)),
    "linear": Case(lambda x: _resize(x, "linear", scale_factor=2.5), (SIGNAL,)),
    "bilinear": Case(lambda x: _resize(x, "bilinear", size=(21, 6)), (IMAGE,)),
    "bilinear_aligned": Case(
        lambda x: _resize(x, "bilinear", size=(21, 6), align_corners=True), (IMAGE,)
    ),
    "bicubic": Case(lambda x: _resize(x, "bicubic", scale_factor=1.7), (IMAGE,)),
    "trilinear": Case(lambda x: _resize(x, "trilinear", scale_factor=2), (VOLUME,)),
    "bicubic_antialiased": Case(
        lambda x: _resize(x, "bicubic", size=(3, 5), antialias=True), (IMAGE,)
    ),
    "grid_sample": Case(
        lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        (IMAGE, Input((IMAGE.shape[0], 5, 6, 2))),
    ),
    "grid_sample3d": Case(
        lambda x, grid: F.grid_sample(x, grid, padding_mode="border", align_corners=True),
        (VOLUME, Input((2, 4, 3, 5, 3))),
    ),
    "affine_grid": Case(
        lambda theta: F.affine_grid(theta, [2, 1, 5, 6], align_corners=False), (Input((2, 2, 3)),)
    ),
    "max_unpool2d": Case(_pool_and_unpool, (IMAGE,)),
    "unfold": Case(lambda x: F.unfold(x, (3, 2), 2, 1, (1, 2)), (IMAGE,)),
    "fold": Case(lambda x: F.fold(x, (9, 8), (3, 2), 1, 1, 2), (Input((2, 24, 25)),)),
    "max_pool2d_ceil": Case(lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (IMAGE,)),
    "max_pool3d": Case(lambda x: F.max_pool3d(x, 2, 1), (VOLUME,)),
    "avg_pool1d_ceil": Case(lambda x: F.avg_pool1d(x, 7, 4, 3, ceil_mode=True), (SIGNAL,)),
    "avg_pool2d_ceil": Case(lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (IMAGE,)),
    "avg_pool3d": Case(lambda x: F.avg_pool3d(x, 2, 2), (VOLUME,)),
    "adaptive_max_pool1d": Case(lambda x: F.adaptive_max_pool1d(x, 7), (SIGNAL,)),
    "adaptive_max_pool3d": Case(lambda x: F.adaptive_max_pool3d(x, (4, 3, 5)), (VOLUME,)),
    "adaptive_avg_pool3d": Case(lambda x: F.adaptive_avg_pool3d(x, (4, 3, 5)), (VOLUME,)),
    "conv_transpose3d": Case(F.conv_transpose3d, (VOLUME, Input((3, 4, 2, 3, 2)), Input((4,)))),
    "embedding_bag": Case(
        lambda w: F.embedding_bag(
            make_indices(w.new_zeros(60)),
            w,
            torch.tensor([0, 9, 9, 40], device=w.device),
            mode="mean",
            padding_idx=3,
        ),
        (Input((9, 6)),),
    ),
    "lstm_packed": Case(_run_lstm, (SEQUENCE, Input((24, 10)), Input((24, 6)))),
    "gru": Case(_run_gru, (SEQUENCE, Input((18, 10)), Input((18, 6)), Input((18,)), Input((18,)))),
    "multi_head_attention": Case(_attend, (SEQUENCE, Input((30, 10)), Input((10, 10)))),
    "weight_norm": Case(
        lambda v, g: torch._weight_norm(v, g, 0), (Input((6, 8, 5)), Input((6, 1, 1)))
    ),
    "clip_norm": Case(lambda x, y: _clip(x, y, True), (LOGITS, LOGITS)),
    "clip_value": Case(lambda x, y: _clip(x, y, False), (LOGITS, LOGITS)),
    "cosine": Case(F.cosine_similarity, (LOGITS, LOGITS)),
    "triplet": Case(F.triplet_margin_loss, (LOGITS, LOGITS, LOGITS)),
    "kl_div": Case(
        lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
        (LOGITS, LOGITS),
    ),
    "nll": Case(lambda x: F.nll_loss(x, make_labels(x), reduction="sum"), (LOGITS,)),
    "cross_entropy_ignoring": Case(
        lambda x: F.cross_entropy(x, make_labels(x), ignore_index=7, label_smoothing=0.1), (LOGITS,)
    ),
    "cross_entropy_shares": Case(lambda x, y: F.cross_entropy(x, y.softmax(1)), (LOGITS, LOGITS)),
}
