"""A failing part of the recorder ends the record, once, and nothing else."""

import json

import pytest

from seedless.script_recorder.recorder import Recorder
from seedless.script_recorder.settings import Settings


@pytest.fixture
def recorder(tmp_path):
    return Recorder(Settings(folder=str(tmp_path)))


def read_lines(folder):
    (file,) = folder.iterdir()
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_failure_is_written_once_and_raises_nothing(recorder, tmp_path):
    def fail():
        raise ValueError("of ours")

    recorder.guard(fail)()
    recorder.guard(fail)()
    recorder.file.write({"kind": "step"})
    recorder.end()
    kinds = [line["kind"] for line in read_lines(tmp_path)]
    assert kinds == ["process", "error"]
    assert read_lines(tmp_path)[-1]["error"] == "ValueError: of ours"


def test_what_the_recorder_does_itself_is_not_recorded(recorder):
    calls = []
    inner = recorder.guard(lambda: calls.append("inner"))
    nested = recorder.guard(lambda: calls.append("nested"), nested=True)

    def outer():
        assert recorder.is_busy
        inner()
        nested()
        assert recorder.is_busy

    recorder.guard(outer)()
    assert calls == ["nested"]
    assert not recorder.is_busy
    inner()
    assert calls == ["nested", "inner"]


def test_the_end_is_written_once(recorder, tmp_path):
    recorder.before_end.append(lambda: recorder.file.write({"kind": "files"}))
    recorder.end()
    recorder.end()
    assert [line["kind"] for line in read_lines(tmp_path)] == ["process", "files", "end"]


def test_a_folder_that_is_gone_disturbs_nobody(tmp_path):
    recorder = Recorder(Settings(folder=str(tmp_path / "gone")))
    recorder.file.write({"kind": "step"})
    recorder.end()
    assert recorder.file.failed


def test_a_script_that_catches_the_exit_is_ended_for_good(tmp_path, monkeypatch):
    recorder = Recorder(Settings(folder=str(tmp_path), end_after=1))
    recorder.finish_step()
    codes = []
    monkeypatch.setattr("os._exit", codes.append)
    for _ in range(4):
        assert codes == []
        with pytest.raises(SystemExit):
            recorder.end_if_asked()
    assert codes == [0]


def test_the_process_ends_after_the_wanted_step(tmp_path):
    recorder = Recorder(Settings(folder=str(tmp_path), end_after=2))
    recorder.finish_step()
    recorder.end_if_asked()
    recorder.finish_step()
    with pytest.raises(SystemExit) as ended:
        recorder.end_if_asked()
    assert ended.value.code == 0
    assert read_lines(tmp_path)[-1] == {
        "kind": "end",
        "steps": 2,
        "reason": "end_after",
        "error": None,
    }
