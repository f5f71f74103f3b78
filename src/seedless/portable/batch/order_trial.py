"""Whether a forward pass computes each sample alone: the same samples in another order.

Law: sums over samples are exact, so they do not depend on the order of the samples. In another
order each sample must therefore have the output it had, in its new row. A model that shifts,
reorders or pairs samples gives some of them other outputs, however far it shifts them.

The trial takes one sample more than twice as many as a process computes, each several times and in
no regular sequence: no shift that fits into them leaves them all in place.
"""

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from seedless.core.errors import NumericsError
from seedless.portable.batch.plain_torch import plain_torch
from seedless.portable.batch.step_computation import (
    Forward,
    check_outputs,
    compute_outputs,
    restore,
    same_bits,
)
from seedless.portable.batch.step_plan import StepPlan

_MOVING = ("roll", "flip", "index", "index_select", "gather", "sort", "topk", "cumsum", "argsort")
_MOVING_TOO = ("slice", "cat", "narrow", "split", "unbind", "select")  # more often harmless
_SHOWN_OPS = 3


def check_order(
    forward: Forward, rows: Sequence[Tensor], plan: StepPlan, changed: Sequence[Tensor]
) -> None:
    """Refuse a forward pass in which the order of the samples changes their outputs.

    Args:
        forward: of the step.
        rows: samples, as many as a process computes at once.
        plan: of the step, to name the ops that may be the reason.
        changed: tensors that the forward pass changes; they get their values back.
    """
    samples = 2 * rows[0].shape[0] + 1
    device = rows[0].device
    with plain_torch():
        before = [tensor.clone() for tensor in changed]
        chosen = torch.tensor(_choose_rows(samples, rows[0].shape[0]), device=device)
        order = torch.tensor(_mix(samples), device=device)
        first = [tensor[chosen] for tensor in rows]
        second = [tensor[order] for tensor in first]
    try:
        found = compute_outputs(forward, first)
        check_outputs(found, samples)
        restore(changed, before)
        again = compute_outputs(forward, second)
        check_outputs(again, samples)
    finally:
        restore(changed, before)
    with plain_torch():
        is_alike = all(same_bits(one[order], two) for one, two in zip(found, again, strict=True))
    if not is_alike:
        raise NumericsError(
            "expected each sample to be computed alone, so that a batch can be computed in parts; "
            f"got other outputs for {samples} samples in another order. Does the model shift, "
            f"reorder or pair samples? {_name_suspects(plan)}Do that before the step, or in "
            "loss_of, which has the whole batch"
        )


def _choose_rows(samples: int, rows: int) -> list[int]:
    """Return which row each sample of a trial is: all of them once, then in no regular sequence."""
    return [*range(rows), *(_hash(number) % rows for number in range(rows, samples))]


def _mix(samples: int) -> list[int]:
    """Return an order that no shift, reversal or other regular order commutes with."""
    return sorted(range(samples), key=_hash)


def _hash(number: int) -> int:
    return int.from_bytes(hashlib.sha256(str(number).encode()).digest()[:8], "little")


def _name_suspects(plan: StepPlan) -> str:
    """Return the ops of a forward pass that can move samples, with their lines, as a sentence."""
    for names in (_MOVING, _MOVING_TOO):
        found = [
            f"{op.name} at {op.origin}"
            for op in plan.forward
            if op.name.partition("::")[2].partition(".")[0] in names
        ]
        if found:
            return f"Ops that can: {', '.join(list(dict.fromkeys(found))[:_SHOWN_OPS])}. "
    return ""
