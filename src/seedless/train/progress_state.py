"""Where a run stands, as the loop tells it to its observers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from seedless.train.state_tensors import Snapshot, collect_state
from seedless.train.training_problem import TrainingProblem


@dataclass(frozen=True)
class Position:
    """How far: whole epochs done, batches done of the next one, optimizer steps in all."""

    epoch: int = 0
    batch: int = 0
    step: int = 0


@dataclass(frozen=True, eq=False)
class BestWeights:
    """The weights to keep so far: the epoch they were seen at, their score, copies on the CPU."""

    epoch: int
    score: float | None
    weights: Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class ProgressState:
    """A point of a run between two steps.

    Attributes:
        losses: (m,) float32 on the device, of the samples in the epoch's order; the first ``seen``
            are filled.
        loss: mean training loss of the epoch; None before it is over.
        score: validation score at this epoch, where it was looked at.
        schedule: digest of the epoch's batches.
        rate: learning rate of the last step.
        batches: batches of this epoch.
        moved: global generators that moved, where the run was told to go on all the same.
    """

    problem: TrainingProblem
    position: Position
    losses: Tensor
    best: BestWeights | None = None
    loss: float | None = None
    score: float | None = None
    schedule: str | None = None
    rate: float | None = None
    batches: int = 0
    seen: int = 0
    moved: tuple[str, ...] = ()

    @cached_property
    def snapshot(self) -> Snapshot:
        """The whole state as it is when this is first asked for; on a GPU, nothing waits."""
        problem = self.problem
        return Snapshot(collect_state(problem.model, problem.optimizer, problem.order))

    @cached_property
    def state(self) -> dict[str, Tensor]:
        """The whole state on the CPU, fetched once for all observers; good until the next step."""
        return self.snapshot.fetch()


@dataclass(frozen=True, eq=False)
class Start:
    """Where a run begins: from nothing, or from a checkpoint."""

    position: Position = Position()
    best: BestWeights | None = None
    losses: Tensor = field(default_factory=lambda: torch.empty(0))
    moved: tuple[str, ...] = ()


class Observer:
    """Watches a run. Whoever wants to know something overrides a method."""

    def begin(self, progress: ProgressState) -> None:
        """Take note of the state before the first step, or of the state a run resumes from."""

    def step(self, progress: ProgressState) -> None:
        """Take note that a step was made; reading the device here costs a synchronization."""

    def epoch(self, progress: ProgressState) -> None:
        """Take note that an epoch is over and was evaluated."""

    def stop(self, progress: ProgressState) -> None:
        """Take note that the run was asked to stop here, perhaps within an epoch."""
