"""Execute part of a portable run again, with a record of each step and of each operation of one.

The records are those of portable arithmetic's own operations, one for each call, and not of what
they are made of: the same on every processor.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from seedless.audit.dispute.op_call import describe_call
from seedless.audit.step_trace import StepTrace, name_inputs
from seedless.core.digests import digest_each
from seedless.core.errors import RunError
from seedless.proof.trail import GENESIS, TrailEntry, chain
from seedless.runs.prepare import Prepared
from seedless.script_recorder.op_record import OpRecord
from seedless.script_recorder.op_recorder import OpRecorder
from seedless.train.loop import train
from seedless.train.progress_state import Position, ProgressState, Start
from seedless.train.state_tensors import collect_state, fetch_state, restore_state
from seedless.train.step import Step
from seedless.train.training_problem import TrainingProblem


class CallRecorder(OpRecorder):  # type: ignore[no-untyped-call]  # untyped in torch
    """Records every operation, and keeps the arguments of one of them.

    Args:
        model: as for `OpRecorder`.
        names: as for `OpRecorder`.
        wanted: the position of the operation whose arguments to keep; None keeps none.

    Attributes:
        call: its arguments as plain values, as they were before it was executed.
    """

    def __init__(
        self, model: nn.Module, names: Mapping[str, Tensor], wanted: int | None = None
    ) -> None:
        super().__init__(model, names)
        self.call: dict[str, Any] | None = None
        self._wanted = wanted

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Keep the arguments if they are wanted; then run and record the operation."""
        if self._wanted == len(self.records) and func.namespace == "aten":  # not a profiler's mark
            self.call = describe_call(args, kwargs or {})
        return super().__torch_dispatch__(func, types, args, kwargs)


class RecordedStep(Step):
    """The training step; it keeps the losses and, where asked to, records the operations.

    The recorder is entered inside the portable block, at each phase: there it sees the operations
    of portable arithmetic as they are called.

    Attributes:
        losses: (B,) of the last step.
        recorder: with the operations of the last step, where they were recorded.
    """

    def __init__(self, problem: TrainingProblem) -> None:
        super().__init__(problem, self.record_phase)
        self.losses = torch.empty(0)
        self.recorder: CallRecorder | None = None
        self._recording = False

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Train on the rows (B,) and return their losses (B,)."""
        self.losses = super().__call__(rows, epoch)
        return self.losses

    def record(self, rows: Tensor, epoch: int, wanted: int | None) -> Tensor:
        """Train on the rows, recording all operations and the arguments of one."""
        self.recorder = self.make_recorder(name_inputs(self.problem, rows), wanted)
        return self(rows, epoch)

    def make_recorder(self, names: Mapping[str, Tensor], wanted: int | None) -> CallRecorder:
        """Return the recorder of a step."""
        return CallRecorder(self.problem.model, names, wanted)

    @contextmanager
    def record_phase(self, label: str) -> Iterator[None]:
        """Record the operations of a phase; one inside another is recorded once."""
        if self.recorder is None or self._recording:
            yield
            return
        self._recording = True
        try:
            with self.recorder, self.recorder.phase(label):
                yield
        finally:
            self._recording = False


class StepRecorder(StepTrace):
    """Records every step of one epoch: its position, rate, losses and state, as digests."""

    def __init__(self, epoch: int, step: RecordedStep) -> None:
        super().__init__(epoch)
        self._step = step

    def step(self, progress: ProgressState) -> None:
        """Record a step, if it belongs to the epoch."""
        known = len(self.steps)
        super().step(progress)
        for record in self.steps[known:]:
            record["losses"] = digest_each({"losses": self._step.losses})["losses"]


@dataclass(frozen=True, eq=False)
class StepResult:
    """One step executed alone: the records of its operations, and the record of the step."""

    operations: tuple[OpRecord, ...]
    record: Mapping[str, Any]
    call: Mapping[str, Any] | None


class Execution:
    """A prepared run that is set to a state and executed from there, as often as needed.

    Attributes:
        step_type: the step it trains with.
    """

    step_type = RecordedStep

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        problem = prepared.problem
        # The state before the first step, to return to.
        self.beginning = _copy(collect_state(problem.model, problem.optimizer, problem.order))

    def run_epoch(
        self, state: Mapping[str, Tensor], start: Start, epoch: int
    ) -> tuple[list[TrailEntry], TrailEntry]:
        """Execute up to the end of an epoch; return its steps' chained records and its entry."""
        step = self._restore(state)
        recorder = StepRecorder(epoch, step)
        train(self.prepared.problem, (recorder,), start=start, until=Position(epoch), step=step)
        return chain_records(recorder.steps), recorder.entry

    def find_state(
        self, state: Mapping[str, Tensor], start: Start, target: Position
    ) -> dict[str, Tensor]:
        """Execute up to a position and return the state there."""
        step, problem = self._restore(state), self.prepared.problem
        if start.position != target:
            train(problem, start=start, until=target, step=step)
        return _copy(collect_state(problem.model, problem.optimizer, problem.order))

    def run_step(
        self, state: Mapping[str, Tensor], position: Position, wanted: int | None = None
    ) -> StepResult:
        """Execute one step from a state, recording its operations and the arguments of one."""
        step = self._restore(state)
        recorder = StepRecorder(position.epoch + 1, step)
        train(
            self.prepared.problem,
            (recorder,),
            start=Start(position),
            stop=lambda: True,
            step=partial(step.record, wanted=wanted),
        )
        if step.recorder is None or not recorder.steps:
            raise RunError(f"epoch {position.epoch + 1} has no batch {position.batch + 1}")
        return StepResult(step.recorder.records, recorder.steps[0], step.recorder.call)

    def _restore(self, state: Mapping[str, Tensor]) -> RecordedStep:
        """Set the run to a state; return the step that trains from there."""
        problem = self.prepared.problem
        restore_state(state, problem.model, problem.optimizer, problem.order)
        return self.step_type(problem)


def chain_records(records: list[dict[str, Any]]) -> list[TrailEntry]:
    """Return the records of an epoch's steps, each with the digest of the one before it."""
    chained: list[TrailEntry] = []
    for record in records:
        chained.append(chain(record, chained[-1]["digest"] if chained else GENESIS))
    return chained


def find_position(before: TrailEntry, step: int) -> Position:
    """Return the position before a step, counted from 1, of the epoch after a trail's entry."""
    batch = step - 1 - int(before["step"])
    if batch < 0:
        raise RunError(f"step {step} is not after epoch {before['epoch']}")
    return Position(int(before["epoch"]), batch, step - 1)


def _copy(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    plain = torch.contiguous_format
    return {name: value.clone(memory_format=plain) for name, value in fetch_state(state).items()}
