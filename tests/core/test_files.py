"""A file is there as a whole or not at all."""

import errno
import hashlib
import os
import signal

import pytest

from seedless.core.files import hash_file, match_paths, write_atomic


def test_a_file_is_written_completely_and_no_temporary_file_stays(tmp_path):
    file = tmp_path / "weights.bin"
    content = bytes(range(256)) * 100
    write_atomic(file, content)
    assert file.read_bytes() == content
    write_atomic(file, b"")
    assert file.read_bytes() == b""
    assert os.listdir(tmp_path) == ["weights.bin"]


def test_a_failed_write_keeps_what_was_there(tmp_path, monkeypatch):
    file = tmp_path / "weights.bin"
    write_atomic(file, b"old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(file, b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["weights.bin"]


@pytest.mark.parametrize("moment", ["open", "os.rename"])
def test_a_process_killed_while_writing_leaves_the_old_content(tmp_path, run_python, moment):
    file = tmp_path / "weights.bin"
    file.write_bytes(b"old")
    script = f"""
import os, signal, sys
from pathlib import Path
from seedless.core.files import write_atomic
hits = []
def hook(event, arguments):
    if event == {moment!r} and str(arguments[0]).endswith(".part"):
        hits.append(event)
        if event == "os.rename" or len(hits) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
write_atomic(Path({str(file)!r}), b"new" * 100_000)
"""
    done = run_python("-c", script, check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() == b"old"


def test_the_content_is_on_the_disk_before_the_name_is(tmp_path, monkeypatch):
    """Renamed first and flushed later, a power cut could leave an empty file under the name."""
    calls = []
    real_sync, real_replace = os.fsync, os.replace

    def sync(descriptor):
        calls.append("fsync")
        real_sync(descriptor)

    def rename(source, target):
        calls.append("rename")
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    write_atomic(tmp_path / "file", b"content")
    assert calls[:2] == ["fsync", "rename"]


def test_hash_file_is_sha256(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"abc")
    assert hash_file(file) == f"sha256:{hashlib.sha256(b'abc').hexdigest()}"


def test_a_pattern_is_what_it_matches_and_a_path_that_exists_is_itself(tmp_path):
    for name in ("b-2", "b-1", "a-1", "b-[1]"):
        (tmp_path / name).mkdir()
    assert match_paths(tmp_path / "b-?") == [tmp_path / "b-1", tmp_path / "b-2"]
    assert match_paths(str(tmp_path / "b-[1]")) == [tmp_path / "b-[1]"]
    assert match_paths(tmp_path / "c-*") == []
