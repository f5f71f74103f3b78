"""Which sums of a step add up samples, and whether anything else looks at more than one sample.

Found by comparing a step of two samples with one of three, op by op. What has another shape there
`grows`: it holds the samples. A sum whose grid grows while its result does not adds samples up, as
the gradients of weights and biases do; its result is `summed`. A step can be computed in parts when
nothing else leads from samples to a value without them, and nothing summed leads back to samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seedless.core.errors import NumericsError
from seedless.portable.batch.op_trace import Entry, Seen

SIZES = (2, 3)  # not 1: with one sample, broadcasting leaves sums out
# Ops that read a tensor's shape alone.
_BLANK = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "new_zeros"}
    | {"new_ones", "new_full", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like"}
    | {"scalar_tensor", "result_type", "is_same_size"}
)
_COUNTING = frozenset({"arange", "eye", "linspace", "tril_indices", "triu_indices"})


@dataclass(frozen=True)
class Planned:
    """A sum of the step: whether it adds samples up, and how many addends a sample brings."""

    name: str
    shared: bool
    shape: tuple[int, ...]
    fixed: int
    each: int

    def addends(self, samples: int) -> int:
        """Return the addends of a batch."""
        return self.fixed + self.each * samples


def plan(two: Sequence[Entry], three: Sequence[Entry]) -> list[Planned]:
    """Return the sums of a step in order, or refuse a step that cannot be computed in parts."""
    _check_sequence(two, three)
    summed: set[int] = set()  # memory that holds what samples add up to
    outside: set[int] = set()  # memory that was there before the step
    made: set[int] = set()
    planned = []
    for one, other in zip(two, three, strict=True):
        outside |= {seen.memory for seen in one.read} - made
        made |= {seen.memory for seen in one.made} - outside
        _check_entry(one, other, summed, outside)
        shared = one.reach != other.reach
        if shared or any(seen.memory in summed for seen in one.read):
            summed |= {seen.memory for seen in (*one.made, *one.changed)}
        if one.is_sum:
            each = other.addends - one.addends
            fixed = one.addends - SIZES[0] * each
            planned.append(Planned(one.name, shared, one.made[0].shape, fixed, each))
    return planned


def _check_entry(one: Entry, other: Entry, summed: set[int], outside: set[int]) -> None:
    """Refuse an op that mixes samples otherwise than by adding them up."""
    grows_in, grows_out = _grows(one.read, other.read), _grows(one.made, other.made)
    made_same = len(one.made) == 0 or any(
        a.shape == b.shape and 0 not in a.shape for a, b in zip(one.made, other.made, strict=True)
    )
    if any(seen.memory in outside for seen in one.changed):
        raise _refuse(one, "changes a tensor that outlives the step, as BatchNorm's statistics do")
    if any(seen.memory in summed for seen in one.read) and (grows_in or grows_out):
        raise _refuse(one, "gives each sample a value that depends on the others")
    if one.reach != other.reach:
        if grows_out:
            raise _refuse(one, "gives each sample a value on a grid that it shares with the others")
        return
    if grows_in and made_same and one.name not in _BLANK:
        raise _refuse(one, "takes one value from all samples, and not as a sum")
    if grows_out and not grows_in and one.name in _COUNTING:
        raise _refuse(one, "numbers the samples of a part; pass such numbers in with the batch")
    if one.numbers != other.numbers:
        raise _refuse(one, "computes with the number of samples, which is another one in a part")


def _grows(some: Sequence[Seen], others: Sequence[Seen]) -> bool:
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
        raise _refuse(longer[min(len(two), len(three))], "is there or not as samples are added")


def _refuse(entry: Entry, reason: str) -> NumericsError:
    return NumericsError(
        "expected a model that computes each sample alone, so that a batch can be computed in "
        f"parts; got {entry.name} at {entry.place}, which {reason}. Compute the batch whole, or "
        "replace this op (BatchNorm by GroupNorm or LayerNorm, say)"
    )
