"""ResNet-18 for small images: a 3x3 stem of stride 1 and no max pool.

Source: He et al., "Deep residual learning for image recognition", CVPR 2016. Images are (batch,
channel, height, width). With 3 channels and 100 classes it has 11,220,132 parameters.
"""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from seedless.core.errors import ModelError
from seedless.core.marks import mark
from seedless.models.layers import Classifier
from seedless.numerics.pooling import adaptive_avg_pool2d


class ResNet18(Classifier):
    """(batch, channels, height, width) -> logits (batch, classes).

    Args:
        width: channels of the first stage; each next one has twice as many.
        blocks: basic blocks in each of the four stages.
    """

    regions = ("stem", "BasicBlock")
    channel_axis = 1

    def __init__(
        self,
        channels: int = 3,
        classes: int = 100,
        width: int = 64,
        blocks: Sequence[int] = (2, 2, 2, 2),
    ) -> None:
        super().__init__()
        self.channels = channels
        self.stem = mark(nn.Sequential(*conv_norm(channels, width, 3), nn.ReLU()), stage=0)
        self.stages = nn.Sequential()
        inputs = width
        for stage, count in enumerate(blocks):
            outputs = width * 2**stage
            basics = nn.Sequential()
            for block in range(count):
                basics.append(BasicBlock(inputs, outputs, 2 if stage and not block else 1))
                inputs = outputs
            self.stages.append(mark(basics, stage=stage))
        self.head = mark(nn.Linear(inputs, classes), stage=3, head="basis")

    def features(self, x: Tensor) -> Tensor:
        """Return the inputs of the head: (batch, 8 width)."""
        if x.ndim != 4 or x.shape[1] != self.channels:
            raise ModelError(
                f"expected images of shape (batch, {self.channels}, height, width), "
                f"got {tuple(x.shape)}; this model was built for {self.channels} channels"
            )
        return adaptive_avg_pool2d(self.stages(self.stem(x)), (1, 1)).flatten(1)


class BasicBlock(nn.Module):
    """ReLU(skip(x) + two 3x3 convolutions), with BatchNorm after each and no biases.

    The skip is x itself, or a 1x1 convolution with BatchNorm where the shape changes.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        second, last_norm = conv_norm(outputs, outputs, 3)
        self.branch = nn.Sequential(
            *conv_norm(inputs, outputs, 3, stride),
            nn.ReLU(),
            mark(second, residual_exit=True),
            last_norm,
        )
        same = stride == 1 and inputs == outputs
        self.skip = nn.Sequential(*([] if same else conv_norm(inputs, outputs, 1, stride)))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, in, height, width) -> (batch, out, ceil(height / stride), ceil(...))."""
        return F.relu(self.skip(x) + self.branch(x))


def conv_norm(
    inputs: int, outputs: int, kernel: int, stride: int = 1
) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    """Return a padded convolution without bias, and its BatchNorm."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return convolution, nn.BatchNorm2d(outputs)
