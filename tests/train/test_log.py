"""The log: one line for each epoch, with seconds that no clock can make negative."""

import json

import pytest

from seedless.core.errors import RunError
from seedless.train.log import LOG_FILE, LogWriter, read_log
from seedless.train.loop import train
from tests.train.problems import make_problem


def test_a_line_for_each_epoch_is_read_back(tmp_path):
    train(make_problem(), (LogWriter(tmp_path),))
    lines = read_log(tmp_path / LOG_FILE)
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert all(line["seconds"] >= 0 for line in lines)


def test_a_clock_that_runs_backwards_writes_no_negative_seconds(tmp_path, monkeypatch):
    times = iter(range(1000, 0, -1))
    monkeypatch.setattr("seedless.train.log.time.perf_counter", lambda: float(next(times)))
    train(make_problem(), (LogWriter(tmp_path),))
    assert [line["seconds"] for line in read_log(tmp_path / LOG_FILE)] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("seconds", ["soon", None, True, [1.0]])
def test_seconds_that_are_no_number_are_refused(tmp_path, seconds):
    train(make_problem(), (LogWriter(tmp_path),))
    line = {**read_log(tmp_path / LOG_FILE)[0], "seconds": seconds}
    (tmp_path / LOG_FILE).write_text(json.dumps(line) + "\n")
    with pytest.raises(RunError, match="the seconds of line 1 are not a number"):
        read_log(tmp_path / LOG_FILE)


def test_an_incomplete_last_line_is_ignored_or_refused(tmp_path):
    """A killed process leaves one; a finished run has none."""
    train(make_problem(), (LogWriter(tmp_path),))
    path = tmp_path / LOG_FILE
    assert len(read_log(path, allow_incomplete=False)) == 3
    path.write_bytes(path.read_bytes() + b'{"epoch":4')
    assert len(read_log(path)) == 3
    with pytest.raises(RunError, match="line 4 is incomplete, and the run is finished"):
        read_log(path, allow_incomplete=False)
