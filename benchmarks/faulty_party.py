"""Parties to a dispute with a known fault: they train with it, and answer as if it were right.

    python -m benchmarks.faulty_party RUN '{"kind": "learning rate", "step": 7, "choice": 3}'

answers a referee's requests about a run made with that fault. `make_faulty_run` makes such a run: a
folder that validates, since it is what training with the fault gives. benchmarks/referee.py and the
tests count how many of them a referee finds.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import seedless
from seedless.audit.dispute.party import AnsweringRun, serve_requests
from seedless.audit.dispute.recorded_step import CallRecorder, Execution, RecordedStep
from seedless.core.config import Config, parse_config
from seedless.core.digests import digest
from seedless.runs.prepare import Prepared, Preparer
from seedless.runs.train import train_run
from seedless.runs.user_model import UserModel, prepare_user_model
from seedless.runs.validation import validate
from seedless.script_recorder.op_signature import find_tensors, read_signature
from seedless.train import loop

SETTINGS: dict[str, Any] = {
    "init": {"basis": "dct"},
    "order": {"batch_size": 12},
    "train": {"epochs": 3, "checkpoint_every": 1, "evaluate_every": 1, "weight_decay": 0.01},
    "execution": {"device": "cpu", "threads": 1, "arithmetic": "portable"},
}
STEPS_PER_EPOCH = 4
FLOAT_OPERATIONS = 32  # of a step, that give or change a tensor of floats
ENTRY = "benchmarks.faulty_party:give"


def make_arrays(n: int, seed: int) -> tuple[Any, Any]:
    """Return signals (n, 2, 16) around a level for each of three classes, and class numbers."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, n)
    signals = draw.normal(size=(n, 2, 16)) + labels[:, None, None]
    return signals.astype("f4"), labels


def make_model() -> nn.Module:
    """Return a network with convolution, batch norm, pooling, dropout and a linear head."""
    return nn.Sequential(
        nn.Conv1d(2, 6, 3, padding=1),
        nn.BatchNorm1d(6),
        nn.ReLU(),
        nn.AvgPool1d(4),
        nn.Flatten(),
        seedless.Dropout(0.2, layer=0),
        nn.Linear(24, 3),
    )


def give() -> dict[str, Any]:
    """Return what the runs are made from, as --entry wants it; 4 steps an epoch."""
    return {"model": make_model, "train": make_arrays(48, 1), "val": make_arrays(24, 2)}


@dataclass(frozen=True)
class Fault:
    """What a party does wrong.

    Attributes:
        kind: one of `KINDS`.
        step: where, counted from 1 over the whole run.
        choice: which tensor, element, bit or operation: any number.
    """

    kind: str
    step: int
    choice: int = 0


def flip(tensor: Tensor, choice: int) -> None:
    """Flip one of the higher bits of the fraction of one element, in place."""
    flat = tensor.detach().view(-1)
    place = choice % len(flat)
    bit = 12 + choice % 10
    bits = flat[place : place + 1].view(torch.int32)
    bits ^= 1 << bit


class FlippedResult(TorchDispatchMode):  # type: ignore[no-untyped-call]  # untyped in torch
    """Flips a bit in the result of one operation of a step, out of those that give floats."""

    def __init__(self, choice: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped in torch
        self.choice, self.left = choice, choice % FLOAT_OPERATIONS

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation; change its result if it is the one."""
        return self.run(func, *args, **(kwargs or {}))

    def run(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the result of an operation, changed if it is the one."""
        result = func(*args, **kwargs)
        signature = read_signature(func)
        if signature.view or signature.uninitialized:
            return result
        written = args[0] if all(signature.aliased) else result
        floats = [t for t in find_tensors(written) if t.dtype == torch.float32 and t.numel()]
        if floats:
            if self.left == 0:
                flip(floats[0], self.choice)
            self.left -= 1
        return result


class FlippedCall:
    """An operation whose result is changed, for a recorder that calls it."""

    def __init__(self, func: Any, flipped: FlippedResult) -> None:
        self._func, self._flipped = func, flipped

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result, changed if this is the operation."""
        return self._flipped.run(self._func, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._func, name)

    def __str__(self) -> str:
        return str(self._func)


class FlippedRecorder(CallRecorder):  # type: ignore[no-untyped-call]  # untyped in torch
    """Records operations, one of them with a changed result: a party that believes it."""

    flipped: FlippedResult

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record an operation, as it is called with the change."""
        return super().__torch_dispatch__(FlippedCall(func, self.flipped), types, args, kwargs)


class FaultyStep(RecordedStep):
    """The training step with a fault."""

    fault = Fault("none", 0)

    def __call__(self, rows: Tensor, epoch: int) -> Tensor:
        """Train on the rows, wrongly at the fault's step."""
        fault, optimizer = self.fault, self.problem.optimizer
        done = int(optimizer.state[self.trained[0]]["step"])
        self.here = done + 1 == fault.step
        self.flipped = FlippedResult(fault.choice)
        group = optimizer.param_groups[0]
        if fault.kind == "learning rate ever after" and done + 1 >= fault.step:
            group["lr"] *= 1.5
        if not self.here:
            return super().__call__(rows, epoch)
        parameter = self.trained[fault.choice % len(self.trained)]
        if fault.kind == "weight":
            flip(parameter, fault.choice)
        elif fault.kind == "moment":
            flip(optimizer.state[parameter]["exp_avg"], fault.choice)
        elif fault.kind == "running mean":
            # mypy sees a Module: the model of this file is a Sequential with a BatchNorm second.
            flip(self.problem.model[1].running_mean, fault.choice)  # type: ignore[index, arg-type]
        elif fault.kind == "learning rate":
            group["lr"] *= 1.0 + 2.0 ** -(fault.choice % 14)
        elif fault.kind == "weight decay":
            group["weight_decay"] = 0.02
        elif fault.kind == "dropout of another epoch":
            epoch += 1
        elif fault.kind == "swapped sample":
            rows = rows.clone()
            rows[fault.choice % len(rows)] = (rows[0] + 1 + fault.choice % 40) % 48
        elif fault.kind == "dropped sample":
            losses = super().__call__(rows[1:], epoch)
            self.losses = torch.cat([losses[:1], losses])
            return self.losses
        losses = super().__call__(rows, epoch)
        group["weight_decay"] = self.problem.config.train.weight_decay
        if fault.kind == "weight after the step":
            flip(parameter, fault.choice)
        return losses

    @contextmanager
    def record_phase(self, label: str) -> Iterator[None]:
        """Make the phase, with a wrong result or gradient in it."""
        fault = self.fault
        if self.here and label == "optimizer" and fault.kind == "gradient":
            gradient = self.trained[fault.choice % len(self.trained)].grad
            assert gradient is not None
            flip(gradient, fault.choice)
        flips = self.here and fault.kind == "operation" and self.recorder is None
        with self.flipped if flips else nullcontext(), super().record_phase(label):
            yield

    def make_recorder(self, names: Mapping[str, Tensor], wanted: int | None) -> CallRecorder:
        """Return a recorder that sees the wrong result as the operation's own."""
        if self.fault.kind != "operation":
            return super().make_recorder(names, wanted)
        recorder = FlippedRecorder(self.problem.model, names, wanted)
        recorder.flipped = FlippedResult(self.fault.choice)
        return recorder


def spoil(prepared: Prepared, fault: Fault) -> Prepared:
    """Put the faults into a prepared problem that are there before the first step."""
    problem = prepared.problem
    if fault.kind in ("first weight", "first weight, stated"):
        parameters = list(problem.model.parameters())
        flip(parameters[fault.choice % len(parameters)], fault.choice)
        if fault.kind == "first weight, stated":
            stated = {**prepared.facts["initialization"], "weights": digest(problem.model)}
            return replace(prepared, facts={**prepared.facts, "initialization": stated})
    elif fault.kind == "record":
        flip(problem.train.samples[fault.choice % len(problem.train)], fault.choice)
    elif fault.kind == "label":
        labels = problem.train.labels
        labels[fault.choice % len(labels)] = labels[fault.choice % len(labels)].roll(1)
    elif fault.kind == "score":
        return replace(prepared, problem=replace(problem, score=lower_score(prepared, fault)))
    return prepared


def lower_score(prepared: Prepared, fault: Fault) -> Callable[..., float | None]:
    """Return the problem's score, lower by a half at the end of the fault's epoch."""
    problem = prepared.problem
    epoch = -(-fault.step // STEPS_PER_EPOCH)

    def score(*given: Any) -> float | None:
        right = problem.score(*given)
        states = problem.optimizer.state.values()
        now = int(next(iter(states))["step"]) == epoch * STEPS_PER_EPOCH
        return right - 0.5 if right is not None and now else right

    return score


# What a party can do wrong, in the order of benchmarks/referee.py.
KINDS = (
    "gradient",
    "operation",
    "learning rate",
    "learning rate ever after",
    "weight decay",
    "dropped sample",
    "swapped sample",
    "weight",
    "weight after the step",
    "moment",
    "running mean",
    "dropout of another epoch",
    "record",
    "label",
    "first weight",
    "first weight, stated",
    "score",
)


def make_preparer(fault: Fault) -> Preparer:
    """Return a function that prepares the problem, with the fault in it."""
    user = UserModel(**give())

    def prepare(config: Config) -> Prepared:
        return spoil(prepare_user_model(config, user=user), fault)

    return prepare


def make_faulty_run(fault: Fault, out: Path) -> Path:
    """Train with a fault; return the run folder."""
    before = loop.make_step
    # A partial of another function: mypy wants the very type of the one it stands in for.
    loop.make_step = partial(make_step, fault=fault)  # type: ignore[assignment]
    try:
        return train_run(parse_config(SETTINGS), out, preparer=make_preparer(fault)).path
    finally:
        loop.make_step = before


def make_step(problem: Any, fault: Fault) -> FaultyStep:
    """Return the training step with a fault."""
    # A class that is made here has no type for mypy.
    return type("Step", (FaultyStep,), {"fault": fault})(problem)  # type: ignore[no-any-return]


def answer_with(run: Path, fault: Fault) -> AnsweringRun:
    """Return the run of a faulty party, which executes it with the same fault."""
    execution = type(
        "FaultyExecution",
        (Execution,),
        {"step_type": staticmethod(partial(make_step, fault=fault))},
    )
    answering = AnsweringRun(validate(run), make_preparer(fault))
    answering.execution_type = execution
    return answering


def main() -> None:
    """Answer a referee's requests about a faulty run."""
    run, values = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with answers:
        serve_requests(
            answer_with(Path(run), Fault(**json.loads(values))), sys.stdin.buffer, answers
        )


if __name__ == "__main__":
    main()
