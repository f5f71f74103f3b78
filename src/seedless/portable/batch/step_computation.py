"""The parts of a training step that `Split`, `GroupStep` and `Block` share."""

from collections.abc import Callable, Collection, Iterable, Sequence

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.batch.plain_torch import plain_torch
from seedless.portable.mode import is_active

Forward = Callable[..., Tensor | Sequence[Tensor]]
Loss = Callable[..., Tensor]
Grads = tuple[Tensor | None, ...]
LossGrads = dict[Tensor, Tensor]  # by parameters that a loss uses, their gradients
TRIAL_SAMPLES = 4  # of the trial of a new step: together, and two by two


def list_outputs(outputs: Tensor | Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs of a forward pass as a list."""
    listed = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    for output in listed:
        if not isinstance(output, Tensor):
            raise NumericsError(
                "expected forward to return a tensor, or a list or dict of tensors, one row a "
                f"sample; got one with a {type(output).__name__}. Return what the loss needs: "
                "out.logits of a Transformers model, say"
            )
    return listed


def compute_outputs(forward: Forward, rows: Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs of a forward pass, without the memory that gradients need.

    A forward pass that computes gradients itself, as a gradient penalty does, needs it.
    """
    try:
        with torch.no_grad():
            return list_outputs(forward(*rows))
    except RuntimeError as error:
        if not needs_graph(error):
            raise
    return [output.detach() for output in list_outputs(forward(*rows))]


def needs_graph(error: Exception) -> bool:
    """Return whether a forward pass failed because it computes gradients itself without a graph."""
    return "does not require grad" in str(error)


def differentiate_loss(
    loss_of: Loss,
    outputs: Sequence[Tensor],
    batch: Sequence[Tensor],
    of_loss: LossGrads | None = None,
) -> tuple[Tensor, Grads]:
    """Return the loss of a whole batch and its gradients with respect to the outputs.

    Those with respect to parameters that the loss uses are written into ``of_loss``.
    """
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
    own = [leaf for leaf in find_leaves([loss]) if id(leaf) not in known]
    if not loss.requires_grad:
        return loss.detach(), tuple(None for _ in leaves)
    real = [leaf for leaf in leaves if leaf.requires_grad]
    found = iter(torch.autograd.grad(loss, [*real, *own], allow_unused=True))
    grads = tuple(next(found) if leaf.requires_grad else None for leaf in leaves)
    if of_loss is not None:
        of_loss.update(
            (leaf, grad) for leaf, grad in zip(own, found, strict=True) if grad is not None
        )
    return loss.detach(), grads


def join_gradients(
    parameters: Sequence[Tensor], grads: Grads, of_loss: LossGrads
) -> tuple[list[Tensor], Grads]:
    """Return parameters and gradients, with those that the loss uses and the forward pass does not.

    A parameter that both use is refused: in which order its gradients are added is not known.
    """
    joined = dict(zip(parameters, grads, strict=True))
    for leaf, grad in of_loss.items():
        if joined.get(leaf) is not None:
            raise NumericsError(
                "expected a loss that uses no parameter of the forward pass, got one of shape "
                f"{tuple(leaf.shape)} in both; use the optimizer's weight decay, or return the "
                "term from forward as an output with one row a sample (term.expand(len(x)))"
            )
        joined[leaf] = grad
    return list(joined), tuple(joined.values())


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
    try:
        return torch.autograd.grad(
            [y for y, _ in used], parameters, [g for _, g in used], allow_unused=True
        )
    except RuntimeError as error:
        if "use_reentrant" not in str(error):
            raise
        raise NumericsError(
            "expected torch.utils.checkpoint with use_reentrant=False, got True, with which a step "
            "cannot ask for the gradients of the parameters alone. Set use_reentrant=False"
        ) from None


def add_gradients(parameters: Sequence[Tensor], grads: Grads) -> None:
    """Add gradients to those that are there; refuse a step that has none."""
    if all(grad is None for grad in grads):
        raise NumericsError(
            "expected a loss that depends on a parameter, got none that takes a gradient from it. "
            "Are all layers frozen, or are the outputs detached?"
        )
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


def list_parameters(outputs: Iterable[Tensor], passing: Collection[int]) -> list[Tensor]:
    """Return `find_leaves`, without those, by their position, that end with the step."""
    return [leaf for number, leaf in enumerate(find_leaves(outputs)) if number not in passing]


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


def check_inputs(batch: Sequence[Tensor]) -> None:
    """Refuse tensors of a batch that take a gradient: each process has its own rows."""
    for number, tensor in enumerate(batch):
        if tensor.requires_grad:
            raise NumericsError(
                f"expected a batch that takes no gradient, got requires_grad in tensor {number}. "
                "Pass tensor.detach(); a gradient with respect to inputs can be computed in "
                "forward by torch.autograd.grad and returned as an output"
            )


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


def restore(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Give tensors that a step has changed their earlier values."""
    with plain_torch():
        for tensor, value in zip(tensors, values, strict=True):
            tensor.copy_(value)
