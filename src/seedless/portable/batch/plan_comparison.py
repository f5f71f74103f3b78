"""What the processes of a group compare before their first step: samples, and what they traced.

The steps differ where their sums over samples do. The message names the first op of the forward
pass that differs, with its line; where none does, the first sum of the backward pass.
"""

import json
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.batch.collectives import Collectives
from seedless.portable.batch.step_plan import StepPlan


def check_plans(
    exchange: Collectives, plan: StepPlan, rows: Sequence[Tensor], samples: int
) -> list[int]:
    """Refuse a group whose processes have other samples or have traced other steps.

    Returns how many samples each process has.
    """
    sums = plan.describe_shared_sums()
    found = _exchange(exchange, {"samples": samples, "shapes": list_shapes(rows), "sums": sums})
    for rank, other in enumerate(found):
        if "failure" in other:
            raise NumericsError(
                f"rank {rank} of {exchange.size} failed before the first step: {other['failure']}"
            )
    for rank, other in enumerate(found):
        if other["shapes"] != found[exchange.rank]["shapes"]:
            raise refuse_shapes(rank, exchange.rank)
    if any(other["sums"] != sums for other in found):  # then every process comes here
        origins = _exchange(exchange, plan.describe_origins())
        rank = next(rank for rank, other in enumerate(found) if other["sums"] != sums)
        raise _refuse_other_plan(rank, exchange.rank, [each["sums"] for each in found], origins)
    counts = [other["samples"] for other in found]
    check_counts(counts)
    return counts


def report_failure(exchange: Collectives, error: Exception) -> None:
    """Tell the other processes, which are in `check_plans`, why this one has no plan."""
    _exchange(exchange, {"failure": str(error) or type(error).__name__})


def check_counts(counts: Sequence[int]) -> None:
    """Refuse a batch of which no process has a sample."""
    if not any(counts):
        raise NumericsError(
            f"expected a batch with samples on at least one of {len(counts)} processes, got none"
        )


def list_shapes(tensors: Sequence[Tensor]) -> list[list[Any]]:
    """Return shape and type of a sample of each tensor, as plain values."""
    return [[list(tensor.shape[1:]), str(tensor.dtype)] for tensor in tensors]


def refuse_shapes(rank: int, own_rank: int) -> NumericsError:
    """Return the error for processes whose samples have different shapes."""
    return NumericsError(
        "expected outputs and batches of one shape and type on all processes, and one step; got "
        f"others on rank {rank} than on rank {own_rank}. Pad all samples of a batch to one length"
    )


def _exchange(exchange: Collectives, value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the plain values of all processes."""
    text = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
    found = []
    for rank, other in enumerate(exchange.gather(text)):
        try:
            found.append(json.loads(bytes(other.tolist())))
        except ValueError:  # the outputs of a step that is not new there
            raise refuse_shapes(rank, exchange.rank) from None
    return found


def _refuse_other_plan(
    rank: int, own_rank: int, sums: list[list[Any]], origins: list[dict[str, Any]]
) -> NumericsError:
    """Return the error for a rank whose step has other sums."""
    # [Step 1] The first sum over samples that differs.
    number = _find_difference(sums[own_rank], sums[rank])
    words = [_name_sum(sums[each], origins[each]["sums"], number) for each in (own_rank, rank)]
    text = f"sum {number} over samples is {words[0]} here and {words[1]} on rank {rank}"
    # [Step 2] The first op of the forward pass that differs; the line it is on may differ freely.
    forward = [origins[each]["forward"] for each in (own_rank, rank)]
    number = _find_difference(*([op[:2] for op in ops] for ops in forward))
    if number < max(map(len, forward)):
        here, there = (_name_op(ops[number : number + 1]) for ops in forward)
        text = f"op {number} of the forward pass is {here} here and {there} on rank {rank}; {text}"
    return NumericsError(
        f"expected the same step on all processes of the group; {text}. Do all ranks have the same "
        "model and settings?"
    )


def _find_difference(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return the position of the first items that differ, or where the shorter list ends."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _name_op(ops: list[Any]) -> str:
    for name, shapes, origin in ops:
        made = " and ".join(str(tuple(shape)) for shape in shapes) or "nothing"
        return f"{name} at {origin}, which makes {made} of two samples,"
    return "missing"


def _name_sum(sums: list[Any], origins: list[str], number: int) -> str:
    """Return a sum, as `describe_shared_sums` has it, in words."""
    if number >= len(sums):
        return "missing"
    name, shape, fixed, each, waits = sums[number]
    use = "for a gradient" if waits else "that the step computes with"
    more = f" and {fixed} more" if fixed else ""
    return (
        f"a {name} of shape {tuple(shape)} {use} (values of a sample: {each}{more}; "
        f"{origins[number]})"
    )
