"""The plan of a training step: its ops in order, and which of their sums add up samples.

`batch_dependence` makes a plan from two traces. `PlannedSums` follows it while a step runs: an op
that adds up no samples runs as ever, compiled kernels included; of the others it sees every sum.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from seedless.core.digests import canonical_json
from seedless.core.errors import NumericsError
from seedless.portable.exact.sums import ExactSum


@dataclass(frozen=True)
class PlannedSum:
    """A sum of an op.

    Attributes:
        adds_samples: whether it adds up samples.
        waits: whether its value is used for gradients of parameters alone, and may be found after
            the backward pass.
        fixed_addends, addends_per_sample: how many values each element of the result adds.
        origin: the line of the caller's code, or the node of the backward pass.
        is_forward: whether the forward pass computes it.
    """

    name: str
    adds_samples: bool
    waits: bool
    shape: tuple[int, ...]
    fixed_addends: int
    addends_per_sample: int
    origin: str
    is_forward: bool

    def count_addends(self, samples: int) -> int:
        """Return the addends of a batch."""
        return self.fixed_addends + self.addends_per_sample * samples


@dataclass(frozen=True)
class ForwardOp:
    """An op of the forward pass, as a message names it.

    Attributes:
        shapes: of what it makes of two samples.
        origin: the line of the caller's code.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    origin: str


@dataclass(frozen=True)
class StepPlan:
    """What a step adds up.

    Attributes:
        ops: the ops that have sums, in order; views, which may come and go, are not among them.
        sums: by the position in ``ops``, all sums of each op that adds up samples.
        forward: all ops of the forward pass, in order.
        passing_leaves: which tensors that take a gradient end with the step, by their position.
    """

    ops: tuple[str, ...]
    sums: Mapping[int, tuple[PlannedSum, ...]]
    forward: tuple[ForwardOp, ...]
    passing_leaves: frozenset[int] = frozenset()

    def list_shared_sums(self) -> list[PlannedSum]:
        """Return the sums that add up samples, in order."""
        return [one for sums in self.sums.values() for one in sums if one.adds_samples]

    @property
    def has_forward_sums(self) -> bool:
        """Return whether the forward pass sums over samples, as BatchNorm does."""
        return any(one.is_forward for one in self.list_shared_sums())

    def describe_shared_sums(self) -> list[list[Any]]:
        """Return what must be equal on all processes of a group, as plain values."""
        return [
            [one.name, list(one.shape), one.fixed_addends, one.addends_per_sample, one.waits]
            for one in self.list_shared_sums()
        ]

    def describe_origins(self) -> dict[str, list[Any]]:
        """Return where the ops of the forward pass and the sums over samples come from."""
        return {
            "forward": [[op.name, list(map(list, op.shapes)), op.origin] for op in self.forward],
            "sums": [one.origin for one in self.list_shared_sums()],
        }

    def digest(self) -> int:
        """Return `number_of` `describe_shared_sums`."""
        return number_of(self.describe_shared_sums())


def number_of(value: Any) -> int:
    """Return a number of 62 bits that equal plain values have in common, in every process."""
    hashed = hashlib.sha256(canonical_json(value)).digest()
    return int.from_bytes(hashed[:8], "little") >> 2


class PlannedSums:
    """Follows a step along its plan; a subclass decides what becomes of sums over samples."""

    is_tracing = False

    def __init__(self, plan: StepPlan) -> None:
        self.plan = plan
        self.names = frozenset(plan.ops)
        self.redirects = False
        self.current: PlannedSum | None = None
        self._op = 0
        self._sums: Sequence[PlannedSum] = ()
        self._next_sum = 0

    def begin(self) -> None:
        """Start with the first op of the plan."""
        self._op, self._sums, self._next_sum = 0, (), 0

    def end(self) -> None:
        """Check that every op of the plan has run."""
        self._end_op()
        if self._op != len(self.plan.ops):
            raise _differs(f"{self._op} ops", f"{len(self.plan.ops)}")

    def run_op(self, run: Callable[..., Any], func: Any, args: Any, kwargs: Any) -> Any:
        """Run an op, after comparing it with the plan."""
        name = func.name()
        if name not in self.names:
            self._end_op()
            self._sums, self._next_sum = (), 0
            return run(func, args, kwargs)
        self.begin_op(name)
        try:
            return run(func, args, kwargs)
        finally:
            self.redirects = False

    @property
    def has_shared_sums(self) -> bool:
        """Return whether the op that runs now, or ran last, adds up samples."""
        return bool(self._sums)

    def begin_op(self, name: str) -> None:
        """Find the sums of the next op that has any."""
        self._end_op()
        number, ops = self._op, self.plan.ops
        if number >= len(ops) or ops[number] != name:
            raise _differs(f"{name} as op {number}", ops[number] if number < len(ops) else "none")
        self._op = number + 1
        self._sums, self._next_sum = self.plan.sums.get(number, ()), 0
        self.redirects = bool(self._sums)

    def _end_op(self) -> None:
        if self._next_sum != len(self._sums):
            raise _differs(f"{self._next_sum} sums in an op", f"{len(self._sums)}")

    def evaluate_sum(self, exact_sum: ExactSum) -> Tensor:
        """Compute a sum that adds up no samples; leave the others to the subclass."""
        number, sums = self._next_sum, self._sums
        if number >= len(sums) or sums[number].name != exact_sum.name:
            raise _differs(f"a {exact_sum.name} as sum {number} of an op", "another")
        self._next_sum = number + 1
        planned = self.current = sums[number]
        if not planned.adds_samples:
            return exact_sum.compute()
        if tuple(exact_sum.shape) != planned.shape:
            raise _differs(f"a {exact_sum.name} of shape {exact_sum.shape}", f"{planned.shape}")
        return self.evaluate_shared(exact_sum, planned)

    def evaluate_shared(self, exact_sum: ExactSum, planned: PlannedSum) -> Tensor:
        """Return the value of a sum over samples, or what stands for it until it is known."""
        raise NotImplementedError


def _differs(found: str, expected: str) -> NumericsError:
    return NumericsError(
        f"expected every part of a batch to compute the ops of the first step, got {found} where "
        f"the first step had {expected}. Parts of one sample may leave sums out: use larger ones. "
        "Where the model has changed since, make a new block or Split"
    )
