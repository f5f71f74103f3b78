"""Which process of a group is to blame, by how all of them ended."""

import io
import os
import signal
import subprocess
import sys
import time

import pytest

from seedless.core import local_group
from seedless.core.errors import RunError
from seedless.core.local_group import LOST, check_answers, judge_exits


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0, 0, 0], 0),
        ([2, LOST, LOST], 2),  # the first has said why
        ([2, 2, 2], 2),  # all refused the same, and the first has said so
        ([130, 130, 130], 130),  # stopped by Ctrl-C
    ],
)
def test_a_group_ends_as_its_first_process_does(codes, expected):
    assert judge_exits(codes, [""] * 3) == expected


@pytest.mark.parametrize(
    ("codes", "texts", "words"),
    [
        ([LOST, LOST, -9], ["", "", "some progress"], "process 2 of 3 .*ended by SIGKILL"),
        ([-9, LOST, LOST], ["", "", ""], "process 0 of 3 .*ended by SIGKILL"),
        ([LOST, 2, LOST], ["", "error: no such file\n", ""], "process 1 of 3 .*no such file"),
        ([-9, 2, -9], ["", "error: no such file\n", ""], "process 1 of 3 .*no such file"),
        ([LOST, LOST, 70], ["", "", "Traceback\nKeyError: 'x'"], "Traceback / KeyError"),
        ([LOST, LOST, 1], ["", "", ""], "process 2 of 3 .*exit code 1"),
        ([LOST, LOST, LOST], ["", "", ""], "lost each other"),
    ],
)
def test_the_process_at_fault_is_named(codes, texts, words):
    with pytest.raises(RunError, match=words):
        judge_exits(codes, texts)


def test_a_process_that_hangs_is_named_unless_another_one_ended():
    with pytest.raises(RunError, match=r"process 2 of 3 .*did not answer the others within"):
        judge_exits([LOST, LOST, -9], ["", "", ""], stuck=[2])
    with pytest.raises(RunError, match=r"process 1 of 3 .*ended by SIGKILL"):
        judge_exits([LOST, -9, -9], ["", "", ""], stuck=[2])


@pytest.mark.parametrize(
    ("codes", "stuck", "words"),
    [
        ([-9, 0], [], "process 0 of 2 gave no answer: it was ended by SIGKILL"),
        ([0, -9], [], "process 1 of 2 gave no answer: it was ended by SIGKILL"),
        ([0, -9], [1], "process 1 of 2 gave no answer: it did not answer the others within"),
        ([-9, 1, -9], [0, 2], "process 1 of 3 gave no answer: .*exit code 1"),
    ],
)
def test_a_process_that_gives_no_answer_is_named(codes, stuck, words):
    with pytest.raises(RunError, match=words):
        check_answers(codes, stuck)


def test_processes_that_all_ended_well_have_answered():
    check_answers([0, 0, 0], [])


CHILD = """
import os, sys
from pathlib import Path
from seedless.core import local_group
folder = Path(sys.argv[1]) / "seedless-1"
folder.mkdir()
(folder / "process-1").touch()
os.environ[local_group.MEETING_FILE] = str(folder / "meeting")
reading, writing = os.pipe()
if os.fork() == 0:  # a member of the group, whose standard input is the pipe
    os.close(writing)
    os.dup2(reading, 0)
    local_group.end_with_parent()
    (Path(sys.argv[1]) / "member").write_text(str(os.getpid()))
    import time
    time.sleep(600)
until = Path(sys.argv[1]) / "member"
while not until.exists():
    pass
os._exit(9)  # as if killed: nothing is cleaned up
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_folder_of_a_launcher_that_was_killed_is_removed_by_its_processes(tmp_path):
    subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], timeout=100)
    until = time.monotonic() + 60
    while (tmp_path / "seedless-1").exists():
        assert time.monotonic() < until, "the folder stays"
        time.sleep(0.05)


class Ended:
    """A process that has ended with a code."""

    stdin = io.BytesIO()

    def __init__(self, code):
        self.returncode = code

    def poll(self):
        return self.returncode

    def wait(self):
        return self.returncode

    def kill(self):
        pass

    def send_signal(self, number):
        pass


@pytest.mark.parametrize(
    ("codes", "ends"),
    [
        ([-signal.SIGINT, 130], KeyboardInterrupt),  # before the first could handle it
        ([-signal.SIGINT, -signal.SIGINT], KeyboardInterrupt),
        ([0, -signal.SIGINT], 0),  # after the run was finished
        ([130, -signal.SIGINT], 130),  # the first has said so
    ],
)
def test_ctrl_c_is_no_failure_of_a_process(monkeypatch, codes, ends):
    """Ctrl-C while the processes start or end must not read as if one was killed."""
    started = iter(codes)

    def start(*_):
        os.kill(os.getpid(), signal.SIGINT)
        return Ended(next(started))

    monkeypatch.setattr(local_group, "_start", start)
    if ends is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            local_group.run_processes(["train"], len(codes))
    else:
        assert local_group.run_processes(["train"], len(codes)) == ends
