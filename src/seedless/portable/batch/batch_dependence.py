"""Which sums of a step add up samples, and whether anything else uses more than one sample.

Law: a step of two samples and a step of three are compared, op by op. A tensor whose shape differs
`grows`: it holds the samples. A sum whose grid grows while its result does not adds samples up, as
the gradients of weights and biases do; its result, and what is computed from it, is `summed`. A
step can be computed in parts if no other op makes a value without samples from a tensor that holds
them, and
  - by parts one after another: if no op makes a tensor that holds samples from a summed value, and
    none changes a tensor that outlives the step;
  - by parts at the same time, in processes that exchange sums: always. A sum over samples that such
    an op uses must be exchanged at once; the others wait until the backward pass is over.
"""

from collections.abc import Sequence

from seedless.core.errors import NumericsError
from seedless.portable.batch.op_trace import READING_SHAPES, Entry, OpTrace, TensorRecord
from seedless.portable.batch.step_plan import ForwardOp, PlannedSum, StepPlan

TRACED_SIZES = (2, 3)  # samples; not 1, with which broadcasting leaves sums out
_NUMBERING = frozenset({"arange", "eye", "linspace", "tril_indices", "triu_indices"})
# Ops that write a result into other memory and can do so again when a value is known.
_WRITING = frozenset({"add", "copy"})
_IN_PARTS = (
    "Compute the batch as a whole, or replace this op (BatchNorm by GroupNorm or LayerNorm, packed "
    "sequences by padded ones and a mask, say)"
)
_IN_GROUP = (
    "Compute it in loss_of, which has the whole batch, or replace this op (a mean over samples by "
    "BatchNorm, packed sequences by padded ones and a mask, samples chosen by a mask by all of "
    "them and torch.where, EmbeddingBag by Embedding and a sum, say), or use one process"
)


def plan_step(two: OpTrace, three: OpTrace, *, forward_entries: int, in_group: bool) -> StepPlan:
    """Return the plan of a step, or refuse a step that cannot be computed in parts.

    Args:
        two, three: traces of the step with two and with three samples.
        forward_entries: how many entries of ``two`` belong to the forward pass.
        in_group: whether the parts are computed at the same time, by processes that exchange sums.
    """
    _check_sequence(two.entries, three.entries, in_group)
    needed_now: set[int] = set()  # sums, by their entry, that may not wait
    sources: dict[int, set[int]] = {}  # memory of summed values, with the sums it came from
    outside: set[int] = set()  # memory that was there before the step
    made: set[int] = set()
    pairs = list(zip(two.entries, three.entries, strict=True))
    for number, (one, other) in enumerate(pairs):
        # [Step 1] Memory that is read before any op of the step made it was there before.
        outside |= {tensor.memory for tensor in one.read} - made
        made |= {tensor.memory for tensor in one.made} - outside
        # [Step 2] Refuse what mixes samples otherwise than by adding them up.
        adds_samples = one.grid_sizes != other.grid_sizes
        is_summed = any(tensor.memory in sources for tensor in one.read)
        _check_entry(one, other, outside, in_group, is_summed)
        # [Step 3] A value that is used together with samples, or kept, is needed at once.
        used = {sum_ for tensor in one.read for sum_ in sources.get(tensor.memory, ())}
        if adds_samples or not _can_run_again(one, other, outside, sources):
            needed_now |= used
        if adds_samples and number < forward_entries:
            needed_now.add(number)
        # [Step 4] Remember which memory holds summed values.
        grows = any(a.shape != b.shape for a, b in zip(one.made, other.made, strict=True))
        if adds_samples or (is_summed and not grows):
            from_here = {number} if adds_samples else used
            for tensor in (*one.made, *one.changed):
                sources.setdefault(tensor.memory, set()).update(from_here)
    return _make_plan(two, pairs, needed_now, forward_entries)


def _list_forward(trace: OpTrace, forward_entries: int) -> tuple[ForwardOp, ...]:
    """Return the ops of the forward pass; the last part of an op makes what the op makes."""
    last = {entry.op: entry for entry in trace.entries[:forward_entries]}
    return tuple(
        ForwardOp(trace.ops[op], tuple(made.shape for made in entry.made), entry.origin)
        for op, entry in last.items()
    )


def _make_plan(
    trace: OpTrace,
    pairs: Sequence[tuple[Entry, Entry]],
    needed_now: set[int],
    forward_entries: int,
) -> StepPlan:
    """Return the plan of a step; two traces give the number of addends of any batch."""
    # [Step 1] List the sums of each op.
    by_op: dict[int, list[PlannedSum]] = {}
    for number, (one, other) in enumerate(pairs):
        if one.is_sum and not one.is_hidden:
            each = other.addends - one.addends
            fixed = one.addends - TRACED_SIZES[0] * each
            adds_samples = one.grid_sizes != other.grid_sizes
            waits = adds_samples and number not in needed_now
            shape, is_forward = one.made[0].shape, number < forward_entries
            by_op.setdefault(one.op, []).append(
                PlannedSum(
                    *(one.name, adds_samples, waits, shape, fixed, each, one.origin, is_forward)
                )
            )
    # [Step 2] Count the ops that have sums, and keep the sums of those that add up samples.
    names = {trace.ops[op] for op in by_op}
    counted = [op for op, name in enumerate(trace.ops) if name in names]
    sums = {
        position: tuple(by_op[op])
        for position, op in enumerate(counted)
        if any(each.adds_samples for each in by_op.get(op, ()))
    }
    ops = tuple(trace.ops[op] for op in counted)
    return StepPlan(ops, sums, _list_forward(trace, forward_entries))


def _can_run_again(
    one: Entry, other: Entry, outside: set[int], sources: dict[int, set[int]]
) -> bool:
    """Return whether an op can run again on values that were not known the first time."""
    if one.name in READING_SHAPES:
        return True
    if _grows(one.read, other.read) or _grows(one.made, other.made):
        return False
    if not one.made and not one.changed:  # it returns a plain number, which the host reads
        return False
    written = {tensor.memory for tensor in one.changed}
    if written & outside:
        return False
    return one.name in _WRITING or all(memory in sources for memory in written)


def _check_entry(
    one: Entry, other: Entry, outside: set[int], in_group: bool, is_summed: bool
) -> None:
    """Refuse an op that mixes samples otherwise than by adding them up."""
    grows_in, grows_out = _grows(one.read, other.read), _grows(one.made, other.made)
    made_same = len(one.made) == 0 or any(
        a.shape == b.shape and 0 not in a.shape for a, b in zip(one.made, other.made, strict=True)
    )
    if any(tensor.memory in outside for tensor in one.changed) and (grows_in or not in_group):
        raise _refuse(
            in_group, one, "changes a tensor that outlives the step, as BatchNorm's statistics do"
        )
    if is_summed and (grows_in or grows_out) and not in_group:
        raise _refuse(in_group, one, "gives each sample a value that depends on the others")
    if one.grid_sizes != other.grid_sizes:
        if grows_out or one.is_hidden:
            raise _refuse(
                in_group, one, "gives each sample a value on a grid that it shares with the others"
            )
        return
    if grows_in and made_same and one.name not in READING_SHAPES:
        raise _refuse(in_group, one, "takes one value from all samples, and not as a sum")
    if grows_out and not grows_in and one.name in _NUMBERING:
        raise _refuse(
            in_group, one, "numbers the samples of a part; pass such numbers in with the batch"
        )
    if one.numbers != other.numbers:
        raise _refuse(
            in_group, one, "computes with the number of samples, which is another one in a part"
        )


def _grows(some: Sequence[TensorRecord], others: Sequence[TensorRecord]) -> bool:
    return any(a.shape != b.shape for a, b in zip(some, others, strict=True))


def _check_sequence(two: Sequence[Entry], three: Sequence[Entry], in_group: bool) -> None:
    """Refuse a step whose ops are not the same ones for another number of samples."""
    for one, other in zip(two, three, strict=False):
        alike = one.name == other.name and all(
            len(getattr(one, field)) == len(getattr(other, field))
            for field in ("read", "made", "changed", "numbers")
        )
        if not alike:
            raise _refuse(in_group, one, f"becomes {other.name} when there is one more sample")
    if len(two) != len(three):
        longer = max(two, three, key=len)
        raise _refuse(
            in_group,
            longer[min(len(two), len(three))],
            "is there or not depending on the number of samples",
        )


def _refuse(in_group: bool, entry: Entry, reason: str) -> NumericsError:
    return NumericsError(
        "expected a model that computes each sample alone, so that a batch can be computed in "
        f"parts; got {entry.name} at {entry.origin}, which {reason}. "
        f"{_IN_GROUP if in_group else _IN_PARTS}"
    )
