"""A training step over a batch that several processes hold together, with the bits of one process.

    with portable():
        loss = GroupStep(model.parameters(), group).step(model, loss_of, x, y)
        optimizer.step()

Law: everything a network computes for a sample depends on that sample alone, except sums over
samples, which the processes exchange exactly (`group_sums`). So each process runs its own samples
forward; the outputs of all are gathered, and every process computes the loss of the whole batch and
its gradient; each runs its own samples backward; the sums that waited are exchanged. Every process
ends with the whole batch's gradients.

The step is traced once on each process. What the traces say about sums over samples must be equal
on all of them. The first step is tried on the batch's first four samples: as a whole on each
process, and as two on each of two processes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from seedless.core.errors import NumericsError
from seedless.portable.batch.collectives import Collectives
from seedless.portable.batch.group_checks import (
    check_counts,
    check_plans,
    check_start,
    refuse_ddp,
    refuse_shapes,
    share_first,
)
from seedless.portable.batch.group_loss import differentiate_known, drop_values, is_enough
from seedless.portable.batch.group_sums import GroupSums
from seedless.portable.batch.op_trace import OpTrace
from seedless.portable.batch.packed_tensors import pack, read_words, unpack
from seedless.portable.batch.plain_torch import plain_torch
from seedless.portable.batch.step_computation import (
    TRIAL_SAMPLES,
    Forward,
    Grads,
    Loss,
    add_gradients,
    backward,
    check_batch,
    check_outputs,
    describe_rows,
    differentiate_loss,
    find_leaves,
    list_outputs,
    list_trials,
    same_bits,
    take_rows,
    trace_loss,
    trace_step,
)
from seedless.portable.batch.step_plan import StepPlan, number_of
from seedless.portable.context import CONTEXT
from seedless.portable.mode import prepare_device

_TRIAL_SHARE = 2
_STAND_IN_ROWS = 2  # that a rank without samples computes


@dataclass(frozen=True)
class GroupPlan:
    """The plan of a step, which tensors of the batch its loss reads, and what it changes."""

    step: StepPlan
    is_read: tuple[bool, ...]
    changed: tuple[Tensor, ...]


class GroupStep:
    """Steps of a model over batches that the processes of a group hold together.

    Args:
        parameters: those whose gradients are wanted; None: all that the outputs depend on.
        group: of torch.distributed; None: all processes.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter] | None, group: dist.ProcessGroup | None = None
    ) -> None:
        self.exchange = Collectives(group)
        self.parameters = None if parameters is None else [p for p in parameters if p.requires_grad]
        self._plans: dict[Any, GroupPlan] = {}

    def step(self, forward: Forward, loss_of: Loss, *batch: Tensor) -> Tensor:
        """Add the whole batch's gradients to ``.grad`` and return its loss, on every process.

        All processes call this together. A process has no sample of a batch, or at least two.

        Args:
            forward: takes this process's rows of ``batch`` and returns their outputs, one row a
                sample: a tensor or several. Dropout must be computed inside, from keys that are in
                the batch (`seedless.dropout_keys`).
            loss_of: takes the outputs of the whole batch, in the order of the ranks, then the whole
                ``batch``, and returns the loss. It may use all samples at once, but no parameters.
                Tensors of the batch that it does not read are not exchanged; those it gets have a
                shape and no values (torch's device "meta").
            batch: this process's samples: tensors with one row a sample.
        """
        samples = check_batch(batch, fewest=0)
        with plain_torch():
            prepare_device(batch[0].device)
        if self.exchange.size > 1 and samples == 1:
            raise NumericsError(
                "expected no sample or at least two of a batch on each process, got one on rank "
                f"{self.exchange.rank}: a single sample leaves sums out. Give it to another rank"
            )
        rows = batch if samples else _make_stand_ins(batch)
        plan = self._find_plan(forward, loss_of, rows, samples)
        loss, parameters, grads = self._compute(forward, loss_of, rows, samples, plan)
        add_gradients(parameters, grads)
        return loss

    def _compute(
        self,
        forward: Forward,
        loss_of: Loss,
        rows: Sequence[Tensor],
        samples: int,
        plan: GroupPlan,
    ) -> tuple[Tensor, Sequence[Tensor], Grads]:
        """Return the whole batch's loss, the parameters, and their gradients."""
        sums = GroupSums(plan.step, self.exchange, has_samples=samples > 0)
        # [Step 1] Run this process's samples forward.
        with CONTEXT.evaluate_sums_with(sums):
            outputs = list_outputs(forward(*rows))
        check_outputs(outputs, rows[0].shape[0])
        parameters = find_leaves(outputs) if self.parameters is None else self.parameters
        # [Step 2] Gather the outputs and what the loss reads; compute the loss of the whole batch.
        whole, whole_batch, counts = self._gather(outputs, rows, samples, plan)
        loss, output_grads = differentiate_known(loss_of, whole, whole_batch, plan.is_read)
        sums.samples = sum(counts)
        # [Step 3] Run this process's samples backward; sums for gradients wait.
        start = sum(counts[: self.exchange.rank])
        own = [
            None if grad is None else _take_own(grad, start, samples, output.shape)
            for grad, output in zip(output_grads, outputs, strict=True)
        ]
        with CONTEXT.evaluate_sums_with(sums):
            grads = backward(outputs, own, parameters)
        sums.end()
        # [Step 4] Exchange the sums that waited.
        sums.finish()
        return loss, parameters, grads

    def _gather(
        self, outputs: Sequence[Tensor], rows: Sequence[Tensor], samples: int, plan: GroupPlan
    ) -> tuple[list[Tensor], list[Tensor], list[int]]:
        """Return outputs and batch of all processes, and how many samples each has."""
        read = [tensor for tensor, is_read in zip(rows, plan.is_read, strict=True) if is_read]
        sent = [tensor.detach()[:samples] for tensor in (*outputs, *read)]
        layout = _describe_layout(sent, plan)
        received = self.exchange.gather(pack(sent, (samples, layout)))
        words = [read_words(payload) for payload in received]
        for rank, (_, other) in enumerate(words):
            if other != layout:
                raise refuse_shapes(rank, self.exchange.rank)
        counts = [count for count, _ in words]
        check_counts(counts)
        whole = unpack(received, counts, sent)
        joined = iter(whole[len(outputs) :])
        total = sum(counts)
        whole_batch = [
            next(joined) if is_read else drop_values(tensor, total)
            for tensor, is_read in zip(rows, plan.is_read, strict=True)
        ]
        return whole[: len(outputs)], whole_batch, counts

    def _find_plan(
        self, forward: Forward, loss_of: Loss, rows: Sequence[Tensor], samples: int
    ) -> GroupPlan:
        """Return the plan of a step on such samples; the first of all is also tried."""
        key = describe_rows(rows)
        if key not in self._plans:
            plan = self._trace(forward, loss_of, rows)
            if not self._plans and self.exchange.size > 1:
                counts = check_plans(self.exchange, plan.step, rows, samples)
                first = share_first(self.exchange, rows, counts)
                for trial in list_trials(sum(counts)):
                    self._try(forward, loss_of, [tensor[trial] for tensor in first], plan)
            self._plans[key] = plan
        return self._plans[key]

    def _trace(self, forward: Forward, loss_of: Loss, rows: Sequence[Tensor]) -> GroupPlan:
        """Trace the loss, to see what it reads, and then the step."""
        few = take_rows(rows, TRIAL_SAMPLES)
        first = OpTrace()
        try:
            with torch.no_grad(), first.recording(), refuse_ddp(forward):
                outputs = list_outputs(forward(*few))
        finally:
            first.restore()
        check_outputs(outputs, TRIAL_SAMPLES)
        loss = trace_loss(loss_of, outputs, few)
        step, changed = trace_step(forward, rows, self.parameters, loss.uses_output, in_group=True)
        is_read = loss.reads_batch
        if not is_enough(loss_of, outputs, few, is_read):
            is_read = (True,) * len(few)
        return GroupPlan(step, is_read, tuple(changed))

    def _try(
        self,
        forward: Forward,
        loss_of: Loss,
        four: Sequence[Tensor],
        plan: GroupPlan,
    ) -> None:
        """Refuse a step whose gradients for four samples differ between one process and two."""
        before = [tensor.clone() for tensor in plan.changed]
        # [Step 1] Compute the step on all of them, and with two on each of two ranks.
        outputs = list_outputs(forward(*four))
        _, output_grads = differentiate_loss(loss_of, outputs, four)
        parameters = find_leaves(outputs) if self.parameters is None else self.parameters
        check_start(self.exchange, [*parameters, *before])
        whole = backward(outputs, output_grads, parameters)
        after = [tensor.clone() for tensor in plan.changed]
        _restore(plan.changed, before)
        rank = self.exchange.rank
        share = _TRIAL_SHARE if rank < TRIAL_SAMPLES // _TRIAL_SHARE else 0
        start = rank * _TRIAL_SHARE if share else 0
        own = [tensor[start : start + _TRIAL_SHARE] for tensor in four]
        _, _, parts = self._compute(forward, loss_of, own, share, plan)
        # [Step 2] Compare gradients, and what outlives the step.
        pairs = [*zip(whole, parts, strict=True), *zip(after, plan.changed, strict=True)]
        differing = [number for number, (one, two) in enumerate(pairs) if not same_bits(one, two)]
        _restore(plan.changed, before)
        if differing:
            raise NumericsError(
                "expected each sample to be computed alone, so that processes can share a batch; "
                f"four samples on one process and two on each of two differ in {len(differing)} of "
                f"{len(pairs)} tensors. Does the model reorder or mix samples, or keep state?"
            )


def _restore(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    with plain_torch():
        for tensor, value in zip(tensors, values, strict=True):
            tensor.copy_(value)


def _make_stand_ins(batch: Sequence[Tensor]) -> list[Tensor]:
    """Return zeros for a process without samples to compute."""
    return [tensor.new_zeros((_STAND_IN_ROWS, *tensor.shape[1:])) for tensor in batch]


def _take_own(grad: Tensor, start: int, samples: int, shape: Sequence[int]) -> Tensor:
    """Return the rows of this process; zeros where it has no samples."""
    return grad[start : start + samples] if samples else grad.new_zeros(tuple(shape))


def _describe_layout(sent: Sequence[Tensor], plan: GroupPlan) -> int:
    """Return a number of 62 bits for what must be equal on all processes."""
    shapes = [[list(tensor.shape[1:]), str(tensor.dtype)] for tensor in sent]
    return number_of([shapes, list(plan.is_read), plan.step.digest()])
