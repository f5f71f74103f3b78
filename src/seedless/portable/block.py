"""`with seedless.portable() as p:`, alone or in a group of processes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import torch.distributed as dist
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable import mode
from seedless.portable.batch.collectives import is_failed_exchange
from seedless.portable.batch.group_step import GroupStep
from seedless.portable.batch.named_outputs import pass_names_on
from seedless.portable.batch.step_computation import (
    Forward,
    Loss,
    LossGrads,
    add_gradients,
    backward,
    check_batch,
    differentiate_loss,
    find_leaves,
    join_gradients,
    list_outputs,
)
from seedless.portable.context import CONTEXT


class Block:
    """What `with portable() as p:` binds: computes the steps of a model.

    In a group it keeps the plan of the step. Keep one block open for many steps, so that the step
    is traced once. A block that has ended holds no reference to its group: torch ends a group's
    threads only when nothing refers to it, and a thread that outlives Python aborts the process.
    """

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        self._group_step = None if group is None else GroupStep(None, group)
        self._messages, self._is_open = 0, True

    def step(self, forward: Forward, loss_of: Loss, *batch: Tensor) -> Tensor:
        """Add the whole batch's gradients to ``.grad`` and return its loss.

        In a group, ``batch`` is this process's part of the batch: no sample, or at least two; one
        where no layer sums over samples, as BatchNorm does. All processes call this together, and
        gradients and loss are those of the whole batch, the same bits on every process and for
        every number of them.

        Args:
            forward: takes the tensors of ``batch`` and returns the outputs, one row a sample: a
                tensor, or several in a list or a dict. It may be a model or a function. Dropout
                must be computed inside, from keys that are in the batch (`seedless.dropout_keys`).
            loss_of: takes the outputs of the whole batch, in the order of the ranks, then the whole
                batch, and returns the loss. It may use all samples at once, and parameters that
                forward does not use.
            batch: tensors with one row a sample.

        >>> with seedless.portable(group=torch.distributed.group.WORLD) as p:
        ...     for x, y in loader:
        ...         optimizer.zero_grad()
        ...         loss = p.step(lambda x, y: model(x), lambda out, x, y: criterion(out, y), x, y)
        ...         optimizer.step()
        """
        if not self._is_open:
            raise NumericsError(
                "expected p.step inside of `with seedless.portable(...) as p:`, got it after the "
                "end of the block: outside, arithmetic is the ordinary one"
            )
        forward, loss_of = pass_names_on(forward, loss_of)
        with CONTEXT.refuse_backward(False):
            if self._group_step is not None:
                with _name_lost(self._group_step):
                    return self._group_step.step(forward, loss_of, *batch)
            check_batch(batch, fewest=1)
            outputs = list_outputs(forward(*batch))
            of_loss = LossGrads()
            loss, output_grads = differentiate_loss(loss_of, outputs, batch, of_loss)
            parameters = find_leaves(outputs)
            grads = backward(outputs, output_grads, parameters)
            add_gradients(*join_gradients(parameters, grads, of_loss))
            return loss

    def count_messages(self) -> int:
        """Return how many messages this process has exchanged with its group so far."""
        return self._messages if self._group_step is None else self._group_step.exchange.messages

    def close(self) -> None:
        """End the block: let go of the group and refuse further steps."""
        self._messages, self._group_step, self._is_open = self.count_messages(), None, False


@contextmanager
def _name_lost(step: GroupStep) -> Iterator[None]:
    """Turn the failure of an exchange into one sentence."""
    try:
        yield
    except RuntimeError as error:
        if not is_failed_exchange(error):
            raise
        rank, size = step.exchange.rank, step.exchange.size
        raise NumericsError(
            f"rank {rank} of {size} lost the others in a step: another process has ended, or did "
            "not come to this step within the group's timeout. Its own message says why, and "
            f"torchrun's report names it. torch.distributed said: {str(error).partition('. ')[0]}"
        ) from None


@contextmanager
def portable(group: dist.ProcessGroup | None = None) -> Iterator[Block]:
    """Compute everything inside with bits that no processor, thread count or library can change.

    Put forward pass, backward pass and optimizer step inside: outside, the backward pass of what
    was computed inside is refused. Raises `NumericsError` for an op that has no portable form, and
    for a device whose float64 does not follow IEEE.

    Args:
        group: processes of torch.distributed that hold the samples of each batch together. Then
            gradients are computed by `Block.step`, and a bare ``backward()`` is refused.

    >>> with seedless.portable():
    ...     criterion(model(x), y).backward()
    ...     optimizer.step()
    """
    block, is_refused = Block(group), group is not None or CONTEXT.refuses_backward
    with closing(block), mode.portable(), CONTEXT.refuse_backward(is_refused):
        yield block
