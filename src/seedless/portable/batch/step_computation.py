"""The parts of a training step, and how a step is traced: what `Split` and `GroupStep` share."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.batch.batch_dependence import TRACED_SIZES, plan_step
from seedless.portable.batch.op_trace import OpTrace, find_memory
from seedless.portable.batch.step_plan import StepPlan
from seedless.portable.mode import is_active

Forward = Callable[..., Tensor | Sequence[Tensor]]
Loss = Callable[..., Tensor]
Grads = tuple[Tensor | None, ...]
TRIAL_SAMPLES = 4  # of the trial of a new step: together, and two by two


def list_outputs(outputs: Tensor | Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs of a forward pass as a list."""
    listed = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    for output in listed:
        if not isinstance(output, Tensor):
            raise NumericsError(
                "expected forward to return a tensor or a list of tensors, one row a sample, got "
                f"{type(outputs).__name__} with a {type(output).__name__}. Return what the loss "
                "needs: out.logits of a Transformers model, say, or list(out.values()) of a dict"
            )
    return listed


def differentiate_loss(
    loss_of: Loss, outputs: Sequence[Tensor], batch: Sequence[Tensor]
) -> tuple[Tensor, Grads]:
    """Return the loss of a whole batch and its gradients with respect to the outputs."""
    with torch.enable_grad():
        leaves = [output.detach() for output in outputs]
        for leaf in leaves:
            leaf.requires_grad_(leaf.is_floating_point())
        loss = loss_of(leaves[0] if len(leaves) == 1 else leaves, *batch)
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        shape = f" of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else ""
        raise NumericsError(
            "expected loss_of to return one number for the batch as a tensor, the mean of the "
            f"samples' losses, say; got a {type(loss).__name__}{shape}"
        )
    known = {id(leaf) for leaf in leaves}
    if any(id(leaf) not in known for leaf in find_leaves([loss])):
        raise NumericsError(
            "expected a loss of the outputs alone, got one that uses a parameter of the model; "
            "use the optimizer's weight decay, or return the term from forward as an output"
        )
    if not loss.requires_grad:
        return loss.detach(), tuple(None for _ in leaves)
    real = [leaf for leaf in leaves if leaf.requires_grad]
    found = iter(torch.autograd.grad(loss, real, allow_unused=True))
    return loss.detach(), tuple(next(found) if leaf.requires_grad else None for leaf in leaves)


def backward(
    outputs: Sequence[Tensor], output_grads: Sequence[Tensor | None], parameters: Sequence[Tensor]
) -> Grads:
    """Return the parameters' gradients, given those of the outputs."""
    used = [
        (y, g)
        for y, g in zip(outputs, output_grads, strict=True)
        if g is not None and y.requires_grad
    ]
    if not used or not parameters:
        return tuple(None for _ in parameters)
    return torch.autograd.grad(
        [y for y, _ in used], parameters, [g for _, g in used], allow_unused=True
    )


def add_gradients(parameters: Sequence[Tensor], grads: Grads) -> None:
    """Add gradients to those that are there."""
    for parameter, grad in zip(parameters, grads, strict=True):
        if grad is not None:
            parameter.grad = grad if parameter.grad is None else parameter.grad + grad


def find_leaves(results: Iterable[Tensor]) -> list[Tensor]:
    """Return the tensors that results were computed from and that take a gradient, in order."""
    leaves: dict[int, Tensor] = {}
    seen: set[object] = set()
    waiting = [result.grad_fn for result in results if result.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            leaves.setdefault(id(variable), variable)
        waiting.extend(after for after, _ in reversed(node.next_functions) if after is not None)
    return list(leaves.values())


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
    # The first run makes the tables that are made once, so that they are in neither trace.
    for size in (TRACED_SIZES[0], *TRACED_SIZES):
        trace, rows = OpTrace(), take_rows(batch, size)
        try:
            with trace.recording():
                outputs = list_outputs(forward(*rows))
            forward_entries = len(trace.entries)
            wanted = find_leaves(outputs) if parameters is None else parameters
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
    return plan, changed


@dataclass(frozen=True)
class TracedLoss:
    """What a loss uses.

    Attributes:
        uses_output: for each output, whether the loss depends on it.
        reads_batch: for each tensor of the batch, whether the loss reads its values.
        has_constant_gradient: whether its gradient is the same for all values of the outputs.
    """

    uses_output: tuple[bool, ...]
    reads_batch: tuple[bool, ...]
    has_constant_gradient: bool


def trace_loss(loss_of: Loss, outputs: Sequence[Tensor], batch: Sequence[Tensor]) -> TracedLoss:
    """Trace the loss of a few samples and its gradient."""
    trace = OpTrace()
    with trace.recording():
        _, grads = differentiate_loss(loss_of, outputs, batch)
    read = {tensor.memory for entry in trace.entries for tensor in entry.read}
    depending = trace.find_depending(outputs)
    return TracedLoss(
        tuple(grad is not None for grad in grads),
        tuple(find_memory(tensor) in read for tensor in batch),
        not any(find_memory(grad) in depending for grad in grads if grad is not None),
    )


def take_rows(batch: Sequence[Tensor], samples: int) -> list[Tensor]:
    """Return the first rows, repeated where there are too few."""
    return [
        tensor[torch.arange(samples, device=tensor.device) % tensor.shape[0]] for tensor in batch
    ]


def list_trials(samples: int) -> list[list[int]]:
    """Return which rows of a batch make the four samples of each trial of a step.

    Fewer samples are repeated such that a model which reorders them shows: two need two trials.

    >>> list_trials(9), list_trials(3), list_trials(2)
    ([[0, 1, 2, 3]], [[0, 1, 2, 0]], [[0, 1, 1, 0], [0, 1, 0, 1]])
    """
    if samples == 2:
        return [[0, 1, 1, 0], [0, 1, 0, 1]]
    return [[number % samples for number in range(TRIAL_SAMPLES)]]


def describe_rows(batch: Sequence[Tensor]) -> tuple[object, ...]:
    """Return what two batches must have in common to have one plan: all but their length."""
    return tuple((tuple(tensor.shape[1:]), tensor.dtype, tensor.device) for tensor in batch)


def check_batch(batch: Sequence[Tensor], fewest: int) -> int:
    """Return how many samples a batch has; refuse tensors that disagree about it."""
    if not is_active():
        raise NumericsError(
            "expected a batch in parts inside `with portable():`, where each sum has one "
            "value; got it outside. Move step() inside"
        )
    lengths = {tensor.shape[0] if tensor.ndim else 0 for tensor in batch}
    if len(lengths) != 1 or min(lengths) < fewest:
        raise NumericsError(
            "expected tensors with one row a sample, and at least one sample; got shapes "
            f"{[tuple(tensor.shape) for tensor in batch]}"
        )
    return lengths.pop()


def check_outputs(outputs: Sequence[Tensor], samples: int) -> None:
    """Refuse outputs that do not have one row for each sample."""
    for output in outputs:
        if not output.ndim or output.shape[0] != samples:
            raise NumericsError(
                f"expected outputs with one row for each of a part's {samples} samples, got "
                f"{tuple(output.shape)}; compute what concerns the batch in loss_of"
            )


def same_bits(one: Tensor | None, two: Tensor | None) -> bool:
    """Return whether two gradients have the same bits, not counting those of NaNs."""
    if one is None or two is None:
        return one is two
    if not one.is_floating_point():
        return torch.equal(one, two)
    ones = one.new_ones(())
    bits = [torch.where(x != x, ones, x).reshape(-1).view(torch.uint8) for x in (one, two)]
    return torch.equal(*bits) and torch.equal(one != one, two != two)
