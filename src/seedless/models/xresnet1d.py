"""xresnet1d101, the strongest network of the PTB-XL benchmark, with that benchmark's widths.

Source: Strodthoff et al., "Deep learning for ECG analysis: benchmarks and insights from PTB-XL",
IEEE JBHI 2021. Bottleneck blocks of constant inner width. With 12 leads and 12 classes it has
1,873,164 parameters.
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
EXPANSION = 4  # channels outside a bottleneck for each one inside


class XResNet1d(RecordingClassifier):
    """(batch, leads, time) -> logits (batch, classes).

    Args:
        width: channels inside a bottleneck; four times as many outside.
        blocks: bottleneck blocks in each of the four stages.
    """

    regions = ("stem", "Bottleneck")

    def __init__(
        self,
        leads: int = 12,
        classes: int = 12,
        width: int = 64,
        blocks: Sequence[int] = (3, 4, 23, 3),
    ) -> None:
        super().__init__()
        self.leads = leads
        stem = nn.Sequential(
            *conv_norm(leads, width // 2, KERNEL, stride=2),
            nn.ReLU(),
            *conv_norm(width // 2, width // 2, KERNEL),
            nn.ReLU(),
            *conv_norm(width // 2, width, KERNEL),
            nn.ReLU(),
            MaxPool(),
        )
        self.stem = mark(stem, stage=0)
        self.stages = nn.Sequential()
        inputs, channels = width, EXPANSION * width
        for stage, count in enumerate(blocks):
            bottlenecks = nn.Sequential()
            for block in range(count):
                bottlenecks.append(Bottleneck(inputs, width, 2 if stage and not block else 1))
                inputs = channels
            self.stages.append(mark(bottlenecks, stage=stage))
        neck = nn.Sequential(
            MeanMax(),
            BatchNorm(2 * channels),
            Dropout(0.25, layer=0),
            nn.Linear(2 * channels, 2 * width),
            nn.ReLU(),
            BatchNorm(2 * width),
            Dropout(0.5, layer=1),
        )
        self.neck = mark(neck, stage=3)
        self.head = mark(nn.Linear(2 * width, classes), stage=3, head="basis")


class Bottleneck(nn.Module):
    """ReLU(skip(x) + widen(convolve(narrow(x)))), each convolution with BatchNorm and no bias.

    The last BatchNorm's gain is declared to start at 0, so that a block starts as its skip. The
    skip is averaged to the branch's length; where the width changes, a 1x1 convolution follows.
    """

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        channels = EXPANSION * width
        widen, last_norm = conv_norm(width, channels, 1)
        self.branch = nn.Sequential(
            *conv_norm(inputs, width, 1),
            nn.ReLU(),
            *conv_norm(width, width, KERNEL, stride),
            nn.ReLU(),
            mark(widen, residual_exit=True),
            mark(last_norm, zero_gain=True),
        )
        same = inputs == channels
        self.skip = nn.Sequential(*([] if same else conv_norm(inputs, channels, 1)))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, in) -> (batch, ceil(time / stride), out)."""
        branch: Tensor = self.branch(x)
        return F.relu(self.skip(match_length(x, branch.shape[1])) + branch)


def conv_norm(inputs: int, outputs: int, kernel: int, stride: int = 1) -> tuple[Conv1d, BatchNorm]:
    """Return a convolution without bias, and its BatchNorm."""
    return Conv1d(inputs, outputs, kernel, stride, bias=False), BatchNorm(outputs)
