"""Layers in (batch, time, channel) layout, built on the deterministic ops of `numerics`.

They are subclasses of torch's layers: state dicts fit torch's layers, and code that looks for
convolutions or norms (initialization, parameter counts) finds them.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from seedless.core.errors import ModelError
from seedless.numerics.convolution import conv1d, depthwise_conv1d
from seedless.numerics.pooling import adaptive_avg_pool1d, avg_pool1d, max_pool1d


def to_channels_last(x: Tensor, leads: int) -> Tensor:
    """Return a batch of recordings as (batch, time, leads); refuse all but (batch, leads, time)."""
    if x.ndim != 3 or x.shape[1] != leads:
        raise ModelError(
            f"expected recordings of shape (batch, {leads}, time), got {tuple(x.shape)}; "
            f"this model was built for {leads} leads"
        )
    return x.transpose(1, 2)


class Classifier(nn.Module, ABC):
    """A network that ends in a linear head: logits are head(features(x)).

    Attributes:
        spare: the number of last features that belong to no class; the loss may penalize them.
        regions: what is compiled separately: names of block types and of modules.
        attribution_layer: the last module whose output has a time or space axis, before pooling;
            attribution maps are computed there.
        channel_axis: the channel axis of that output.
    """

    head: nn.Linear
    spare = 0
    regions: tuple[str, ...] = ()
    attribution_layer = "stages"
    channel_axis = -1

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """Return the inputs of the head: (batch, features)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits: (batch, classes)."""
        logits: Tensor = self.head(self.features(x))
        return logits


class RecordingClassifier(Classifier):
    """A classifier of recordings (batch, leads, time): stem, stages, neck, head."""

    leads: int
    stem: nn.Module
    stages: nn.Module
    neck: nn.Module

    def features(self, x: Tensor) -> Tensor:
        """Return the inputs of the head: (batch, 2 width)."""
        features: Tensor = self.neck(self.stages(self.stem(to_channels_last(x, self.leads))))
        return features


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
    """Store convolution weights in memory as their matrix product reads them: taps, then inputs.

    Names, shapes and values do not change. It saves a copy of each weight and of its gradient in
    every step.
    """
    for module in model.modules():
        if isinstance(module, Conv1d) and module.kernel_size[0] > 1:
            weight = module.weight
            weight.data = weight.data.transpose(1, 2).contiguous().transpose(1, 2)


class DepthwiseConv1d(nn.Conv1d):
    """Convolution with one filter per channel and an odd kernel, padded to keep the length."""

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
    """Mean and maximum over time, concatenated."""

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, channel) -> (batch, 2 channel)."""
        # Not `max`, whose gradient is a scatter: the gradient of amax is elementwise.
        return torch.cat([x.mean(1), x.amax(1)], 1)


def match_length(x: Tensor, length: int) -> Tensor:
    """Return x averaged over time to the length of its residual branch."""
    return x if x.shape[1] == length else adaptive_avg_pool1d(x, length)


class SelfAttention(nn.Module):
    """Multi-head self-attention: softmax(q k^T / sqrt(d)) v per head (Vaswani et al., 2017)."""

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
