"""Which files a script wrote: those that are new or changed, and none of a tool's."""

import os

import pytest

from seedless.audit.script.working_folder import find_written, list_files
from seedless.core.errors import RunError


def test_new_and_changed_files_were_written(tmp_path):
    for name in ("same.txt", "grown.txt", "rewritten.txt", "removed.txt"):
        (tmp_path / name).write_text("1")
    before = list_files(tmp_path)
    (tmp_path / "grown.txt").write_text("12")
    (tmp_path / "rewritten.txt").write_text("2")
    os.utime(tmp_path / "rewritten.txt", ns=(1, 2))
    (tmp_path / "removed.txt").unlink()
    (tmp_path / "out" / "deep").mkdir(parents=True)
    (tmp_path / "out" / "deep" / "new.pt").write_text("3")
    written = find_written(before, list_files(tmp_path))
    assert written == ["grown.txt", "out/deep/new.pt", "rewritten.txt"]


def test_folders_of_tools_links_and_the_run_folder_are_left_out(tmp_path):
    for name in ("__pycache__", ".git", "runs/a"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    assert list_files(tmp_path, [tmp_path / "runs" / "a"]) == {}
    assert [*list_files(tmp_path)] == ["runs/a/file"]


def test_too_many_files_are_refused_with_advice(tmp_path, monkeypatch):
    monkeypatch.setattr("seedless.audit.script.working_folder.MAX_FILES", 2)
    for number in range(3):
        (tmp_path / str(number)).write_text("")
    with pytest.raises(RunError, match="name its outputs with --output"):
        list_files(tmp_path)
