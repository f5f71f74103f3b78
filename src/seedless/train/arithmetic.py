"""Arithmetic and precision of a run.

The arithmetic is native, that of the device and its libraries, or portable, which has the same bits
on every processor. Each precision of native arithmetic gives the same bits at every repetition.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from seedless.core.config import Config
from seedless.core.errors import ConfigError
from seedless.core.registry import choose

if TYPE_CHECKING:
    from seedless.portable.batch.microbatch import Split

ARITHMETICS = ("native", "portable")
# fp32: IEEE float32 throughout. tf32: matrix products of float32 on a GPU round their inputs to ten
# bits of mantissa. bf16: torch's autocast, with float32 weights, loss and optimizer.
PRECISIONS = ("fp32", "tf32", "bf16")


def compute_in(arithmetic: str) -> AbstractContextManager[None]:
    """Return the context for forward pass, backward pass and optimizer step."""
    if arithmetic == "portable":
        from seedless.portable.mode import portable

        return portable()
    return nullcontext()


def autocast_for(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return the context in which a forward pass of this precision runs."""
    if precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


def check_arithmetic(config: Config) -> None:
    """Refuse an unknown arithmetic, and settings that portable arithmetic does not have."""
    execution = config.execution
    choose("arithmetic", execution.arithmetic, dict.fromkeys(ARITHMETICS))
    if not config.is_portable:
        return
    if execution.precision != "fp32":
        raise ConfigError(
            f"execution.precision is {execution.precision}, which differs from device to device; "
            "portable arithmetic needs fp32"
        )
    if execution.mode == "compiled":
        raise ConfigError(
            "execution.mode is compiled, whose fused kernels round at other points; portable "
            "arithmetic needs eager or graph"
        )


def make_batch_splitter(config: Config, trained: Sequence[nn.Parameter]) -> Split | None:
    """Return the object that computes a batch in micro-batches with the bits of the whole batch.

    None without micro-batches, and in native arithmetic, where the bits depend on how the batch is
    split.
    """
    if not config.is_portable or config.train.microbatch is None:
        return None
    from seedless.portable.batch.microbatch import Split

    return Split(trained, config.train.microbatch)


def sigmoid(logits: Tensor, arithmetic: str) -> Tensor:
    """Return the sigmoid of float64 logits (n, K)."""
    if arithmetic == "portable":
        from seedless.portable.exact.elementary import sigmoid as portable_sigmoid

        return portable_sigmoid(logits)
    return logits.sigmoid()


def softmax(logits: Tensor, arithmetic: str) -> Tensor:
    """Return the softmax over the classes of float64 logits (n, K)."""
    if arithmetic == "portable":
        from seedless.portable.exact.elementary import exp

        powers = exp(logits - logits.amax(dim=1, keepdim=True))
        total = torch.zeros_like(powers[:, :1])
        for column in torch.split(powers, 1, dim=1):  # one after another: the order is fixed
            total = total + column
        return powers / total
    return logits.softmax(dim=1)
