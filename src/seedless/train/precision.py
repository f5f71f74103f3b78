"""The numeric precisions of a run. Each gives the same bits at every repetition."""

from contextlib import AbstractContextManager, nullcontext

import torch

# fp32: IEEE float32 throughout. tf32: matrix products of float32 on a GPU round their inputs to ten
# bits of mantissa. bf16: torch's autocast, with float32 weights, loss and optimizer.
PRECISIONS = ("fp32", "tf32", "bf16")


def autocast_for(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return the context in which a forward pass of this precision runs."""
    if precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()
