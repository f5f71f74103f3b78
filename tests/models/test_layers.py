"""Layers in (batch, time, channel) layout against torch's layers."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from seedless.core.errors import ModelError
from seedless.models.layers import (
    AvgPool,
    BatchNorm,
    Conv1d,
    DepthwiseConv1d,
    MaxPool,
    MeanMax,
    SelfAttention,
    match_length,
)

X = torch.linspace(-20, 20, 2 * 9 * 8).sin().view(2, 9, 8)


def test_convolutions_are_torch_convolutions() -> None:
    assert isinstance(Conv1d(2, 3), nn.Conv1d)
    assert isinstance(DepthwiseConv1d(3, 5), nn.Conv1d)
    assert Conv1d(2, 3, bias=False).bias is None


def test_batch_norm_equals_torchs_and_keeps_the_same_statistics() -> None:
    ours, theirs = BatchNorm(8), nn.BatchNorm1d(8)
    torch.testing.assert_close(ours(X), theirs(X.mT).mT)
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())
    torch.testing.assert_close(ours.eval()(X), theirs.eval()(X.mT).mT)
    torch.testing.assert_close(ours(X[:, 0]), theirs(X[:, 0]))


def test_pools_equal_torchs() -> None:
    torch.testing.assert_close(MaxPool()(X), F.max_pool1d(X.mT, 3, 2, 1).mT)
    torch.testing.assert_close(AvgPool()(X), F.avg_pool1d(X.mT, 3, 2, 1).mT)
    torch.testing.assert_close(MeanMax()(X), torch.cat([X.mean(1), X.max(1).values], 1))
    torch.testing.assert_close(match_length(X, 5), F.adaptive_avg_pool1d(X.mT, 5).mT)
    assert match_length(X, 9) is X


def test_attention_equals_torchs_multi_head_attention() -> None:
    ours, theirs = SelfAttention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.qkv.weight)
        theirs.in_proj_bias.copy_(ours.qkv.bias)
        theirs.out_proj.load_state_dict(ours.out.state_dict())
    output, weights = ours.attend(X)
    expected, expected_weights = theirs(X, X, X, average_attn_weights=False)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights, expected_weights)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 9))
    assert torch.equal(ours(X), output)


def test_heads_must_divide_the_channels() -> None:
    with pytest.raises(ModelError, match="8 channels cannot be shared by 3 heads"):
        SelfAttention(8, 3)
