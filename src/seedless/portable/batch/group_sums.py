"""Sums over samples that the processes of a group hold together.

Law: a sum over samples is an exact sum of integers on a grid that the largest magnitude decides.
The largest exponent over all ranks (MAX) and then the integers of all ranks (SUM) give the bits of
one process that has all samples.

A sum that the step computes with is exchanged at once, in two messages: BatchNorm's mean, say. A
sum that only gradients of parameters are made of waits: zeros stand for it, and after the backward
pass all exponents go in one message and all integers in another.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from seedless.portable.batch.collectives import Collectives
from seedless.portable.batch.plain_torch import plain_torch
from seedless.portable.batch.step_plan import PlannedSum, PlannedSums, StepPlan
from seedless.portable.batch.waiting_ops import WaitingOps
from seedless.portable.constants import HIGHEST_EXPONENT, LOWEST_EXPONENT
from seedless.portable.exact.rounding_grid import normalize_parts
from seedless.portable.exact.sums import ExactSum

_GUARD_BITS = 30
_INTEGER_BITS = 62  # of an int64 that holds a sum with its sign


@dataclass(frozen=True)
class WaitingSum:
    """A sum that waits, and the zeros that stand for it."""

    exact_sum: ExactSum
    planned: PlannedSum
    zeros: Tensor


class GroupSums(PlannedSums):
    """Evaluates the sums of one step of this rank, together with the other ranks.

    Args:
        has_samples: whether this rank has samples. A rank without computes the step on other rows,
            to take part in each exchange, and adds nothing.
    """

    def __init__(self, plan: StepPlan, exchange: Collectives, has_samples: bool) -> None:
        super().__init__(plan)
        self.exchange, self.has_samples = exchange, has_samples
        self.samples: int | None = None  # of the whole batch, known after the forward pass
        self.waiting: list[WaitingSum] = []
        self.waiting_ops = WaitingOps()
        self._guard = plan.digest() % (1 << _GUARD_BITS)
        self._exchanged = 0
        self._last_count = 0

    def run_op(self, run: Callable[..., Any], func: Any, args: Any, kwargs: Any) -> Any:
        """Run an op; keep what computes with a sum that waits, to run it again."""
        reads_unknown = self.waiting_ops.reads_unknown(args, kwargs)
        out = super().run_op(self._run_with_sums(run), func, args, kwargs)
        if reads_unknown and not self.has_shared_sums and out is not NotImplemented:
            self.waiting_ops.note(partial(run, func, args, kwargs), func, args, kwargs, out)
        return out

    def _run_with_sums(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``run`` such that of an op with sums over samples the parts are kept."""

        def run_op(func: Any, args: Any, kwargs: Any) -> Any:
            if not self.has_shared_sums:
                return run(func, args, kwargs)
            with self.waiting_ops:
                return run(func, args, kwargs)

        return run_op

    def evaluate_shared(self, exact_sum: ExactSum, planned: PlannedSum) -> Tensor:
        """Return the sum over all ranks, or zeros that stand for it until the step is over."""
        if planned.waits:
            zeros = exact_sum.make_zeros()
            self.waiting.append(WaitingSum(exact_sum, planned, zeros))
            self.waiting_ops.add_unknown(zeros)
            return zeros
        return self._exchange_now(exact_sum)

    def count_addends(self, addends: int) -> int:
        """Return the values that the last sum adds in the whole batch."""
        planned = self.current
        if planned is None or not planned.adds_samples:
            return addends
        if self.samples is None:  # in the forward pass
            return self._last_count
        return planned.count_addends(self.samples)

    def _exchange_now(self, exact_sum: ExactSum) -> Tensor:
        """Exchange exponents, then integers; the second message also counts the addends."""
        exponents = self.exchange.find_largest(
            [self._keep_own(each, LOWEST_EXPONENT) for each in exact_sum.find_exponents()],
            (self._guard + self._exchanged) % (1 << _GUARD_BITS),
        )
        self._exchanged += 1
        high, low = normalize_parts(*exact_sum.add_integers(exponents))
        count = torch.full((), float(exact_sum.addends), dtype=high.dtype, device=high.device)
        parts = [self._keep_own(each, 0) for each in (high, low, count)]
        high, low, count = self.exchange.add(parts)
        self._last_count = int(count)
        return exact_sum.scale((high.contiguous(), low.contiguous()), exponents)

    def finish(self) -> None:
        """Exchange the sums that waited, and compute what was made of them again."""
        if self.waiting:
            with plain_torch():
                self._exchange_waiting()
        self.waiting.clear()
        self.waiting_ops.run_again()

    def _exchange_waiting(self) -> None:
        """Exchange all exponents, then all integers, and write the sums over the zeros."""
        assert self.samples is not None
        # [Step 1] Find the grids: all exponents in one message.
        own = [
            [self._keep_own(top, LOWEST_EXPONENT) for top in one.exact_sum.find_exponents()]
            for one in self.waiting
        ]
        flat = self.exchange.find_largest([top for tops in own for top in tops], self._guard)
        found = iter(flat)
        exponents = [[next(found) for _ in tops] for tops in own]
        # [Step 2] Add the integers of all ranks; int64 holds nearly all of them.
        is_finite = all(bool((top < HIGHEST_EXPONENT).all()) for top in flat)
        narrow = [is_finite and _fits_int64(one, self.samples) for one in self.waiting]
        parts: list[tuple[Tensor, Tensor | None]] = [
            self._add_own(one, tops, is_narrow)
            for one, tops, is_narrow in zip(self.waiting, exponents, narrow, strict=True)
        ]
        integers = iter(self.exchange.add([high for high, low in parts if low is None]))
        doubles = iter(
            self.exchange.add(
                [each for high, low in parts if low is not None for each in (high, low)]
            )
        )
        # [Step 3] Scale each sum and write it over the zeros that stood for it.
        for one, tops, is_narrow in zip(self.waiting, exponents, narrow, strict=True):
            summed: tuple[Tensor, Tensor | None] = (
                (next(integers).to(torch.float64), None)
                if is_narrow
                else (next(doubles).contiguous(), next(doubles).contiguous())
            )
            one.zeros.copy_(one.exact_sum.scale(summed, tops))

    def _add_own(
        self, one: WaitingSum, exponents: list[Tensor], is_narrow: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return the integers of this rank: int64, or the two parts of float64."""
        high, low = one.exact_sum.add_integers(exponents)
        if is_narrow:
            whole = high.to(torch.int64)
            whole = whole if low is None else whole + low.to(torch.int64)
            return self._keep_own(whole, 0), None
        high, low = normalize_parts(high, low)
        return self._keep_own(high, 0), self._keep_own(low, 0)

    def _keep_own(self, values: Tensor, neutral: int) -> Tensor:
        """Return the values, or what changes nothing where this rank has no samples."""
        return values if self.has_samples else torch.full_like(values, neutral)


def _fits_int64(one: WaitingSum, samples: int) -> bool:
    """Return whether a sum over the whole batch fits int64: addends times their largest size."""
    bits = sum(operand.bits for operand in one.exact_sum.operands)
    return one.planned.count_addends(samples) <= 1 << (_INTEGER_BITS - bits)
