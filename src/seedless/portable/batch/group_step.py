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
on all of them. The first step is tried: on each process's samples in another order (`order_trial`),
and on the batch's first four samples, as a whole on each process and as two on each of two.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from seedless.core.errors import NumericsError
from seedless.portable.batch.collectives import Collectives
from seedless.portable.batch.group_checks import (
    check_repeatable,
    check_start,
    explain_failure,
    refuse_other_exchanges,
    share_first,
)
from seedless.portable.batch.group_loss import differentiate_known, drop_values, is_enough
from seedless.portable.batch.group_sums import GroupSums
from seedless.portable.batch.op_trace import OpTrace
from seedless.portable.batch.order_trial import check_order
from seedless.portable.batch.packed_tensors import pack, read_words, unpack
from seedless.portable.batch.plain_torch import plain_torch
from seedless.portable.batch.plan_comparison import (
    check_counts,
    check_plans,
    list_shapes,
    refuse_shapes,
    report_failure,
)
from seedless.portable.batch.step_computation import (
    TRIAL_SAMPLES,
    Forward,
    Grads,
    Loss,
    LossGrads,
    add_gradients,
    backward,
    check_batch,
    check_inputs,
    check_outputs,
    compute_outputs,
    describe_rows,
    differentiate_loss,
    join_gradients,
    list_outputs,
    list_parameters,
    list_trials,
    restore,
    same_bits,
    take_rows,
)
from seedless.portable.batch.step_identity import identify_step
from seedless.portable.batch.step_plan import StepPlan, number_of
from seedless.portable.batch.step_trace import trace_loss, trace_step
from seedless.portable.context import CONTEXT
from seedless.portable.mode import prepare_device

_TRIAL_SHARE = 2
_FEWEST_ROWS = 2  # that a process computes, whatever samples it has


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
        self._compared: set[Hashable] = set()  # steps that all processes have compared and tried

    def step(self, forward: Forward, loss_of: Loss, *batch: Tensor) -> Tensor:
        """Add the whole batch's gradients to ``.grad`` and return its loss, on every process.

        All processes call this together. A process has no sample of a batch, or at least two; where
        the forward pass does not sum over samples (no BatchNorm), also one.

        Args:
            forward: takes this process's rows of ``batch`` and returns their outputs, one row a
                sample: a tensor or several. Dropout must be computed inside, from keys that are in
                the batch (`seedless.dropout_keys`).
            loss_of: takes the outputs of the whole batch, in the order of the ranks, then the whole
                ``batch``, and returns the loss. It may use all samples at once, and parameters that
                ``forward`` does not use. Tensors of the batch that it does not read are not
                exchanged; those it gets have a shape and no values (torch's device "meta").
            batch: this process's samples: tensors with one row a sample.
        """
        samples = check_batch(batch, fewest=0)
        check_inputs(batch)
        with plain_torch():
            prepare_device(batch[0].device)
        rows = _fill_up(batch) if self.exchange.size > 1 else batch
        plan = self._find_plan(forward, loss_of, rows, samples)
        if samples < len(rows[0]) and samples and plan.step.has_forward_sums:
            raise NumericsError(
                "expected no sample or at least two of a batch on each process, got one on rank "
                f"{self.exchange.rank}: a layer of this model sums over the samples of the batch, "
                "as BatchNorm does, and a single sample leaves sums out. Give it to another rank"
            )
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
        parameters = self._list_parameters(outputs, plan)
        # [Step 2] Gather the outputs and what the loss reads; compute the loss of the whole batch.
        whole, whole_batch, counts = self._gather(outputs, rows, samples, plan)
        of_loss = LossGrads()
        loss, output_grads = differentiate_known(loss_of, whole, whole_batch, plan.is_read, of_loss)
        sums.samples = sum(counts)
        # [Step 3] Run this process's samples backward; sums for gradients wait.
        start = sum(counts[: self.exchange.rank])
        own = [
            None if grad is None else _take_own(grad[start : start + samples], output.shape)
            for grad, output in zip(output_grads, outputs, strict=True)
        ]
        with CONTEXT.evaluate_sums_with(sums):
            grads = backward(outputs, own, parameters)
        sums.end()
        # [Step 4] Exchange the sums that waited.
        sums.finish()
        return loss, *join_gradients(parameters, grads, of_loss)

    def _list_parameters(self, outputs: Sequence[Tensor], plan: GroupPlan) -> Sequence[Tensor]:
        """Return the parameters whose gradients are wanted."""
        if self.parameters is not None:
            return self.parameters
        return list_parameters(outputs, plan.step.passing_leaves)

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
        """Return the plan of a step on such samples; a new kind of step is compared and tried."""
        key = (step := identify_step(forward, loss_of)), describe_rows(rows)
        if key not in self._plans:
            is_first = step not in self._compared and self.exchange.size > 1
            try:
                plan = self._trace(forward, loss_of, rows)
                if is_first and samples:
                    check_order(forward, rows, plan.step, plan.changed)
            except Exception as error:
                if is_first:
                    report_failure(self.exchange, error)
                raise
            if is_first:
                counts = check_plans(self.exchange, plan.step, rows, samples)
                first = share_first(self.exchange, rows, counts)
                for trial in list_trials(sum(counts)):
                    self._try(forward, loss_of, [tensor[trial] for tensor in first], plan)
                self._compared.add(step)
            self._plans[key] = plan
        return self._plans[key]

    def _trace(self, forward: Forward, loss_of: Loss, rows: Sequence[Tensor]) -> GroupPlan:
        """Trace the loss, to see what it reads, and then the step."""
        few, run = take_rows(rows, TRIAL_SAMPLES), explain_failure(forward, rows)
        first = OpTrace()
        try:
            with first.recording(), refuse_other_exchanges(forward):
                outputs = compute_outputs(run, few)
        finally:
            first.restore()
        check_outputs(outputs, TRIAL_SAMPLES)
        loss = trace_loss(loss_of, outputs, few)
        step, changed = trace_step(run, rows, self.parameters, loss.uses_output, in_group=True)
        is_read, state = loss.reads_batch, (*changed, *loss.changed)
        check_repeatable(run, loss_of, few, state)
        before = [tensor.clone() for tensor in state]
        if not is_enough(loss_of, outputs, few, is_read):
            is_read = (True,) * len(few)
        restore(state, before)
        return GroupPlan(step, is_read, state)

    def _try(
        self,
        forward: Forward,
        loss_of: Loss,
        four: Sequence[Tensor],
        plan: GroupPlan,
    ) -> None:
        """Refuse a step whose gradients for four samples differ between one process and two."""
        before, rank = [tensor.clone() for tensor in plan.changed], self.exchange.rank
        # [Step 1] Compute the step on all of them, and with two on each of two ranks.
        outputs = list_outputs(forward(*four))
        of_loss = LossGrads()
        _, output_grads = differentiate_loss(loss_of, outputs, four, of_loss)
        parameters = self._list_parameters(outputs, plan)
        check_start(self.exchange, [*parameters, *of_loss, *before])
        grads = backward(outputs, output_grads, parameters)
        _, whole = join_gradients(parameters, grads, of_loss)
        after = [tensor.clone() for tensor in plan.changed]
        restore(plan.changed, before)
        share = _TRIAL_SHARE if rank < TRIAL_SAMPLES // _TRIAL_SHARE else 0
        start = rank * _TRIAL_SHARE if share else 0
        own = [tensor[start : start + _TRIAL_SHARE] for tensor in four]
        _, _, parts = self._compute(forward, loss_of, own, share, plan)
        # [Step 2] Compare gradients, and what outlives the step.
        pairs = [*zip(whole, parts, strict=True), *zip(after, plan.changed, strict=True)]
        differing = [number for number, (one, two) in enumerate(pairs) if not same_bits(one, two)]
        restore(plan.changed, before)
        if differing:
            raise NumericsError(
                "expected each sample to be computed alone, so that processes can share a batch; "
                f"four samples on one process and two on each of two differ in {len(differing)} of "
                f"{len(pairs)} tensors. Does the model reorder or mix samples, or keep state?"
            )


def _fill_up(batch: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return at least two rows: with one, broadcasting leaves sums over samples out.

    Zeros where a process has no samples. A single sample twice: the second has zeros for the
    gradients of its outputs and adds nothing to any sum, and no grid is another one for it.
    """
    samples = batch[0].shape[0]
    if samples >= _FEWEST_ROWS:
        return batch
    if samples:
        return take_rows(batch, _FEWEST_ROWS)
    return [tensor.new_zeros((_FEWEST_ROWS, *tensor.shape[1:])) for tensor in batch]


def _take_own(grad: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the gradients of this process's rows; zeros for rows that are no samples of it."""
    missing = shape[0] - grad.shape[0]
    return torch.cat([grad, grad.new_zeros((missing, *shape[1:]))]) if missing else grad


def _describe_layout(sent: Sequence[Tensor], plan: GroupPlan) -> int:
    """Return a number of 62 bits for what must be equal on all processes."""
    return number_of([list_shapes(sent), list(plan.is_read), plan.step.digest()])
