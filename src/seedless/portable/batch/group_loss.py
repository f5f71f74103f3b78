"""The loss of a batch of which the processes of a group exchange only what the loss reads."""

from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.batch.step_computation import Grads, Loss, LossGrads, differentiate_loss


def differentiate_known(
    loss_of: Loss,
    outputs: Sequence[Tensor],
    batch: Sequence[Tensor],
    is_read: Sequence[bool],
    of_loss: LossGrads,
) -> tuple[Tensor, Grads]:
    """Return the loss and its gradients; refuse a loss that reads more than it did at first."""
    try:
        loss, grads = differentiate_loss(loss_of, outputs, batch, of_loss)
        reason = "its loss has no value" if loss.is_meta else None
    except (RuntimeError, NotImplementedError) as error:
        if all(is_read):
            raise
        reason = str(error)
    if reason is None:
        return loss, grads
    unread = [number for number, was_read in enumerate(is_read) if not was_read]
    raise NumericsError(
        "expected loss_of to read what it read in the first step, since only that is exchanged: "
        f"not tensor {' and '.join(map(str, unread))} of the batch, which here has a shape and no "
        f"values. loss_of failed: {reason}. For a loss that reads more, open a new block"
    )


def is_enough(
    loss_of: Loss, outputs: Sequence[Tensor], batch: Sequence[Tensor], is_read: Sequence[bool]
) -> bool:
    """Return whether a loss can be computed from what a trace saw it read.

    A trace does not see what Python reads: `tolist` and `numpy`.
    """
    if all(is_read):
        return True
    pairs = zip(batch, is_read, strict=True)
    known = [each if was_read else drop_values(each, each.shape[0]) for each, was_read in pairs]
    try:
        return not differentiate_loss(loss_of, outputs, known)[0].is_meta
    except (RuntimeError, NotImplementedError, TypeError):
        return False


def drop_values(tensor: Tensor, samples: int) -> Tensor:
    """Return a tensor with so many rows that has a shape and no values."""
    return torch.empty((samples, *tensor.shape[1:]), dtype=tensor.dtype, device="meta")
