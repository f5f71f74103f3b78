"""A service for sharing a GPU is started, tried, used and ended; where it fails, runs go on."""

import os
import sys
from pathlib import Path

import pytest

from seedless.studies.engine.gpu_sharing import CONTROL, LOG, PIPE, share_gpus

CONTROL_SCRIPT = """#!{python}
import os, sys, time
name = "start" if sys.argv[1:] == ["-d"] else sys.stdin.read().strip()
with open({calls!r}, "a") as file:
    file.write(name + " " + os.environ["{pipe}"] + "\\n")
time.sleep({slow} if name == "quit" else 0)
sys.exit({code} if name == "start" else 0)
"""


@pytest.fixture
def service(tmp_path, monkeypatch):
    """Return a function that puts a stand-in of the control program on the path."""
    calls = tmp_path / "calls"
    calls.touch()
    monkeypatch.delenv(PIPE, raising=False)

    def install(code=0, trial="pass", slow=0):
        program = tmp_path / "bin" / CONTROL
        program.parent.mkdir()
        program.write_text(
            CONTROL_SCRIPT.format(
                python=sys.executable, calls=str(calls), pipe=PIPE, code=code, slow=slow
            )
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent))
        monkeypatch.setattr("seedless.studies.engine.gpu_sharing.GPU_TEST", trial)
        return calls

    return install


def list_calls(calls):
    return [line.split()[0] for line in calls.read_text().splitlines()]


def test_the_service_is_started_for_the_workers_and_ended_after_them(service):
    calls, said = service(), []
    with share_gpus(4, on_cuda=True, say=said.append) as used:
        assert used
        folder = os.environ[PIPE]
        assert os.environ[LOG] == folder
        assert Path(folder).is_dir()
        assert list_calls(calls) == ["start"]
    assert list_calls(calls) == ["start", "quit"]
    assert {line.split()[1] for line in calls.read_text().splitlines()} == {folder}
    assert PIPE not in os.environ
    assert not Path(folder).exists()
    assert ["started here" in said[0], "was ended" in said[1]] == [True, True]


def test_a_service_that_does_not_end_is_not_waited_for(service, monkeypatch):
    monkeypatch.setattr("seedless.studies.engine.gpu_sharing.STOP_SECONDS", 0.5)
    calls, said = service(slow=120), []
    with share_gpus(4, on_cuda=True, say=said.append) as used:
        assert used
    assert list_calls(calls) == ["start", "quit"]
    assert "did not end" in said[-1]
    assert "timed out" in said[-1]


def test_the_service_is_ended_where_the_runs_fail(service):
    calls = service()
    with pytest.raises(RuntimeError, match="a run"), share_gpus(2, on_cuda=True, say=print):
        raise RuntimeError("a run broke")
    assert list_calls(calls) == ["start", "quit"]
    assert PIPE not in os.environ


@pytest.mark.parametrize(
    ("code", "trial", "ended"),
    [(3, "pass", False), (0, "raise SystemExit('no device')", True)],
)
def test_runs_go_on_where_the_service_cannot_be_used(service, code, trial, ended):
    calls, said = service(code, trial), []
    with share_gpus(2, on_cuda=True, say=said.append) as used:
        assert not used
        assert PIPE not in os.environ
    assert list_calls(calls) == ["start", *(["quit"] if ended else [])]
    assert "take turns" in said[0]
    assert ("no device" in said[0]) == ended


def test_nothing_is_started_where_nothing_is_shared(service):
    calls, said = service(), []
    for count, on_cuda in ((1, True), (4, False)):
        with share_gpus(count, on_cuda=on_cuda, say=said.append) as used:
            assert not used
    assert list_calls(calls) == said == []


def test_a_service_that_runs_already_is_used_and_left_alone(service, monkeypatch):
    calls, said = service(), []
    monkeypatch.setenv(PIPE, "/there")
    with share_gpus(2, on_cuda=True, say=said.append) as used:
        assert used
    assert list_calls(calls) == []
    assert os.environ[PIPE] == "/there"
    assert "/there" not in said[0]


def test_a_machine_without_the_program_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(PIPE, raising=False)
    said = []
    with share_gpus(2, on_cuda=True, say=said.append) as used:
        assert not used
    assert f"no {CONTROL}" in said[0]
