"""Execute part of a run again, and record the state after each step, or the ops of one step."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from seedless.core.config import Config, parse_config
from seedless.core.digests import digest_each
from seedless.core.errors import RunError
from seedless.proof.trail import compare_trails, make_entry
from seedless.runs.prepare import Prepared
from seedless.runs.user_model import choose_preparer
from seedless.script_recorder.op_recorder import OpRecorder
from seedless.train.checkpoint import CHECKPOINT_FOLDER, checkpoint_file_name, read_checkpoint
from seedless.train.loop import train
from seedless.train.progress_state import Observer, Position, ProgressState, Start
from seedless.train.state_tensors import collect_state, fetch_state, restore_state
from seedless.train.step import Step
from seedless.train.training_problem import DataSplit, TrainingProblem

STATE = "state.safetensors"


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Execute part of a run for `diff`, in the process started for it.

    The request has "run", the folder; "config", its settings as plain values; "entry" and "data" as
    for `verify`; "start", the epoch of the checkpoint to begin from, or 0; "epoch", the one to
    record; "recorded", the trail's entries of these two; "step", the one to record the ops of, or
    None; "out", a folder for the state before that step.
    """
    run, (begun, recorded) = Path(request["run"]), request["recorded"]
    config = parse_config(request["config"])
    prepared = choose_preparer(config, request["entry"], request["data"])(config)
    start = _restore(run, config, prepared, request["start"], begun)
    if request["step"] is not None:
        return trace_ops(prepared.problem, start, request["step"], Path(request["out"]))
    trace = StepTrace(request["epoch"])
    train(prepared.problem, (trace,), start=start, until=Position(request["epoch"]))
    reproduced = compare_trails([recorded], [trace.entry]) is None
    return {"steps": trace.steps, "reproduced": reproduced}


class StepTrace(Observer):
    """Records the state after every step of one epoch, counted from 1."""

    def __init__(self, epoch: int) -> None:
        self.wanted = epoch
        self.steps: list[dict[str, Any]] = []
        self.entry: dict[str, Any] = {}

    def step(self, progress: ProgressState) -> None:
        """Record a digest of every tensor, if this is the epoch."""
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
        """Record the entry that the epoch has in a trail."""
        if progress.position.epoch == self.wanted:
            self.entry = make_entry(progress)


class OpRecordingStep(Step):
    """The training step, which also records the ops of one step, counted from 1."""

    def __init__(self, problem: TrainingProblem, wanted: int, done: int) -> None:
        super().__init__(problem)
        self.wanted, self.done = wanted, done
        self.before: dict[str, Tensor] = {}
        self.records: list[dict[str, Any]] = []

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Make a step; record its ops if it is the wanted one."""
        self.done += 1
        if self.done != self.wanted:
            return super().__call__(rows, epoch)
        problem = self.problem
        state = collect_state(problem.model, problem.optimizer, problem.order)
        self.before = {
            name: value.clone(memory_format=torch.contiguous_format)
            for name, value in fetch_state(state).items()
        }
        names = name_inputs(problem, rows)
        with OpRecorder(problem.model, names=names) as recorder:
            self.phase = recorder.phase
            losses = super().__call__(rows, epoch)
        self.phase = lambda _: nullcontext()
        self.records = [record.as_dict() for record in recorder.records]
        return losses


def name_inputs(problem: TrainingProblem, rows: Tensor) -> dict[str, Tensor]:
    """Return by name the tensors that exist before a step on some rows."""
    rate = problem.optimizer.param_groups[0]["lr"]
    inputs = {"batch/rows": rows, "data/keys": problem.keys}
    if isinstance(problem.train, DataSplit):
        inputs |= {"data/samples": problem.train.samples, "data/labels": problem.train.labels}
    if isinstance(rate, Tensor):
        inputs["optimizer/rate"] = rate
    return {**collect_state(problem.model, problem.optimizer, problem.order), **inputs}


def trace_ops(
    problem: TrainingProblem, start: Start | None, step: int, out: Path
) -> dict[str, Any]:
    """Train up to a step and return its ops; the state before it is written to ``out``."""
    trace = OpRecordingStep(problem, step, 0 if start is None else start.position.step)
    train(problem, start=start, stop=lambda: trace.done >= step, step=trace)
    save_file(trace.before, out / STATE)
    return {"records": trace.records}


def _restore(
    run: Path, config: Config, prepared: Prepared, epoch: int, recorded: Mapping[str, Any]
) -> Start | None:
    """Restore the checkpoint of an epoch and return where to start; None for the beginning.

    ``recorded``: the trail's entry of that epoch, whose state the checkpoint must have.
    """
    if epoch == 0:
        return None
    path = run / CHECKPOINT_FOLDER / checkpoint_file_name(Position(epoch))
    checkpoint = read_checkpoint(path, config.digest)
    if digest_each(checkpoint.state) != recorded["state"]:
        raise RunError(f"{path} does not have the state that the trail records for its epoch")
    problem = prepared.problem
    restore_state(checkpoint.state, problem.model, problem.optimizer, problem.order)
    return checkpoint.start
