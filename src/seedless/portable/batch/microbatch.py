"""A batch computed in parts that gives the bits of the whole batch: gradients and loss.

    with portable():
        loss = Split(model.parameters(), 32).step(model, loss_of, x, y)
        optimizer.step()

Law: everything a network computes for a sample depends on that sample alone, except sums over
samples: the gradients of weights, biases, norms and embeddings. Those need the grids of the whole
batch. So the parts go
  1. forward and backward, to find the outputs and the largest exponent of each grid;
  2. forward and backward, to add the integers on these grids, without rounding.
The sums that the last part ends with are those of the whole batch. The first pass needs the
gradient of the loss for a part's outputs before the other parts' are known. Of most losses it does
not depend on them, so this is assumed, and compared with the gradient for the outputs of all parts;
where it was wrong, the first pass is done again, and the outputs are found by a pass of their own
from then on. Where a trace shows that the gradient depends on no outputs at all, as that of a mean,
that of the first part serves for all, and a CUDA graph, which cannot compare, can hold the step.

It takes the memory of one part, and two float64 numbers for each element of each such sum; and the
time of about 2 forward and 2 backward passes of the whole batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from seedless.core.errors import NumericsError
from seedless.portable.batch.named_outputs import pass_names_on
from seedless.portable.batch.order_trial import check_order
from seedless.portable.batch.part_sums import PartSums
from seedless.portable.batch.step_computation import (
    TRIAL_SAMPLES,
    Forward,
    Grads,
    Loss,
    LossGrads,
    add_gradients,
    backward,
    check_batch,
    check_outputs,
    compute_outputs,
    describe_rows,
    differentiate_loss,
    join_gradients,
    list_outputs,
    list_trials,
    same_bits,
    take_rows,
)
from seedless.portable.batch.step_plan import StepPlan
from seedless.portable.batch.step_trace import trace_loss, trace_step
from seedless.portable.context import CONTEXT


@dataclass(frozen=True)
class SplitPlan:
    """The plan of a step, and whether the gradient of its loss is the same for all outputs."""

    step: StepPlan
    has_constant_gradient: bool


class Split:
    """Steps of a model over batches in parts.

    Args:
        parameters: those whose gradients are wanted.
        size: samples in a part, the last part taking what is left; or the sizes of all parts.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], size: int | Sequence[int]) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        self.size = size
        self.loss_mixes_samples = False
        self._plans: dict[Any, SplitPlan] = {}

    def step(self, forward: Forward, loss_of: Loss, *batch: Tensor) -> Tensor:
        """Add the whole batch's gradients to ``.grad`` and return its loss.

        Args:
            forward: takes the rows of ``batch`` that make a part, in order, and returns their
                outputs, one row a sample: a tensor, or several in a list or a dict. Dropout must be
                computed inside, from keys that are in the batch (`seedless.dropout_keys`).
            loss_of: takes the outputs of the whole batch, and then ``batch`` itself, and returns
                the loss. It may use all samples at once, and parameters that forward does not use.
            batch: tensors with one row a sample.
        """
        forward, loss_of = pass_names_on(forward, loss_of)
        sizes = _list_sizes(self.size, check_batch(batch, fewest=1))
        if len(sizes) == 1:
            loss, parameters, grads = self._compute_whole(forward, loss_of, batch)
        else:
            plan = self._find_plan(forward, loss_of, batch, sizes)
            loss, parameters, grads = self._compute_parts(forward, loss_of, batch, sizes, plan)
        add_gradients(parameters, grads)
        return loss

    def _compute_whole(
        self, forward: Forward, loss_of: Loss, batch: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor], Grads]:
        """Return loss, parameters and gradients of an ordinary step."""
        outputs, of_loss = list_outputs(forward(*batch)), LossGrads()
        loss, output_grads = differentiate_loss(loss_of, outputs, batch, of_loss)
        grads = backward(outputs, output_grads, self.parameters)
        return loss, *join_gradients(self.parameters, grads, of_loss)

    def _compute_parts(
        self,
        forward: Forward,
        loss_of: Loss,
        batch: Sequence[Tensor],
        sizes: Sequence[int],
        plan: SplitPlan,
    ) -> tuple[Tensor, list[Tensor], Grads]:
        """Return the same loss, parameters and gradients, computed part by part."""
        work = _Parts(self.parameters, forward, loss_of, batch, sizes)
        # [Step 1] Find the exponents of the whole batch's grids; the outputs are found on the way,
        # or before, where the gradient of one part's outputs needs those of the others.
        sums = PartSums(plan.step, sum(sizes))
        is_constant, of_loss = plan.has_constant_gradient, LossGrads()
        if not is_constant and (self.loss_mixes_samples or _is_capturing(batch)):
            work.find_outputs()
            loss, output_grads = differentiate_loss(loss_of, work.join_outputs(), batch, of_loss)
            work.run(sums, output_grads)
        else:
            assumed = work.run(sums, is_constant=is_constant)
            loss, output_grads = differentiate_loss(loss_of, work.join_outputs(), batch, of_loss)
            if not _is_capturing(batch) and not all(map(same_bits, assumed, output_grads)):
                if is_constant:  # the trace saw another loss
                    changed = replace(plan, has_constant_gradient=False)
                    self._plans[describe_rows(batch)] = changed
                else:
                    self.loss_mixes_samples = True
                sums = PartSums(plan.step, sum(sizes))
                work.run(sums, output_grads)
        # [Step 2] Add the integers.
        sums.is_adding = True
        work.run(sums, output_grads)
        return loss, *join_gradients(self.parameters, work.grads, of_loss)

    def _find_plan(
        self, forward: Forward, loss_of: Loss, batch: Sequence[Tensor], sizes: Sequence[int]
    ) -> SplitPlan:
        """Return the plan of a step on such samples; a new kind of step is traced and tried."""
        key = describe_rows(batch)
        if key not in self._plans:
            if _is_capturing(batch):
                raise NumericsError(
                    "expected a step of these shapes before the graph is captured: the first one "
                    "is traced. Run it once, then capture"
                )
            few = take_rows(batch, TRIAL_SAMPLES)
            outputs = compute_outputs(forward, few)
            check_outputs(outputs, TRIAL_SAMPLES)
            traced = trace_loss(loss_of, outputs, few)
            if traced.changed:
                raise NumericsError(
                    "expected a loss that changes no tensor that outlives it, since a batch in "
                    "parts computes it several times; got one that changes a tensor of "
                    f"{traced.changed[0].numel()} values. Change it after the step"
                )
            step, changed = trace_step(
                forward, batch, self.parameters, traced.uses_output, in_group=False
            )
            check_order(forward, take_rows(batch, max(sizes)), step, changed)
            plan = SplitPlan(step, traced.has_constant_gradient)
            for rows in list_trials(batch[0].shape[0]):
                self._try(forward, loss_of, [tensor[rows] for tensor in batch], plan)
            self._plans[key] = plan
        return self._plans[key]

    def _try(
        self, forward: Forward, loss_of: Loss, batch: Sequence[Tensor], plan: SplitPlan
    ) -> None:
        """Refuse a step whose gradients differ between four samples and two times two."""
        _, parameters, whole = self._compute_whole(forward, loss_of, batch)
        _, _, parts = self._compute_parts(forward, loss_of, batch, [2, 2], plan)
        for number, (one, two) in enumerate(zip(whole, parts, strict=True)):
            if not same_bits(one, two):
                raise NumericsError(
                    "expected each sample to be computed alone, so that a batch can be computed in "
                    f"parts; four samples and two times two differ in the gradient of parameter "
                    f"{number}, {tuple(parameters[number].shape)}. Does the model reorder or "
                    "mix samples, or keep state? Compute the batch as a whole"
                )


class _Parts:
    """A batch in parts: runs them forward and backward one after another."""

    def __init__(
        self,
        parameters: Sequence[Tensor],
        forward: Forward,
        loss_of: Loss,
        batch: Sequence[Tensor],
        sizes: Sequence[int],
    ) -> None:
        self.parameters, self.forward, self.loss_of, self.batch = (
            parameters,
            forward,
            loss_of,
            batch,
        )
        self.sizes = list(sizes)
        rows = [torch.split(tensor, self.sizes) for tensor in batch]
        self.parts = list(zip(*rows, strict=True))
        self.outputs: list[list[Tensor]] = []
        self.grads: Grads = ()

    def find_outputs(self) -> None:
        """Compute the outputs of all parts."""
        self.outputs = [compute_outputs(self.forward, part) for part in self.parts]
        for outputs, size in zip(self.outputs, self.sizes, strict=True):
            check_outputs(outputs, size)

    def join_outputs(self) -> list[Tensor]:
        """Return the outputs of the whole batch."""
        return [torch.cat(each) for each in zip(*self.outputs, strict=True)]

    def run(
        self, sums: PartSums, output_grads: Grads | None = None, is_constant: bool = False
    ) -> list[Tensor | None]:
        """Run all parts forward and backward, and return the outputs' gradients that were used.

        Without ``output_grads``, those of a part are found as if the others' outputs were zero;
        where they are constant, those of the first part serve for all.
        """
        starts = [sum(self.sizes[:number]) for number in range(len(self.sizes))]
        outputs_of_parts, grads_of_parts = [], []
        for number, (part, size) in enumerate(zip(self.parts, self.sizes, strict=True)):
            rows = slice(starts[number], starts[number] + size)
            sums.begin()
            sums.is_last = number == len(self.parts) - 1
            with CONTEXT.evaluate_sums_with(sums):
                outputs = list_outputs(self.forward(*part))
            check_outputs(outputs, size)
            whole = output_grads
            if whole is None:
                whole = self._assume_grads(outputs, rows)
                output_grads = whole if is_constant else None
            grads = [None if grad is None else grad[rows] for grad in whole]
            with CONTEXT.evaluate_sums_with(sums):
                self.grads = backward(outputs, grads, self.parameters)
            sums.end()
            outputs_of_parts.append([output.detach() for output in outputs])
            grads_of_parts.append(grads)
        self.outputs = outputs_of_parts
        return [
            None if each[0] is None else torch.cat([one for one in each if one is not None])
            for each in zip(*grads_of_parts, strict=True)
        ]

    def _assume_grads(self, outputs: Sequence[Tensor], rows: slice) -> Grads:
        """Return the gradients of the whole batch's outputs, the other parts' being zero."""
        filled = []
        for output in outputs:
            whole = output.new_zeros((sum(self.sizes), *output.shape[1:]))
            whole[rows] = output.detach()
            filled.append(whole)
        return differentiate_loss(self.loss_of, filled, self.batch)[1]


def _is_capturing(batch: Sequence[Tensor]) -> bool:
    """Return whether a CUDA graph is being captured, in which the host can compare nothing."""
    return batch[0].is_cuda and torch.cuda.is_current_stream_capturing()


def _list_sizes(size: int | Sequence[int], samples: int) -> list[int]:
    """Return the sizes of the parts."""
    if isinstance(size, int):
        if size < 1:
            raise NumericsError(f"expected parts of at least one sample, got size={size}")
        whole, rest = divmod(samples, size)
        if rest == 1 and whole and size > 2:  # a part of one sample may leave sums out
            return [size] * (whole - 1) + [size - 1, 2]
        return [size] * whole + ([rest] if rest else [])
    if sum(size) != samples or any(part < 1 for part in size):
        raise NumericsError(
            f"expected sizes of parts that add up to the batch's {samples} samples, got {size}"
        )
    return list(size)
