"""Our models with torch's own layers, in the usual (batch, channel, time) layout.

A plain model has the parameters and buffers of ours under the same names, so that a state dict fits
both, and computes the same function with nn.Conv1d and torch's pooling, attention and dropout.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seedless.core.errors import ModelError
from seedless.models import baseline, conformer, layers, resnet18, xresnet1d
from seedless.numerics.dropout import Dropout
from seedless.numerics.pooling import adaptive_avg_pool1d


def make_plain(model: nn.Module, *, deterministic: bool = False) -> nn.Module:
    """Return one of our models with torch's own layers and copies of its weights.

    ``deterministic`` averages skips with an explicit gradient, as the published work does: torch's
    adaptive pool adds atomically on a GPU, and is refused there in deterministic mode.
    """
    if type(model) not in MODELS:
        known = ", ".join(kind.__name__ for kind in MODELS)
        raise ModelError(f"{type(model).__name__} has no plain form; these models have: {known}")
    plain = _convert(copy.deepcopy(model))
    for module in plain.modules():
        if isinstance(module, Residual):
            module.deterministic = deterministic
    for parameter in plain.parameters():  # laid out as torch does by itself
        parameter.data = parameter.data.contiguous()
    return plain


def _convert(module: nn.Module) -> nn.Module:
    """Replace a module, and before it all below, by what most people would write."""
    for name, child in module.named_children():
        setattr(module, name, _convert(child))
    make = PLAIN_LAYERS.get(type(module))
    if make is None:
        return module
    plain = make(module)
    plain._parameters.update(module._parameters)
    plain._buffers.update(module._buffers)
    plain._modules.update(module._modules)
    return plain.train(module.training)


class Residual(nn.Module):
    """A block whose skip is averaged down to the length of its branch."""

    deterministic = False

    def match_length(self, x: Tensor, length: int) -> Tensor:
        """(batch, channel, time) -> (batch, channel, length)."""
        if x.shape[2] == length:
            return x
        if self.deterministic:
            return adaptive_avg_pool1d(x.transpose(1, 2), length).transpose(1, 2)
        return F.adaptive_avg_pool1d(x, length)


class MeanMax(nn.Module):
    """Mean and maximum over time: (batch, channel, time) -> (batch, 2 channel)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return them side by side."""
        return torch.cat([x.mean(-1), x.amax(-1)], 1)


class PlainAttention(nn.Module):
    """Self-attention by torch's fused kernel: (batch, time, channel) -> the same."""

    qkv: nn.Linear
    out: nn.Linear

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        """Attend from every step of time to every other."""
        batch, time, channels = x.shape
        size = channels // self.heads
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, size).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, time, channels))
        return out


class PlainBottleneck(Residual):
    """The conformer's bottleneck; LayerNorm needs the channels last, and so two transposes."""

    narrow: nn.Conv1d
    convolve: nn.Conv1d
    widen: nn.Conv1d
    norm: nn.LayerNorm

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channel, time) -> (batch, channel, ceil(time / stride))."""
        branch = self.widen(F.gelu(self.convolve(F.gelu(self.narrow(x)))))
        both = F.gelu(self.match_length(x, branch.shape[2]) + branch)
        out: Tensor = self.norm(both.transpose(1, 2)).transpose(1, 2)
        return out


class PlainConformerBlock(nn.Module):
    """The conformer's block: channels last, but for its convolutions."""

    before: nn.Sequential
    attention_norm: nn.LayerNorm
    attention: PlainAttention
    convolution: nn.Sequential
    after: nn.Sequential
    norm: nn.LayerNorm

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channel, time) -> (batch, channel, time)."""
        x = x.transpose(1, 2)
        x = x + 0.5 * self.before(x)
        x = x + self.attention(self.attention_norm(x))
        norm, depthwise, gelu, pointwise = self.convolution
        x = x + pointwise(gelu(depthwise(norm(x).transpose(1, 2)))).transpose(1, 2)
        x = x + 0.5 * self.after(x)
        out: Tensor = self.norm(x).transpose(1, 2)
        return out


class PlainConformer(layers.Classifier):
    """(batch, leads, time) -> logits."""

    spare = conformer.SPARE
    stem: nn.Sequential
    stages: nn.Sequential
    transition: nn.Sequential
    encoder: nn.Sequential
    pool: MeanMax
    projection: nn.Linear

    def features(self, x: Tensor) -> Tensor:
        """Return what the head receives."""
        x = self.encoder(self.transition(self.stages(self.stem(x))))
        return F.gelu(self.projection(self.pool(x)))


class PlainBlock(Residual):
    """The baseline's block: skip + ReLU(BN(conv(x))), new channels of the skip being zero."""

    convolve: nn.Conv1d
    norm: nn.BatchNorm1d

    def __init__(self, extra: int) -> None:
        super().__init__()
        self.extra = extra

    def forward(self, x: Tensor) -> Tensor:
        """(batch, in, time) -> (batch, out, ceil(time / stride))."""
        branch = F.relu(self.norm(self.convolve(x)))
        skip = self.match_length(x, branch.shape[2])
        return (F.pad(skip, (0, 0, 0, self.extra)) if self.extra else skip) + branch


class PlainXBottleneck(Residual):
    """xresnet1d's bottleneck: ReLU(skip(x) + branch(x))."""

    branch: nn.Sequential
    skip: nn.Sequential

    def forward(self, x: Tensor) -> Tensor:
        """(batch, in, time) -> (batch, out, ceil(time / stride))."""
        branch: Tensor = self.branch(x)
        return F.relu(self.skip(self.match_length(x, branch.shape[2])) + branch)


class PlainConvNet(layers.Classifier):
    """The baseline and xresnet1d: (batch, leads, time) -> logits."""

    stem: nn.Sequential
    stages: nn.Sequential
    neck: nn.Sequential

    def features(self, x: Tensor) -> Tensor:
        """Return what the head receives."""
        features: Tensor = self.neck(self.stages(self.stem(x)))
        return features


class PlainResNet18(layers.Classifier):
    """ResNet-18, whose layers are torch's already, with torch's pool at its end."""

    stem: nn.Sequential
    stages: nn.Sequential

    def features(self, x: Tensor) -> Tensor:
        """Return what the head receives."""
        return F.adaptive_avg_pool2d(self.stages(self.stem(x)), 1).flatten(1)


def _convolution(ours: Any) -> nn.Module:
    return nn.Conv1d(
        ours.in_channels,
        ours.out_channels,
        ours.kernel_size,
        ours.stride,
        ours.padding,
        groups=ours.groups,
        bias=ours.bias is not None,
        device="meta",  # its weights are replaced, so none are sampled
    )


def _norm(ours: Any) -> nn.Module:
    return nn.BatchNorm1d(ours.num_features, ours.eps, ours.momentum, device="meta")


MODELS: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    conformer.Conformer: lambda _: PlainConformer(),
    baseline.Baseline: lambda _: PlainConvNet(),
    xresnet1d.XResNet1d: lambda _: PlainConvNet(),
    resnet18.ResNet18: lambda _: PlainResNet18(),
}
PLAIN_LAYERS: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    **MODELS,
    layers.Conv1d: _convolution,
    layers.DepthwiseConv1d: _convolution,
    layers.BatchNorm: _norm,
    layers.MaxPool: lambda _: nn.MaxPool1d(3, 2, 1),
    layers.AvgPool: lambda _: nn.AvgPool1d(3, 2, 1),
    layers.MeanMax: lambda _: MeanMax(),
    layers.SelfAttention: lambda ours: PlainAttention(ours.heads),
    Dropout: lambda ours: nn.Dropout(ours.p),
    conformer.Bottleneck: lambda _: PlainBottleneck(),
    conformer.ConformerBlock: lambda _: PlainConformerBlock(),
    baseline.Block: lambda ours: PlainBlock(ours.extra),
    xresnet1d.Bottleneck: lambda _: PlainXBottleneck(),
}
