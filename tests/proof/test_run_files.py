"""A run folder holds what a run has; everything else is named, and none of it is opened."""

import os
import socket

import pytest

from seedless.core.errors import RunError
from seedless.proof.receipt import UNCOVERED
from seedless.proof.run_files import (
    COVERED,
    MAX_HOLES,
    MAX_PROBLEMS,
    check_listed_names,
    check_run_files,
    is_run_file,
)

CHECKPOINT = "checkpoints/epoch-0003.safetensors"


@pytest.fixture
def run(tmp_path):
    """A folder with every file that a run can have; what is in them does not matter here."""
    folder = tmp_path / "run"
    for name in (*COVERED, *UNCOVERED, CHECKPOINT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return folder


def test_every_file_of_a_run_is_known(run):
    assert check_run_files(run) == check_run_files(run, finished=False) == []
    for name in run.iterdir():
        assert name.is_dir() or is_run_file(name.name)


@pytest.mark.parametrize(
    "name",
    [
        *("torch.py", "sitecustomize.py", "notes.txt", ".hidden", "weights.safetensors.py"),
        *("Config.toml", "weights.bin", "torch.so", "checkpoints/torch.py"),
        *("checkpoints/epoch-3.safetensors", "checkpoints/epoch-00003.safetensors"),
        *("checkpoints/epoch-٠٠٠٣.safetensors", "checkpoints/epoch-0003-batch-0002.safetensors"),
        *("checkpoints/receipt.json", "checkpoints/config.toml", ".receipt.json.17.part"),
        "line\nbreak\x1b[2J",
    ],
)
def test_another_name_is_refused(run, name):
    (run / name).write_bytes(b"added")
    assert not is_run_file(name)
    (problem,) = check_run_files(run)
    assert problem == f"{name!r} is not a file of a run: it was added; move it away"
    assert problem.isprintable()


@pytest.mark.parametrize("name", ["torch", "checkpoints/more", "checkpoints/numpy"])
def test_a_folder_is_refused_even_if_it_is_empty(run, name):
    (run / name).mkdir()
    assert check_run_files(run)[0].startswith(f"{name!r} is a folder")
    assert check_run_files(run, finished=False)[0].startswith(f"{name!r} is a folder")


def make_pipe(path):
    os.mkfifo(path)


def make_socket(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket may be 108 bytes long at most
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)
    os.chdir(here)


def link_file(path):
    path.symlink_to(path.parent / "nowhere")


def link_folder(path):
    path.symlink_to(path.parent.parent)


@pytest.mark.parametrize("make", [make_pipe, make_socket, link_file, link_folder])
@pytest.mark.parametrize("name", ["weights.safetensors", "receipt.json", ".lock", CHECKPOINT, "x"])
def test_what_is_no_plain_file_is_refused_under_any_name(run, make, name):
    (run / name).unlink(missing_ok=True)
    make(run / name)
    kind = "a symbolic link" if "link" in make.__name__ else "a pipe, a socket or a device"
    for finished in (True, False):
        (problem,) = check_run_files(run, finished=finished)
        assert problem.startswith(f"{name!r} is {kind}, where a run has plain files only")


def test_the_folder_of_checkpoints_is_a_folder_with_something_in_it(run, tmp_path):
    (run / CHECKPOINT).unlink()
    assert "checkpoints is empty" in check_run_files(run)[0]
    (run / "checkpoints").rmdir()
    assert check_run_files(run) == []  # as a stripped run has it
    (run / "checkpoints").symlink_to(tmp_path)
    assert "'checkpoints' is a symbolic link" in check_run_files(run)[0]
    (run / "checkpoints").unlink()
    (run / "checkpoints").write_bytes(b"")
    assert "'checkpoints' is not a file of a run" in check_run_files(run)[0]


def test_an_unfinished_run_may_hold_what_a_killed_process_leaves(run):
    for name in (
        "checkpoints/epoch-0003-batch-0002.safetensors",
        "checkpoints/.epoch-0004.safetensors.17.part",
        ".metrics.json.17.part",
    ):
        (run / name).write_bytes(b"")
        assert check_run_files(run, finished=False) == []
        assert f"{name!r} is not a file of a run" in check_run_files(run)[0]
        (run / name).unlink()


def test_problems_are_bounded_and_a_folder_that_cannot_be_read_is_an_error(run, tmp_path):
    for number in range(3 * MAX_PROBLEMS):
        (run / f"{number:03d}").write_bytes(b"")
    assert len(check_run_files(run)) == MAX_PROBLEMS
    with pytest.raises(RunError, match=r"cannot read .*absent"):
        check_run_files(tmp_path / "absent")


def test_a_receipt_lists_files_that_receipts_cover():
    assert check_listed_names([*COVERED, CHECKPOINT], "train") == []
    for name in (*UNCOVERED, "torch.py", "checkpoints/../../x", "/etc/passwd", "checkpoints/x"):
        assert name in check_listed_names([*COVERED, name], "train")[0]


def test_files_with_holes_are_refused_unopened(run):
    """A file of a terabyte that takes no room would be hashed for hours."""
    for name in ("log.jsonl", CHECKPOINT):
        os.truncate(run / name, MAX_HOLES // 2)
    assert check_run_files(run) == []
    os.truncate(run / CHECKPOINT, MAX_HOLES)
    for finished in (True, False):
        (problem,) = check_run_files(run, finished=finished)
        assert "the files claim 1,610,612,736 bytes, and 0 are stored" in problem


def test_a_large_file_without_holes_is_one_of_a_run(run, monkeypatch):
    monkeypatch.setattr("seedless.proof.run_files.MAX_HOLES", 2**10)
    (run / CHECKPOINT).write_bytes(b"x" * 2**20)
    assert check_run_files(run) == []
