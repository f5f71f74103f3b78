"""Records are read as written, and hostile ones are refused with one message."""

import json

import pytest

from seedless.audit.doctor import recorded_run
from seedless.audit.doctor.recorded_run import read_run
from seedless.core.errors import RunError
from tests.audit.doctor.records import make_end, make_process, make_step, write_process, write_run


def test_every_line_is_read(tmp_path):
    lines = [
        {"kind": "torch", "version": "2.13.0", "cuda": None, "devices": [], "threads": 2},
        {"kind": "seed", "generator": "torch", "call": "torch.manual_seed", "value": "0"},
        {"kind": "listing", "call": "os.listdir", "path": "d", "ordered": "a", "sorted": "b"},
        {"kind": "flags", "step": 1, "flags": {"cudnn.benchmark": True}},
        {"kind": "some later kind", "value": 1},
        {"kind": "files", "read": [{"path": "a.csv", "size": 3}], "written": [{"path": "b"}]},
        {"kind": "sources", "files": [{"path": "train.py", "sha256": "00"}]},
    ]
    run = write_run(tmp_path, lines, workers=[[{"kind": "draws", "generator": "numpy"}]])
    (process,) = run.training
    assert process.torch.threads == 2
    assert process.seeds[0].value == "0"
    assert process.listings[0].sorted == "b"
    assert [step.flags for step in process.steps] == [{"cudnn.benchmark": True}] * 3
    assert process.files.read[0].path == "a.csv"
    assert process.files.written[0].path == "b"
    assert process.sources == {"train.py": "00"}
    assert process.end.reason == "exit"
    assert run.list_workers(process)[0].draws[0].generator == "numpy"


def test_events_know_how_many_steps_came_before(tmp_path):
    seed = {"kind": "seed", "generator": "torch", "value": None}
    write_process(tmp_path, [make_process(), seed, make_step(1), seed, make_step(2), seed])
    (process,) = read_run(tmp_path).processes
    assert [one.after for one in process.seeds] == [0, 1, 2]


def test_backward_passes_are_steps_only_without_an_optimizer(tmp_path):
    backward = {**make_step(1), "kind": "backward"}
    write_process(tmp_path / "a", [make_process(), backward, backward])
    assert len(read_run(tmp_path / "a").training[0].steps) == 2
    write_process(tmp_path / "b", [make_process(), backward, make_step(1)])
    assert len(read_run(tmp_path / "b").training[0].steps) == 1


def test_a_replay_of_a_graph_is_a_step(tmp_path):
    write_process(tmp_path, [make_process(), {**make_step(1), "kind": "replay"}, make_step(2)])
    assert len(read_run(tmp_path).training[0].steps) == 2


def test_values_in_lists_and_in_lists_of_lists(tmp_path):
    run = write_run(tmp_path, step1={"input": [["a", "b"], "c"], "batch": "d"})
    values = run.training[0].steps[0].values
    assert values["input"] == ("a", "b", "c")
    assert values["batch"] == ("d",)


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    file = write_process(tmp_path, [make_process(), make_step(1), make_step(2)])
    file.write_bytes(file.read_bytes()[:-10])
    assert len(read_run(tmp_path).training[0].steps) == 1


def test_a_process_without_a_first_line_is_left_out(tmp_path):
    (tmp_path / "process-0-1.jsonl").write_text("")
    assert read_run(tmp_path).processes == ()


def test_the_folder_of_a_run_is_read_as_the_word_that_stood_for_it(tmp_path):
    file = {"kind": "files", "read": [{"path": "/tmp/a b/out/x"}], "written": []}
    write_process(tmp_path, [make_process(), file])
    read = read_run(tmp_path, {"/tmp/a b/out": "{out}"}).processes[0].files.read
    assert read[0].path == "{out}/x"


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        "{",
        '{"kind": "step", "step": "many"}',
        '{"kind": "step", "step": 1, "values": {"loss": {"a": 1}}}',
        '{"kind": "step", "step": 1, "values": {"loss": 3}}',
        '{"kind": "seed"}',
        '{"kind": "seed", "generator": "torch", "generator": "numpy"}',
        '{"kind": "files", "read": [{"size": 1}]}',
        '{"kind": "process", "rank": 1e999}',
        "[" * 100 + "]" * 100,
        '{"kind": "step", "step": ' + "9" * 5000 + "}",
    ],
)
def test_hostile_lines_are_refused(tmp_path, line):
    file = write_process(tmp_path, [make_process()])
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(RunError) as caught:
        read_run(tmp_path)
    assert "line 2" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_hostile_files_are_refused(tmp_path, monkeypatch):
    write_process(tmp_path / "a", [make_process()])
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "process-0-1.jsonl").symlink_to(tmp_path / "a" / "process-0-100.jsonl")
    with pytest.raises(RunError, match="is a link"):
        read_run(tmp_path / "b")
    monkeypatch.setattr(recorded_run, "MAX_RECORD_BYTES", 10)
    with pytest.raises(RunError, match="at most 10"):
        read_run(tmp_path / "a")
    monkeypatch.setattr(recorded_run, "MAX_PROCESSES", 0)
    with pytest.raises(RunError, match="at most 0 are read"):
        read_run(tmp_path / "a")


def test_numbers_that_are_not_finite_are_read(tmp_path):
    step = json.dumps({**make_step(1), "shown": {"loss": [float("nan")]}})
    file = write_process(tmp_path, [make_process()])
    file.write_text(file.read_text() + step + "\n" + json.dumps(make_end(1)) + "\n")
    assert len(read_run(tmp_path).training[0].steps) == 1
