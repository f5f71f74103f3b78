"""Recording a script: what its receipt says, and when there is none."""

import hashlib
import os
import sys

import pytest

import seedless
from seedless.audit.script.observation import list_data, list_sources
from seedless.audit.script.recording import find_named, record_script
from seedless.core.errors import RunError
from seedless.runs.script_run import open_script


def sha256(path):
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def test_the_receipt_says_what_was_run(example):
    run = open_script(example.run)
    script, environment = run.script, run.claims["environment"]
    assert script["command"] == ["python", "train.py", "--epochs", "3"]
    assert script["sources"] == {"train.py": sha256(example.folder / "train.py")}
    assert [(file["path"], file["digest"]) for file in run.data] == [
        ("table.json", sha256(example.folder / "table.json"))
    ]
    model = example.folder / "out" / "model.pt"
    assert {*script["outputs"]} == {"out/model.pt"}
    assert script["outputs"]["out/model.pt"]["digest"] == sha256(model)
    assert script["outputs"]["out/model.pt"]["content"] is not None
    assert (script["changed"], script["unobserved"], script["exit_code"]) == ([], [], 0)
    assert environment["python"] == sys.version.split()[0]
    assert environment["packages"]["torch"]
    assert environment["variables"]["MKL_CBWR"] == "COMPATIBLE"
    assert environment["threads"]["intraop"] == 1


def test_the_trail_has_what_happened_at_each_step(example):
    (trail,) = open_script(example.run).trails
    assert [line["step"] for line in trail[1:]] == [1, 2, 3, 4, 5, 6]
    for line in trail[1:]:
        assert {"weights", "loss", "gradients", "input", "output"} <= {*line["state"]}
        assert line["loss"] > 0
        assert line["rate"] == 0.1
    digests = [line["state"]["weights"] for line in trail[1:]]
    assert len({*digests}) == 6


def test_what_the_script_prints_is_passed_on(example):
    assert [line.split(":")[0] for line in example.printed.splitlines()] == [
        "epoch 1",
        "epoch 2",
        "epoch 3",
    ]


def test_no_place_of_the_machine_is_in_the_run(example):
    for file in example.run.iterdir():
        assert str(example.folder).encode() not in file.read_bytes()


def test_a_script_that_fails_gets_no_receipt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "import sys; print('wrong\\x1b[2J', file=sys.stderr); sys.exit(3)"
    with pytest.raises(RunError, match="ended with exit code 3") as error:
        record_script([sys.executable, "-c", code], "run")
    assert r"wrong\x1b[2J" in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_script_that_does_not_train_gets_no_receipt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="no training step was recorded"):
        record_script([sys.executable, "-c", "print(1)"], "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ([], {}, "expected a command"),
        (["no-such-program-here"], {}, "there is no program"),
        (["true", "{out}"], {}, "is for `seedless doctor`"),
        (["true"], {"out": "exists"}, "is there already"),
        (["true"], {"out": "exists/file/run"}, "is not a folder"),
        (["true"], {"outputs": ["../model.pt"]}, "is not in the current folder"),
        (["true"], {"outputs": ["/etc/passwd"]}, "is not in the current folder"),
    ],
)
def test_what_could_not_be_written_is_refused_before_anything_is_executed(
    command, options, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exists").mkdir()
    (tmp_path / "exists" / "file").write_text("")
    monkeypatch.setattr("seedless.audit.script.recording.execute", pytest.fail)
    with pytest.raises(RunError, match=message):
        record_script(command, **{"out": "run", **options})


def test_named_outputs_are_files_or_folders_of_them_as_far_as_they_exist(tmp_path):
    (tmp_path / "out" / "deep").mkdir(parents=True)
    for name in ("out/a.pt", "out/deep/b.pt", "c.pt", "other.pt"):
        (tmp_path / name).write_text("")
    assert find_named(["out", "c.pt", "lost.pt"], tmp_path) == ["c.pt", "out/a.pt", "out/deep/b.pt"]


class Recorded:
    """Records of one process, as far as the files of a run are read from them."""

    def __init__(self, folder, sources=(), read=()):
        self.start = type("Start", (), {"cwd": str(folder)})
        self.sources = dict(sources)
        self.files = type("Files", (), {"read": read})
        self.processes, self.workers = [self], []


class Read:
    def __init__(self, path, mtime_ns=0, size=1, sha256=None):
        self.path, self.mtime_ns, self.size, self.sha256 = str(path), mtime_ns, size, sha256


def test_files_are_data_own_products_or_changed(tmp_path):
    for name in ("old.csv", "rewritten.csv", "made.csv"):
        (tmp_path / name).write_text("x")
    began = (tmp_path / "made.csv").stat().st_mtime_ns
    os.utime(tmp_path / "old.csv", ns=(1, 1))
    reads = [
        Read("old.csv", 1),  # was there before, and is unchanged
        Read("rewritten.csv", 1),  # was there before, and was changed
        Read("made.csv", began + 1),  # the script made it
        Read("removed.csv", 1),  # was there before, and is gone
        Read("temporary.csv", began + 1),  # the script made and removed it
        Read("train.py", 1),  # is a source
    ]
    data, changed = list_data(Recorded(tmp_path, read=reads), tmp_path, {"train.py": ""}, began)
    assert [file["path"] for file in data] == ["old.csv"]
    assert data[0]["digest"] == sha256(tmp_path / "old.csv")
    assert changed == ["removed.csv", "rewritten.csv"]


def test_sources_in_the_folder_are_relative_and_others_absolute(tmp_path):
    folder, other = tmp_path / "work", tmp_path / "lib"
    for place in (folder / "pkg", other):
        place.mkdir(parents=True)
    (folder / "pkg" / "net.py").write_text("")
    (other / "tool.py").write_text("")
    found = {str(folder / "pkg" / "net.py"): "0" * 64, str(other / "tool.py"): ""}
    found[seedless.__file__] = "1" * 64  # this package is described by its own digest
    found["gone.py"] = "2" * 64
    sources = list_sources(Recorded(folder, found), folder)
    assert sources == {
        str(other / "tool.py"): sha256(other / "tool.py"),
        "pkg/net.py": "sha256:" + "0" * 64,
    }
