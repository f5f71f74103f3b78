"""A step, operation by operation: each has, executed alone, the result it had in the step."""

import pytest
import torch
from torch import nn

from benchmarks.faulty_party import Fault, answer_with, make_faulty_run
from seedless.audit.dispute.op_call import execute_call
from seedless.audit.dispute.party import AnsweringRun
from seedless.audit.dispute.recorded_step import CallRecorder, RecordedStep
from seedless.core.errors import RunError
from seedless.runs.user_model import UserModel, prepare_user_model
from seedless.runs.validation import validate
from seedless.train.progress_state import Position, Start
from tests.tiny import fit_run, flags_restored, give

HONEST = Fault("none", 0)


@pytest.fixture(autouse=True)
def _leave_no_flags():
    with flags_restored():
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with flags_restored():
        return make_faulty_run(HONEST, tmp_path_factory.mktemp("recorded") / "run")


class AllCalls(CallRecorder):
    """Keeps the arguments of every operation."""

    def __init__(self, *given):
        super().__init__(*given)
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self._wanted = len(self.records)
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if len(self.records) > len(self.calls):
            self.calls.append(self.call)
        return result


def test_every_operation_that_reads_its_inputs_gives_its_result_alone(run, monkeypatch):
    made = []

    def make(step, names, wanted):
        made.append(AllCalls(step.problem.model, names))
        return made[0]

    monkeypatch.setattr(RecordedStep, "make_recorder", make)
    execution = AnsweringRun(validate(run), answer_with(run, HONEST)._preparer).execution
    records = execution.run_step(execution.beginning, Position()).operations
    alone = {}
    for record, call in zip(records, made[0].calls, strict=True):
        if record.outputs and record.inputs:
            found = execute_call(record.op, call)
            assert (found.inputs, found.settings) == (record.inputs, record.settings)
            assert found.outputs == record.outputs
            alone[record.op] = alone.get(record.op, 0) + 1
    assert sum(alone.values()) > 300
    assert {"aten.convolution_backward.default", "aten._fused_adam_.tensor_lr"} <= {*alone}


def test_a_step_alone_is_the_step_of_its_epoch(run):
    """The record of each step is the same, executed in its epoch or from the state before it."""
    answering = answer_with(run, HONEST)
    execution = answering.execution
    chained, entry = answering.execute_epoch({"start": 1, "epoch": 2})
    assert entry["state"] == answering.run.trail[2]["state"]
    for number, record in enumerate(chained):
        request = {"start": 1, "epoch": 2, "step": 5 + number}
        state = answering._find_state(request, Position(1, number, 4 + number))
        found = execution.run_step(state, Position(1, number, 4 + number)).record
        assert found == {key: record[key] for key in found}


def test_micro_batches_leave_no_trace_in_the_records(tmp_path):
    """A run trained in pieces answers as one trained in one piece does."""
    given = {**give(), "model": lambda: nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 3))}
    user = UserModel(**given)
    found = []
    for name, pieces in (("whole", None), ("pieces", 4)):
        path = fit_run(
            tmp_path / name,
            given,
            train={"epochs": 1, "microbatch": pieces},
            execution={"arithmetic": "portable"},
        )
        run = validate(path)
        answering = AnsweringRun(run, lambda config: prepare_user_model(config, user=user))
        steps, entry = answering.execute_epoch({"start": 0, "epoch": 1})
        assert entry["state"] == run.trail[1]["state"]
        execution = answering.execution
        found.append((steps, execution.run_step(execution.beginning, Position()).operations))
    assert found[0] == found[1]


def test_a_step_that_the_schedule_does_not_have_is_not_executed(run):
    execution = answer_with(run, HONEST).execution
    with pytest.raises(RunError, match="epoch 1 has no batch 5"):
        execution.run_step(execution.beginning, Position(0, 4, 4))


def test_recording_changes_no_bit_and_leaves_no_hook(run):
    execution = answer_with(run, HONEST).execution
    before = len(torch.nn.modules.module._global_forward_hooks)
    recorded = execution.run_step(execution.beginning, Position()).record
    plain = execution.run_epoch(execution.beginning, Start(), 1)
    assert recorded["state"] == plain[0][0]["state"]
    assert len(torch.nn.modules.module._global_forward_hooks) == before
