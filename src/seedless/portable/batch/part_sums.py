"""Sums over the samples of a batch that is computed part by part."""

import torch
from torch import Tensor

from seedless.portable.batch.step_plan import PlannedSum, PlannedSums, StepPlan
from seedless.portable.exact.sums import ExactSum, Parts, add_parts


class PartSums(PlannedSums):
    """Evaluates the sums of each part: first their exponents, then their integers."""

    def __init__(self, plan: StepPlan, samples: int) -> None:
        super().__init__(plan)
        self.samples = samples
        self.is_adding = self.is_last = False
        self.exponents: dict[int, list[Tensor]] = {}
        self.sums: dict[int, Parts] = {}
        self._number = 0

    def begin(self) -> None:
        """Start with the first sum of a part."""
        super().begin()
        self._number = 0

    def evaluate_shared(self, exact_sum: ExactSum, planned: PlannedSum) -> Tensor:
        """Return zeros; with the last part, the sum of the whole batch."""
        number, self._number = self._number, self._number + 1
        if not self.is_adding:
            exponents, before = exact_sum.find_exponents(), self.exponents.get(number, [])
            self.exponents[number] = list(map(torch.maximum, before, exponents)) or exponents
            return exact_sum.make_zeros()
        parts = exact_sum.add_integers(self.exponents[number])
        if number in self.sums:
            # One float64 number holds a sum of few addends: half the memory.
            fits_in_one = planned.count_addends(self.samples) <= exact_sum.max_addends
            earlier = self.sums.pop(number)
            parts = (earlier[0].add_(parts[0]), None) if fits_in_one else add_parts(earlier, parts)
        if self.is_last:
            return exact_sum.scale(parts, self.exponents.pop(number))
        self.sums[number] = parts
        return exact_sum.make_zeros()

    def count_addends(self, addends: int) -> int:
        """Return the values that the last sum adds in all parts."""
        planned = self.current
        is_shared = planned is not None and planned.adds_samples
        return planned.count_addends(self.samples) if planned and is_shared else addends
