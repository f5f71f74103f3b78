"""The ECG conformer: a deep network of bottleneck blocks, then attention over the shortened time.

The stem turns 12 x 1000 samples into 250 time steps of 160 channels; the stages shorten them to 63
and the transition to 32. With 12 leads and 12 classes it has 1,827,634 parameters. Source of the
last blocks: Gulati et al., "Conformer: convolution-augmented transformer for speech recognition",
Interspeech 2020.
"""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from seedless.core.marks import mark
from seedless.models.layers import (
    AvgPool,
    Classifier,
    Conv1d,
    DepthwiseConv1d,
    MeanMax,
    SelfAttention,
    match_length,
    to_channels_last,
)

KERNEL = 5
EXPANSION = 4  # channels outside a bottleneck for each one inside
SPARE = 2  # features that belong to no class; the loss penalizes them


class Conformer(Classifier):
    """(batch, leads, time) -> logits (batch, classes).

    Args:
        width: channels inside a bottleneck; four times as many outside.
        blocks: bottleneck blocks in stages 0, 1 and 2, and conformer blocks after them.
        heads: attention heads; must divide 4 x width.
    """

    spare = SPARE
    regions = ("stem", "Bottleneck", "transition", "ConformerBlock")
    attribution_layer = "encoder"

    def __init__(
        self,
        leads: int = 12,
        classes: int = 12,
        width: int = 40,
        blocks: Sequence[int] = (3, 4, 23, 3),
        heads: int = 4,
    ) -> None:
        super().__init__()
        self.leads = leads
        channels = EXPANSION * width
        stem = nn.Sequential(
            Conv1d(leads, width, KERNEL, stride=2),
            nn.GELU(),
            Conv1d(width, width, KERNEL),
            nn.GELU(),
            Conv1d(width, channels, KERNEL),
            nn.GELU(),
            AvgPool(),
        )
        self.stem = mark(stem, stage=0)
        self.stages = nn.Sequential()
        for stage, count in enumerate(blocks[:3]):
            strides = [2 if stage > 0 and block == 0 else 1 for block in range(count)]
            bottlenecks = nn.Sequential(*(Bottleneck(width, stride) for stride in strides))
            self.stages.append(mark(bottlenecks, stage=stage))
        transition = nn.Sequential(Conv1d(channels, channels, KERNEL, stride=2), nn.GELU())
        self.transition = mark(transition, stage=3)
        encoder = nn.Sequential(*(ConformerBlock(channels, heads) for _ in range(blocks[3])))
        self.encoder = mark(encoder, stage=3)
        self.pool = MeanMax()
        self.projection = mark(nn.Linear(2 * channels, classes + SPARE), stage=3)
        self.head = mark(nn.Linear(classes + SPARE, classes), stage=3, head="etf")

    def features(self, x: Tensor) -> Tensor:
        """Return the inputs of the head: (batch, classes + 2); the last two belong to no class."""
        x = self.stages(self.stem(to_channels_last(x, self.leads)))
        x = self.encoder(self.transition(x))
        return F.gelu(self.projection(self.pool(x)))


class Bottleneck(nn.Module):
    """Narrow, convolve, widen; add the skip; GELU; LayerNorm over channels."""

    def __init__(self, width: int, stride: int) -> None:
        super().__init__()
        channels = EXPANSION * width
        self.narrow = Conv1d(channels, width)
        self.convolve = Conv1d(width, width, KERNEL, stride)
        self.widen = mark(Conv1d(width, channels), residual_exit=True)
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, channel) -> (batch, ceil(time / stride), channel)."""
        branch: Tensor = self.widen(F.gelu(self.convolve(F.gelu(self.narrow(x)))))
        out: Tensor = self.norm(F.gelu(match_length(x, branch.shape[1]) + branch))
        return out


class ConformerBlock(nn.Module):
    """Half a feed-forward step, attention, convolution, half a feed-forward step, LayerNorm.

    Each part is a residual branch that starts with a LayerNorm.
    """

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.before = feed_forward(channels)
        self.attention_norm = nn.LayerNorm(channels)
        self.attention = SelfAttention(channels, heads)
        self.convolution = nn.Sequential(
            nn.LayerNorm(channels),
            DepthwiseConv1d(channels, KERNEL),
            nn.GELU(),
            mark(Conv1d(channels, channels), residual_exit=True),
        )
        self.after = feed_forward(channels)
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, channel) -> (batch, time, channel)."""
        x = x + 0.5 * self.before(x)
        x = x + self.attention(self.attention_norm(x))
        x = x + self.convolution(x)
        x = x + 0.5 * self.after(x)
        out: Tensor = self.norm(x)
        return out


def feed_forward(channels: int) -> nn.Sequential:
    """Return LayerNorm, then channels -> 2 channels -> channels with a GELU between."""
    return nn.Sequential(
        nn.LayerNorm(channels),
        nn.Linear(channels, 2 * channels),
        nn.GELU(),
        nn.Linear(2 * channels, channels),
    )
