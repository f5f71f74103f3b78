"""Which sums of a step add up samples, and whether anything else uses more than one sample.

Law: a step of two samples and a step of three are compared, op by op. A tensor whose shape differs
`grows`: it holds the samples. A sum whose grid grows while its result does not adds samples up, as
the gradients of weights and biases do; its result is `summed`. A step can be computed in parts if
no other op makes a value without samples from a tensor that holds them, and no op makes a tensor
that holds samples from a summed value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from seedless.core.errors import NumericsError
from seedless.portable.batch.op_trace import Entry, TensorRecord

TRACED_SIZES = (2, 3)  # samples; not 1, with which broadcasting leaves sums out
# Ops that read a tensor's shape alone.
_READING_SHAPES = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "new_zeros"}
    | {"new_ones", "new_full", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like"}
    | {"scalar_tensor", "result_type", "is_same_size"}
)
_NUMBERING = frozenset({"arange", "eye", "linspace", "tril_indices", "triu_indices"})


@dataclass(frozen=True)
class PlannedSum:
    """A sum of the step: whether it adds samples up, and how many addends it has."""

    name: str
    adds_samples: bool
    shape: tuple[int, ...]
    fixed_addends: int
    addends_per_sample: int

    def count_addends(self, samples: int) -> int:
        """Return the addends of a batch."""
        return self.fixed_addends + self.addends_per_sample * samples


def plan_sums(two: Sequence[Entry], three: Sequence[Entry]) -> list[PlannedSum]:
    """Return the sums of a step in order, or refuse a step that cannot be computed in parts."""
    _check_sequence(two, three)
    summed: set[int] = set()  # memory of sums over samples, and of what was computed from them
    outside: set[int] = set()  # memory that was there before the step
    made: set[int] = set()
    planned = []
    for one, other in zip(two, three, strict=True):
        # [Step 1] Memory that is read before any op of the step made it was there before.
        outside |= {tensor.memory for tensor in one.read} - made
        made |= {tensor.memory for tensor in one.made} - outside
        # [Step 2] Refuse what mixes samples otherwise than by adding them up.
        _check_entry(one, other, summed, outside)
        # [Step 3] A grid that grows holds samples: the sum adds them up.
        adds_samples = one.grid_sizes != other.grid_sizes
        if adds_samples or any(tensor.memory in summed for tensor in one.read):
            summed |= {tensor.memory for tensor in (*one.made, *one.changed)}
        # [Step 4] Two numbers of addends give the number for any batch.
        if one.is_sum:
            each = other.addends - one.addends
            fixed = one.addends - TRACED_SIZES[0] * each
            planned.append(PlannedSum(one.name, adds_samples, one.made[0].shape, fixed, each))
    return planned


def _check_entry(one: Entry, other: Entry, summed: set[int], outside: set[int]) -> None:
    """Refuse an op that mixes samples otherwise than by adding them up."""
    grows_in, grows_out = _grows(one.read, other.read), _grows(one.made, other.made)
    made_same = len(one.made) == 0 or any(
        a.shape == b.shape and 0 not in a.shape for a, b in zip(one.made, other.made, strict=True)
    )
    if any(tensor.memory in outside for tensor in one.changed):
        raise _refuse(one, "changes a tensor that outlives the step, as BatchNorm's statistics do")
    if any(tensor.memory in summed for tensor in one.read) and (grows_in or grows_out):
        raise _refuse(one, "gives each sample a value that depends on the others")
    if one.grid_sizes != other.grid_sizes:
        if grows_out:
            raise _refuse(one, "gives each sample a value on a grid that it shares with the others")
        return
    if grows_in and made_same and one.name not in _READING_SHAPES:
        raise _refuse(one, "takes one value from all samples, and not as a sum")
    if grows_out and not grows_in and one.name in _NUMBERING:
        raise _refuse(one, "numbers the samples of a part; pass such numbers in with the batch")
    if one.numbers != other.numbers:
        raise _refuse(one, "computes with the number of samples, which is another one in a part")


def _grows(some: Sequence[TensorRecord], others: Sequence[TensorRecord]) -> bool:
    return any(a.shape != b.shape for a, b in zip(some, others, strict=True))


def _check_sequence(two: Sequence[Entry], three: Sequence[Entry]) -> None:
    """Refuse a step whose ops are not the same ones for another number of samples."""
    for one, other in zip(two, three, strict=False):
        alike = one.name == other.name and all(
            len(getattr(one, field)) == len(getattr(other, field))
            for field in ("read", "made", "changed", "numbers")
        )
        if not alike:
            raise _refuse(one, f"becomes {other.name} when there is one more sample")
    if len(two) != len(three):
        longer = max(two, three, key=len)
        raise _refuse(
            longer[min(len(two), len(three))], "is there or not depending on the number of samples"
        )


def _refuse(entry: Entry, reason: str) -> NumericsError:
    return NumericsError(
        "expected a model that computes each sample alone, so that a batch can be computed in "
        f"parts; got {entry.name} at {entry.origin}, which {reason}. Compute the batch as a "
        "whole, or replace this op (BatchNorm by GroupNorm or LayerNorm, say)"
    )
