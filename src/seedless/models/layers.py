"""Layers in (batch, time, channel) layout, built on the deterministic ops of `numerics`.

They subclass torch's own, so that a state dict fits the torch twin and whoever walks over the
modules (initialization, parameter counts) sees a convolution or a norm for what it is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from seedless.core.errors import ModelError
from seedless.numerics.convolution import conv1d, depthwise_conv1d
from seedless.numerics.pooling import adaptive_avg_pool1d, avg_pool1d, max_pool1d


def to_time_major(x: Tensor, leads: int) -> Tensor:
    """Check a batch of recordings and turn it: (batch, leads, time) -> (batch, time, leads)."""
    if x.ndim != 3 or x.shape[1] != leads:
        raise ModelError(
            f"expected recordings of shape (batch, {leads}, time), got {tuple(x.shape)}; "
            f"this model was built for {leads} leads"
        )
    return x.transpose(1, 2)


class Classifier(nn.Module, ABC):
    """A network that ends in a declared head: logits are head(features(x)).

    The last ``spare`` of the features belong to no class; the loss may hold them small.
    ``regions`` are what a compiler takes one at a time: names of block types and of modules.
    ``attribution_layer`` is the module whose output still has time or place in it and feeds the
    pooling: what a prediction is traced back to; ``channel_axis`` is that output's channel axis.
    """

    head: nn.Linear
    spare = 0
    regions: tuple[str, ...] = ()
    attribution_layer = "stages"
    channel_axis = -1

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """Return what the head receives: (batch, features)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits: (batch, classes)."""
        logits: Tensor = self.head(self.features(x))
        return logits


class Conv1d(nn.Conv1d):
    """Convolution over time with an odd kernel, padded so that stride 1 keeps the length."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, bias: bool = True
    ) -> None:
        super().__init__(inputs, outputs, kernel, stride, padding=kernel // 2, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, in) -> (batch, ceil(time / stride), out)."""
        return conv1d(x, self.weight, self.bias, self.stride[0], self.kernel_size[0] // 2)


def set_weight_layout(model: nn.Module) -> None:
    """Lay convolution weights out in memory as their matrix product reads them: taps, then inputs.

    Names, shapes and values stay; each step is spared a copy of the weight and one of its gradient.
    """
    for module in model.modules():
        if isinstance(module, Conv1d) and module.kernel_size[0] > 1:
            weight = module.weight
            weight.data = weight.data.transpose(1, 2).contiguous().transpose(1, 2)


class DepthwiseConv1d(nn.Conv1d):
    """One filter a channel, with an odd kernel, padded so that the length stays."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__(channels, channels, kernel, padding=kernel // 2, groups=channels)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, channel) -> (batch, time, channel)."""
        return depthwise_conv1d(x, self.weight, self.bias, self.kernel_size[0] // 2)


class BatchNorm(nn.BatchNorm1d):
    """BatchNorm over every axis but the last, the channels."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., channel) -> (..., channel)."""
        return super().forward(x.flatten(0, -2)).view(x.shape)


class MaxPool(nn.Module):
    """`max_pool1d` with kernel 3, stride 2, padding 1: halves the length, rounding up."""

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, channel) -> (batch, ceil(time / 2), channel)."""
        return max_pool1d(x, 3, 2, 1)


class AvgPool(nn.Module):
    """`avg_pool1d` with kernel 3, stride 2, padding 1: halves the length, rounding up."""

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, channel) -> (batch, ceil(time / 2), channel)."""
        return avg_pool1d(x, 3, 2, 1)


class MeanMax(nn.Module):
    """Mean and maximum over time, side by side."""

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, channel) -> (batch, 2 channel)."""
        # amax shares its gradient between equal maxima by elementwise kernels; max would scatter.
        return torch.cat([x.mean(1), x.amax(1)], 1)


def match_length(x: Tensor, length: int) -> Tensor:
    """Average a skip connection down to the length of its branch."""
    return x if x.shape[1] == length else adaptive_avg_pool1d(x, length)


class SelfAttention(nn.Module):
    """Multi-head self-attention, written out: softmax(q k^T / sqrt(d)) v for each head."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        if channels % heads:
            raise ModelError(
                f"{channels} channels cannot be shared by {heads} heads; "
                "choose a width that the number of heads divides"
            )
        self.heads = heads
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, channel) -> (batch, time, channel)."""
        return self.attend(x)[0]

    def attend(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output and the weights (batch, heads, time, time), whose rows sum to 1."""
        size = x.shape[-1] // self.heads
        # (batch, time, 3 channel) -> three of (batch, heads, time, size)
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, size)).permute(2, 0, 3, 1, 4).unbind()
        weights = torch.softmax(q @ k.transpose(-1, -2) * (1 / math.sqrt(size)), -1)
        out: Tensor = self.out((weights @ v).transpose(1, 2).flatten(2))
        return out, weights
