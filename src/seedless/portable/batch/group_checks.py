"""What the processes of a group compare before their first step, and what they refuse."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from seedless.core.digests import digest
from seedless.core.errors import NumericsError
from seedless.portable.batch.collectives import Collectives
from seedless.portable.batch.group_sums import refuse_other_plan
from seedless.portable.batch.plain_torch import plain_torch
from seedless.portable.batch.step_computation import TRIAL_SAMPLES, Forward, take_rows
from seedless.portable.batch.step_plan import StepPlan, number_of


def check_plans(
    exchange: Collectives, plan: StepPlan, rows: Sequence[Tensor], samples: int
) -> list[int]:
    """Refuse a group whose processes have other samples or have traced other steps.

    Returns how many samples each process has.
    """
    shapes = [[list(tensor.shape[1:]), str(tensor.dtype)] for tensor in rows]
    sums, counts = plan.describe_shared_sums(), []
    own = json.dumps([samples, shapes, sums]).encode()
    text = torch.frombuffer(bytearray(own), dtype=torch.uint8)
    for rank, other in enumerate(exchange.gather(text)):
        count, other_shapes, other_sums = json.loads(bytes(other.tolist()))
        if other_shapes != shapes:
            raise refuse_shapes(rank, exchange.rank)
        if other_sums != sums:
            raise refuse_other_plan(rank, sums, other_sums)
        counts.append(count)
    check_counts(counts)
    return counts


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


def check_counts(counts: Sequence[int]) -> None:
    """Refuse a batch of which no process has a sample."""
    if not any(counts):
        raise NumericsError(
            f"expected a batch with samples on at least one of {len(counts)} processes, got none"
        )


def refuse_shapes(rank: int, own_rank: int) -> NumericsError:
    """Return the error for processes whose samples have different shapes."""
    return NumericsError(
        "expected outputs and batches of one shape and type on all processes, and one step; got "
        f"others on rank {rank} than on rank {own_rank}. Pad all samples of a batch to one length"
    )


@contextmanager
def refuse_ddp(forward: Forward) -> Iterator[None]:
    """Refuse DistributedDataParallel as ``forward``, and where something inside calls it."""

    def check(module: object, _: object = None) -> None:
        if isinstance(module, nn.parallel.DistributedDataParallel):
            raise NumericsError(
                "expected a model, got it inside DistributedDataParallel, whose sums depend on the "
                "number of processes; use the model itself (ddp.module): step() exchanges gradients"
            )

    check(forward)
    handle = register_module_forward_pre_hook(check)
    try:
        yield
    finally:
        handle.remove()
