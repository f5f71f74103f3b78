"""What a group refuses before its first step: other weights, other exchanges, a failing forward."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from seedless.core.digests import digest
from seedless.core.errors import NumericsError
from seedless.portable.batch.collectives import Collectives
from seedless.portable.batch.plain_torch import plain_torch
from seedless.portable.batch.step_computation import (
    TRIAL_SAMPLES,
    Forward,
    Loss,
    compute_outputs,
    differentiate_loss,
    needs_graph,
    restore,
    same_bits,
    take_rows,
)
from seedless.portable.batch.step_plan import number_of


def share_first(
    exchange: Collectives, rows: Sequence[Tensor], counts: Sequence[int]
) -> list[Tensor]:
    """Return the first samples of the whole batch, at most four, on every process."""
    parts, missing = [], TRIAL_SAMPLES
    for rank, count in enumerate(counts):
        taken = min(count, missing)
        missing -= taken
        if taken:
            parts.append(exchange.broadcast(take_rows(rows, taken), rank))
    return [torch.cat(each) for each in zip(*parts, strict=True)]


def check_start(exchange: Collectives, state: Sequence[Tensor]) -> None:
    """Refuse a group whose processes start from different weights or buffers."""
    with plain_torch():
        named = {str(number): tensor.detach() for number, tensor in enumerate(state)}
        own = torch.tensor([number_of(digest(named))]).view(torch.uint8)
    for rank, other in enumerate(exchange.gather(own)):
        if not torch.equal(own, other):
            raise NumericsError(
                "expected the same weights and buffers on all processes before the first step, "
                f"got others on rank {rank} than on rank {exchange.rank}. Load or "
                "initialize them alike on each process (seedless.initialize needs no seed)"
            )


@contextmanager
def refuse_other_exchanges(forward: Forward) -> Iterator[None]:
    """Refuse DistributedDataParallel and SyncBatchNorm, as ``forward`` or called by it."""

    def check(module: object, _: object = None) -> None:
        if isinstance(module, nn.parallel.DistributedDataParallel):
            raise NumericsError(
                "expected a model, got it inside DistributedDataParallel, whose sums depend on the "
                "number of processes; use the model itself (ddp.module): step() exchanges gradients"
            )
        if isinstance(module, nn.SyncBatchNorm) and module.training:
            raise NumericsError(
                "expected nn.BatchNorm, got nn.SyncBatchNorm, whose sums depend on the number of "
                "processes; leave convert_sync_batchnorm out: in this block BatchNorm's statistics "
                "are those of the whole batch, on all processes"
            )

    check(forward)
    handle = register_module_forward_pre_hook(check)
    try:
        yield
    finally:
        handle.remove()


def check_repeatable(
    forward: Forward, loss_of: Loss, few: Sequence[Tensor], changed: Sequence[Tensor]
) -> None:
    """Refuse a step that computes something else each time: the block calls it more than once.

    Args:
        forward, loss_of: of the step.
        few: some samples.
        changed: tensors that the step changes; they get their values back before each call.
    """
    with plain_torch():
        before = [tensor.clone() for tensor in changed]
    outputs: list[list[Tensor]] = []
    losses: list[list[Tensor]] = []
    for _ in range(2):
        outputs.append(compute_outputs(forward, few))
        losses.append([differentiate_loss(loss_of, outputs[0], few)[0]])
        restore(changed, before)
    for name, (one, two) in {"forward": outputs, "loss_of": losses}.items():
        if not all(map(same_bits, one, two)):
            raise NumericsError(
                f"expected {name} to compute the same for the same samples in every call, since a "
                "new step is tried before it is taken; got other values in a second call. Does it "
                "count its calls, or keep values in Python? Keep them in tensors (a buffer), or "
                "change them after the step"
            )


def explain_failure(forward: Forward, rows: Sequence[Tensor]) -> Forward:
    """Return a forward pass that is refused where it fails because of the number of samples.

    Args:
        forward: of the step, to be called with a few samples.
        rows: all samples of this process.
    """
    has_run = False

    def run(*few: Tensor) -> Tensor | Sequence[Tensor]:
        nonlocal has_run
        try:
            outputs = forward(*few)
        except NumericsError:
            raise
        except Exception as error:
            # An index into the batch fails on any part of it; a fixed number of samples on a few;
            # what was kept of an earlier call on another number.
            is_explained = isinstance(error, IndexError) or has_run or _can_run(forward, rows)
            if needs_graph(error) or not is_explained:
                raise
            raise NumericsError(
                "expected a forward pass that computes any samples of a batch, since processes "
                f"share it; got {type(error).__name__} with {few[0].shape[0]} samples: {error}. "
                "Does it pick samples by their number in the batch, need a fixed number of them, "
                "or keep outputs for the next call? Do that before the step, pass it in with the "
                "batch, or compute it in loss_of, which has the whole batch"
            ) from error
        has_run = True
        return outputs

    return run


def _can_run(forward: Forward, rows: Sequence[Tensor]) -> bool:
    try:
        compute_outputs(forward, rows)
    except Exception:
        return False
    return True
