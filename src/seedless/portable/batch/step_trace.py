"""How a step is traced: with two and with three samples, and its loss with a few."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from seedless.portable.batch.batch_dependence import TRACED_SIZES, plan_step
from seedless.portable.batch.op_trace import OpTrace, find_memory
from seedless.portable.batch.step_computation import (
    Forward,
    Loss,
    backward,
    differentiate_loss,
    find_leaves,
    list_outputs,
    list_parameters,
    take_rows,
)
from seedless.portable.batch.step_plan import StepPlan


def _find_passing_leaves(outputs: Iterable[Tensor], samples: int) -> set[int]:
    """Return the positions of leaves with a row for each sample: inputs of a gradient penalty."""
    return {
        number
        for number, leaf in enumerate(find_leaves(outputs))
        if not isinstance(leaf, nn.Parameter) and leaf.ndim and leaf.shape[0] == samples
    }


def trace_step(
    forward: Forward,
    batch: Sequence[Tensor],
    parameters: Sequence[Tensor] | None,
    uses_output: Sequence[bool],
    *,
    in_group: bool,
) -> tuple[StepPlan, list[Tensor]]:
    """Trace a step with two and with three samples and compare the traces.

    Returns the plan, and the tensors that outlive the step and are changed by it; they have their
    earlier values again.

    Args:
        parameters: whose gradients are wanted; None: all that the outputs were computed from.
        uses_output: for each output, whether the loss uses it.
    """
    traces, forward_entries, changed = [], 0, []
    passing: set[int] | None = None
    # The first run makes the tables that are made once, so that they are in neither trace.
    for size in (TRACED_SIZES[1], *TRACED_SIZES):
        trace, rows = OpTrace(), take_rows(batch, size)
        try:
            with trace.recording():
                outputs = list_outputs(forward(*rows))
            forward_entries = len(trace.entries)
            found = _find_passing_leaves(outputs, size)
            passing = found if passing is None else passing & found
            wanted = list_parameters(outputs, passing) if parameters is None else parameters
            ones = [
                torch.ones_like(output) if is_used else None
                for output, is_used in zip(outputs, uses_output, strict=True)
            ]
            with trace.recording():
                backward(outputs, ones, wanted)
        finally:
            changed = trace.restore()
        traces.append(trace)
    _, two, three = traces
    plan = plan_step(two, three, forward_entries=forward_entries, in_group=in_group)
    return replace(plan, passing_leaves=frozenset(passing or ())), changed


@dataclass(frozen=True)
class TracedLoss:
    """What a loss uses.

    Attributes:
        uses_output: for each output, whether the loss depends on it.
        reads_batch: for each tensor of the batch, whether the loss reads its values.
        has_constant_gradient: whether its gradient is the same for all values of the outputs.
        changed: tensors that the loss changes and that outlive it, as a queue of earlier outputs.
    """

    uses_output: tuple[bool, ...]
    reads_batch: tuple[bool, ...]
    has_constant_gradient: bool
    changed: tuple[Tensor, ...]


def trace_loss(loss_of: Loss, outputs: Sequence[Tensor], batch: Sequence[Tensor]) -> TracedLoss:
    """Trace the loss of a few samples and its gradient."""
    trace = OpTrace()
    try:
        with trace.recording():
            _, grads = differentiate_loss(loss_of, outputs, batch)
    finally:
        changed = trace.restore()
    read = {tensor.memory for entry in trace.entries for tensor in entry.read}
    depending = trace.find_depending(outputs)
    return TracedLoss(
        tuple(grad is not None for grad in grads),
        tuple(find_memory(tensor) in read for tensor in batch),
        not any(find_memory(grad) in depending for grad in grads if grad is not None),
        tuple(changed),
    )
