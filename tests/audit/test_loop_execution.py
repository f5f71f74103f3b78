"""Recorded loops executed again by their own commands, and never without being asked to."""

import json
import re
import runpy
import sys

import pytest
import torch

import seedless
from seedless.audit import loop_execution
from seedless.audit.loop_execution import read_command
from seedless.cli.main import main
from seedless.core.errors import RunError
from seedless.proof.loop_lines import read_loop_trail

SCRIPT = """
import sys
from pathlib import Path

import torch

import seedless

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
folder = Path("runs") / sys.argv[1]
factor = float(Path("factor").read_text()) if len(sys.argv) > 2 else 1.0
with seedless.record(folder, model, optimizer) as trail:
    for step in (1, 10, 20, 30, 40):
        x = torch.ones(2, 4)
        if step == 30:
            x = torch.exp(x * factor)
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        trail.step(step=step, epoch=1, loss=loss, batch=x)
        (folder / "weights.pt").write_bytes(b"done")
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with a script and two loops of it, "a" and "b", which differ from step 30 on."""
    folder = tmp_path_factory.mktemp("loops")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "factor").write_text("1.5")
    with pytest.MonkeyPatch.context() as patch, torch.random.fork_rng():
        patch.chdir(folder)
        for words in (["a"], ["b", "scaled"]):
            patch.setattr(sys, "argv", ["train.py", *words])
            patch.setattr(sys, "orig_argv", ["python", "train.py", *words])
            runpy.run_path("train.py", run_name="__main__")
    return folder


@pytest.fixture
def call(work, monkeypatch, capsys):
    monkeypatch.chdir(work)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["seedless", "diff", "runs/a", "runs/b", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def test_the_commands_are_executed_again_up_to_the_step_that_differs(call, work):
    before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}
    code, out, err = call("--locate", "--execute", "--json")
    found = json.loads(out)
    assert (code, found["step"], found["epoch"]) == (1, 30, 1)
    assert found["reproduced"] == [True, True]
    diagnosis = found["diagnosis"]
    assert (diagnosis["step"], diagnosis["identical"]) == (4, False)
    assert re.match(r"train\.py:1[78]$", diagnosis["line"]), diagnosis
    assert diagnosis["op"].startswith("aten.mul"), diagnosis
    assert err.count("train.py b scaled in a copy of") == 2
    assert {path: path.read_bytes() for path in work.rglob("*") if path.is_file()} == before


def test_nothing_is_executed_without_that_word(call, monkeypatch):
    monkeypatch.setattr(loop_execution, "execute_loops", pytest.fail)
    code, out, _ = call("--locate")
    assert code == 1
    assert "THEY DIFFER at step 30 of epoch 1" in out
    assert "--locate --execute runs the two recorded commands again, with your rights" in out
    code, _, err = call("--execute")
    assert (code, "--execute needs --locate" in err) == (2, True)


def test_loops_that_are_equal_are_not_executed(work, monkeypatch):
    monkeypatch.setattr(loop_execution, "execute_loops", pytest.fail)
    found = seedless.diff(work / "runs/a", work / "runs/a", locate=True, execute=True)
    assert found.identical


BROKEN = {
    "no command": ({"command": None}, "does not say how it was started"),
    "two processes": ({"world_size": 2}, "recorded by 2 processes"),
    "no words": ({"command": {"argv": []}}, "does not hold a command"),
    "no list": ({"command": {"argv": 3, "variables": ["PATH"]}}, "does not hold a command"),
    "no text": ({"command": {"argv": ["python", 1], "executable": "/x"}}, "hold a command"),
    "gone": (
        {"command": {"argv": ["python"], "executable": "/nowhere/python", "cwd": "/"}},
        "not here any more",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_loop_that_cannot_be_started_is_refused(work, case):
    change, complaint = BROKEN[case]
    start, *steps = read_loop_trail(work / "runs/a")
    with pytest.raises(RunError, match=complaint):
        read_command(work / "runs/a", [{**start, **change}, *steps])


def test_the_command_has_the_variables_of_the_loop_and_no_others(work, monkeypatch):
    start, *steps = read_loop_trail(work / "runs/a")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    variables = {**start["environment"]["variables"], "MKL_CBWR": "AVX2"}
    variables.pop("OMP_NUM_THREADS", None)
    start["command"]["variables"] |= {"LD_PRELOAD": "/tmp/other.so", "RANK": "0"}
    environment = {**start["environment"], "variables": variables}
    command = read_command(work / "runs/a", [{**start, "environment": environment}, *steps])
    assert command.variables["MKL_CBWR"] == "AVX2"
    assert command.variables["OMP_NUM_THREADS"] is None
    assert command.variables["RANK"] == "0"
    assert "LD_PRELOAD" not in command.variables
    assert command.argv == (sys.executable, "train.py", "a")
