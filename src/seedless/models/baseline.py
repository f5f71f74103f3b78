"""The baseline: a plain residual convolution network with BatchNorm and dropout.

With 12 leads and 12 classes it has 1,653,772 parameters. Convolutions have a bias in spite of the
BatchNorm after them.
"""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from seedless.core.marks import mark
from seedless.models.layers import (
    BatchNorm,
    Conv1d,
    MaxPool,
    MeanMax,
    RecordingClassifier,
    match_length,
)
from seedless.numerics.dropout import Dropout

KERNEL = 5


class Baseline(RecordingClassifier):
    """(batch, leads, time) -> logits (batch, classes).

    Args:
        width: channels of the first stage; the next two have twice and four times as many.
        blocks: residual blocks in each of the three stages, without those that change the width.
    """

    regions = ("stem", "Block")

    def __init__(
        self,
        leads: int = 12,
        classes: int = 12,
        width: int = 64,
        blocks: Sequence[int] = (3, 4, 3),
    ) -> None:
        super().__init__()
        self.leads = leads
        stem = nn.Sequential(
            Conv1d(leads, width, KERNEL, stride=2), BatchNorm(width), nn.ReLU(), MaxPool()
        )
        self.stem = mark(stem, stage=0)
        self.stages = nn.Sequential()
        channels = width
        for stage, count in enumerate(blocks):
            inputs, channels = channels, width * 2**stage
            widening = [Block(inputs, channels, stride=2)] if stage else []
            residuals = nn.Sequential(*widening, *(Block(channels) for _ in range(count)))
            self.stages.append(mark(residuals, stage=stage))
        neck = nn.Sequential(
            MeanMax(),
            Dropout(0.5, layer=0),
            nn.Linear(2 * channels, 2 * width),
            nn.ReLU(),
            Dropout(0.25, layer=1),
        )
        self.neck = mark(neck, stage=3)
        self.head = mark(nn.Linear(2 * width, classes), stage=3, head="basis")


class Block(nn.Module):
    """skip(x) + ReLU(BN(conv(x))).

    The skip has no parameters: it is averaged to the branch's length and padded with zero channels.
    """

    def __init__(self, inputs: int, outputs: int | None = None, stride: int = 1) -> None:
        super().__init__()
        outputs = inputs if outputs is None else outputs
        self.extra = outputs - inputs
        self.convolve = mark(Conv1d(inputs, outputs, KERNEL, stride), residual_exit=True)
        self.norm = BatchNorm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, in) -> (batch, ceil(time / stride), out)."""
        branch = F.relu(self.norm(self.convolve(x)))
        skip = match_length(x, branch.shape[1])
        return (F.pad(skip, (0, self.extra)) if self.extra else skip) + branch
