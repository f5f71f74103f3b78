"""Execute part of a run again and write down every step of an epoch, or every op of a step."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from seedless.audit.op_recorder import OpRecorder
from seedless.core.config import Config
from seedless.core.digests import digest_each
from seedless.proof.trail import first_difference, make_entry, read_trail
from seedless.runs.folder import read_config
from seedless.runs.prepare import Prepared
from seedless.runs.user_model import choose_preparer
from seedless.train.checkpoint import checkpoint_file_name, read_checkpoint
from seedless.train.loop import train
from seedless.train.progress_state import Observer, Position, ProgressState, Start
from seedless.train.state_tensors import collect_state, fetch_state, restore_state
from seedless.train.step import Step
from seedless.train.training_problem import TrainingProblem

STATE = "state.safetensors"


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request of `diff`, in a process of its own.

    It has "run"; "entry" and "data" as `verify` has them; "start", the epoch of a checkpoint to
    begin from, or 0; "epoch", the one to trace; "step", the one whose ops are wanted, or None.
    """
    run = Path(request["run"])
    config = read_config(run)
    prepared = choose_preparer(config, request["entry"], request["data"])(config)
    start = _restore(run, config, prepared, request["start"])
    if request["step"] is not None:
        return trace_ops(prepared.problem, start, request["epoch"], request["step"], request["out"])
    watch = StepTrace(request["epoch"])
    train(prepared.problem, (watch,), start=start, until=Position(request["epoch"]))
    recorded = read_trail(run, torn=True)[request["epoch"]]
    reproduced = first_difference([recorded], [watch.entry]) is None
    return {"steps": watch.steps, "reproduced": reproduced}


class StepTrace(Observer):
    """Writes down the state after every step of one epoch, which is counted from 1."""

    def __init__(self, epoch: int) -> None:
        self.wanted = epoch
        self.steps: list[dict[str, Any]] = []
        self.entry: dict[str, Any] = {}

    def step(self, progress: ProgressState) -> None:
        """Digest every tensor, if this is the epoch."""
        position = progress.position
        if position.epoch + 1 == self.wanted:
            self.steps.append(
                {
                    "step": position.step,
                    "batch": position.batch,
                    "rate": progress.rate,
                    "state": digest_each(progress.state),
                }
            )

    def epoch(self, progress: ProgressState) -> None:
        """Keep the entry this epoch would have in a trail."""
        if progress.position.epoch == self.wanted:
            self.entry = make_entry(progress)


class OpTrace(Step):
    """Makes steps like any other, and records the ops of one of them, counted from 1."""

    def __init__(self, problem: TrainingProblem, wanted: int, done: int) -> None:
        super().__init__(problem)
        self.wanted, self.done = wanted, done
        self.before: dict[str, Tensor] = {}
        self.records: list[dict[str, Any]] = []

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Make a step; record it if it is the one."""
        self.done += 1
        if self.done != self.wanted:
            return super().__call__(rows, epoch)
        problem = self.problem
        state = collect_state(problem.model, problem.optimizer, problem.order)
        self.before = {
            name: value.clone(memory_format=torch.contiguous_format)
            for name, value in fetch_state(state).items()
        }
        names = {
            **state,
            "batch/rows": rows,
            "data/samples": problem.train.samples,
            "data/labels": problem.train.labels,
            "data/keys": problem.keys,
            "optimizer/rate": problem.optimizer.param_groups[0]["lr"],
        }
        with OpRecorder(problem.model, names=names) as seen:
            self.phase = seen.phase
            losses = super().__call__(rows, epoch)
        self.phase = lambda _: nullcontext()
        self.records = [record.as_dict() for record in seen.records]
        return losses


def trace_ops(
    problem: TrainingProblem, start: Start | None, epoch: int, step: int, out: str
) -> dict[str, Any]:
    """Run up to a step and return its ops; the state before it is written to ``out``."""
    tracer = OpTrace(problem, step, 0 if start is None else start.position.step)
    train(problem, start=start, stop=lambda: tracer.done >= step, step=tracer)
    save_file(tracer.before, Path(out) / STATE)
    return {"records": tracer.records}


def _restore(run: Path, config: Config, prepared: Prepared, epoch: int) -> Start | None:
    if epoch == 0:
        return None
    path = run / "checkpoints" / checkpoint_file_name(Position(epoch))
    checkpoint = read_checkpoint(path, config.digest)
    problem = prepared.problem
    restore_state(checkpoint.state, problem.model, problem.optimizer, problem.order)
    return checkpoint.start
