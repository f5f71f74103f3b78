"""Clocks, entropy and the order of results: possible causes, until an experiment shows them."""

from pathlib import Path

import pytest

from seedless.audit.doctor.outside_rules import judge_outside_values
from seedless.audit.doctor.recorded_run import read_run
from tests.audit.doctor.records import make_case, make_end, make_process, make_step, write_process

SOURCE = """import time
start = time.time()
print(time.time() - start)
if time.time() - start > 3:
    stop()
"""


def read_clock(line, **values):
    call = {"kind": "outside", "source": "clock", "call": "time.time", "count": 1}
    return {**call, "line": f"train.py:{line}", **values}


@pytest.fixture
def judge(tmp_path):
    """Return a function that gives the causes for runs with the given lines before step 2."""

    def judge(*lines, after=(), origins=()):
        (tmp_path / "train.py").write_text(SOURCE)
        runs = []
        for name in ("one", "two"):
            steps = [make_step(1), *lines, make_step(2, input=name), *after, make_end(2)]
            write_process(tmp_path / name, [make_process(cwd=str(tmp_path)), *steps])
            runs.append(read_run(Path(tmp_path / name)))
        return list(judge_outside_values(make_case(*runs), origins))

    return judge


def test_the_line_that_decides_something_is_named_and_not_the_one_that_prints(judge):
    (found,) = judge(read_clock(2), read_clock(3, count=9), read_clock(4))
    assert (found.cause, found.line, found.confidence) == ("clock", "train.py:4", "possible")
    assert found.experiment == "fixed-clock"
    assert "train.py:2, time.time at train.py:3" in found.evidence[0]


def test_a_line_that_the_value_comes_from_is_likely(judge):
    (found,) = judge(read_clock(2), read_clock(4), origins={"train.py:2"})
    assert (found.line, found.confidence) == ("train.py:2", "likely")


def test_each_source_is_a_cause_of_its_own(judge):
    entropy = read_clock(2, source="entropy", call="os.urandom")
    completion = read_clock(3, source="completion", call="as_completed")
    assert [one.cause for one in judge(entropy, completion)] == ["entropy", "completion-order"]


def test_what_is_read_after_the_difference_is_no_cause(judge):
    assert judge(after=[read_clock(4)]) == []
