"""The state of a run between two steps, as the loop passes it to its observers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from seedless.train.state_tensors import Snapshot, collect_state
from seedless.train.training_problem import TrainingProblem


@dataclass(frozen=True)
class Position:
    """How far a run is: complete epochs, batches of the next epoch, optimizer steps in total."""

    epoch: int = 0
    batch: int = 0
    step: int = 0


@dataclass(frozen=True, eq=False)
class BestWeights:
    """The best weights so far: the epoch they are from, their score, copies on the CPU."""

    epoch: int
    score: float | None
    weights: Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class ProgressState:
    """The state of a run between two steps.

    Attributes:
        problem: what is trained; its model and optimizer change with the next step.
        position: epochs, batches and steps that are done.
        losses: (m,) float32 on the device, of the samples in the epoch's order; the first ``seen``
            are filled.
        best: the best weights so far.
        loss: mean training loss of the epoch; None before its end.
        score: validation score of this epoch; None where it was not evaluated.
        schedule: digest of the epoch's batches.
        rate: learning rate of the last step.
        batches: batches of this epoch.
        seen: samples of this epoch that were trained on.
        moved: names of the global generators that were used, where train.guard allows that.
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
        """The tensors of the run, as they are at the first access; nothing waits for a GPU."""
        problem = self.problem
        return Snapshot(collect_state(problem.model, problem.optimizer, problem.order))

    @cached_property
    def state(self) -> dict[str, Tensor]:
        """The tensors of the run on the CPU, fetched once for all observers.

        Valid until the next step.
        """
        return self.snapshot.fetch()


@dataclass(frozen=True, eq=False)
class Start:
    """Where a run starts: at the beginning, or at a checkpoint."""

    position: Position = Position()
    best: BestWeights | None = None
    losses: Tensor = field(default_factory=lambda: torch.empty(0))
    moved: tuple[str, ...] = ()


class Observer:
    """The base class of everything that follows a run: subclasses override what they need.

    Example:
        >>> class PrintLoss(Observer):
        ...     def epoch(self, progress):
        ...         print(progress.position.epoch, progress.loss)
    """

    def begin(self, progress: ProgressState) -> None:
        """Called before the first step of a new or a resumed run."""

    def step(self, progress: ProgressState) -> None:
        """Called after every step. Reading a tensor on a GPU here makes the loop wait for it."""

    def epoch(self, progress: ProgressState) -> None:
        """Called after every epoch and its evaluation."""

    def stop(self, progress: ProgressState) -> None:
        """Called where the run was asked to stop, which may be within an epoch."""
