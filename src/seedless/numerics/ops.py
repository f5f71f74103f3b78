"""Every deterministic operation, in one place to import from."""

from seedless.numerics.convolution import conv1d, depthwise_conv1d
from seedless.numerics.dropout import dropout
from seedless.numerics.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    avg_pool1d,
    max_pool1d,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "avg_pool1d",
    "conv1d",
    "depthwise_conv1d",
    "dropout",
    "max_pool1d",
]
