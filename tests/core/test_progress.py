"""Progress: a bar on a terminal, plain lines seconds apart elsewhere, nothing on request."""

import io
import sys
import threading

import pytest

from seedless.core import progress as module
from seedless.core.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_lines_are_seconds_apart_and_estimate_the_rest(clock, capsys):
    with Progress("mine", 10, "files") as progress:
        progress.update(1)
        assert capsys.readouterr() == ("", "")
        clock.now += 5
        progress.update(2, "0.5 MB")
        assert capsys.readouterr() == ("", "mine: 2 of 10 files, 0.5 MB, 20 s left\n")
        clock.now += 4.9
        progress.update(3)
        assert capsys.readouterr() == ("", "")
    assert capsys.readouterr() == ("", "mine: 3 of 10 files in 10 s\n")


def test_a_resumed_task_is_estimated_by_what_was_done_since(clock, capsys):
    progress = Progress("mine", 10, "epochs", done=8.0)
    clock.now += 6
    progress.update(9.5)
    assert capsys.readouterr().err == "mine: 9.5 of 10 epochs, 2 s left\n"


def test_a_total_may_become_known_later(clock, capsys):
    progress = Progress("mine", unit="MB")
    clock.now += 5
    progress.update(1.26)
    progress.total = 2000.0
    progress.close()
    progress.close()  # once is enough
    assert capsys.readouterr().err == "mine: 1.3 MB\nmine: 1.3 of 2,000 MB in 5 s\n"


def test_nothing_is_shown_on_request_but_what_must_be_said(clock, capsys, monkeypatch):
    for stream in (sys.stderr, Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        with Progress("mine", 2, shown=False) as progress:
            clock.now += 60
            progress.update(1)
            progress.say("a checkpoint is damaged")
    assert stream.getvalue() == "mine: a checkpoint is damaged\n"
    assert capsys.readouterr().err == "mine: a checkpoint is damaged\n"


def test_a_bar_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress("mine", 4, "runs") as progress:
        progress.update(1, "1 failed")
        progress.say("beside the bar")
        progress.update(4, "1 failed")
    shown = terminal.getvalue()
    assert "mine: beside the bar\n" in shown
    assert "100%" in shown
    assert "4 of 4 runs, 1 failed" in shown


def test_a_task_in_which_nothing_happened_leaves_no_line(capsys):
    Progress("mine", 4).close()
    assert capsys.readouterr() == ("", "")


def test_lines_of_several_threads_are_whole(monkeypatch, capsys):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
    progress = Progress("mine", 1000, "files")
    threads = [
        threading.Thread(target=lambda: [progress.update(n) for n in range(50)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 200
    assert all(line.startswith("mine: ") and " of 1,000 files" in line for line in lines)
