"""Deterministic building blocks: flags, counter-based random numbers, exact sums, layers' ops."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.numerics.active_keys import dropout_keys
    from seedless.numerics.convolution import conv1d, depthwise_conv1d
    from seedless.numerics.counter_random import draw_uniform, philox
    from seedless.numerics.determinism import make_deterministic
    from seedless.numerics.dropout import Dropout
    from seedless.numerics.environment import capture_environment
    from seedless.numerics.exact_sums import exact_row_sums, exact_sum
    from seedless.numerics.generator_guard import GeneratorGuard
    from seedless.numerics.pooling import (
        adaptive_avg_pool1d,
        adaptive_avg_pool2d,
        avg_pool1d,
        max_pool1d,
    )
    from seedless.numerics.saved_flags import preserve_flags

__all__ = [
    "Dropout",
    "GeneratorGuard",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "avg_pool1d",
    "capture_environment",
    "conv1d",
    "depthwise_conv1d",
    "draw_uniform",
    "dropout_keys",
    "exact_row_sums",
    "exact_sum",
    "make_deterministic",
    "max_pool1d",
    "philox",
    "preserve_flags",
]

__getattr__, __dir__ = lazy_names(__name__)
