"""Copies of a working folder."""

import pytest

from seedless.audit.doctor import working_copy
from seedless.audit.doctor.working_copy import copy_working_folder, move_command
from seedless.core.errors import RunError


def test_files_links_and_what_is_left_out(tmp_path):
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "src" / "a.py").write_text("1")
    (folder / "near").symlink_to("src/a.py")
    (tmp_path / "data.csv").write_text("2")
    (folder / "far").symlink_to("../data.csv")
    copy = copy_working_folder(folder, tmp_path / "other" / "copy")
    assert sorted(path.name for path in copy.iterdir()) == ["far", "near", "src"]
    assert (copy / "near").read_text() == "1"
    assert (copy / "far").read_text() == "2"
    (copy / "src" / "a.py").write_text("changed")
    assert (folder / "src" / "a.py").read_text() == "1"


def test_a_copy_inside_the_folder_does_not_hold_itself(tmp_path):
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "records").mkdir()
    copy = copy_working_folder(tmp_path, tmp_path / "records" / "copy")
    assert [path.name for path in copy.iterdir()] == ["a.py"]


def test_a_large_folder_is_refused(tmp_path, monkeypatch):
    (tmp_path / "big").write_text("x" * 100)
    monkeypatch.setattr(working_copy, "MAX_COPY_BYTES", 10)
    with pytest.raises(RunError, match=r"write to \{out\}"):
        copy_working_folder(tmp_path, tmp_path / "copy")


def test_paths_in_a_command_lead_to_the_copy(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    command = ["python", f"{here}/train.py", f"--data={here}/x", "train.py", f"{here}er/y"]
    assert move_command(command, here, there) == [
        "python",
        f"{there}/train.py",
        f"--data={there}/x",
        "train.py",
        f"{here}er/y",
    ]
