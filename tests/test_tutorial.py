"""The tutorial about runs that differ: its changes apply, and its script comes to repeat."""

import re

import pytest

from benchmarks import tutorial

STEPS = list(tutorial.read_steps(tutorial.PAGE.read_text(encoding="utf-8")))


def test_each_change_removes_one_cause():
    answers = [re.search(r"\[([\w-]+),|^(IDENTICAL):", step.output, re.M) for step in STEPS]
    assert [answer and (answer[1] or answer[2]) for answer in answers] == [
        "unseeded-weights",
        "unseeded-shuffle",
        "worker-draws",
        "hash-order",
        "IDENTICAL",
        "threads",
        "IDENTICAL",
    ]


def test_the_script_repeats_in_the_end(tmp_path):
    last = STEPS[-1]
    assert tutorial.run_step(last, tmp_path / "last") == last.output


def test_a_change_must_fit_the_script():
    assert tutorial.apply_change("a\nb\n", " a\n-b\n+c\n") == "a\nc\n"
    with pytest.raises(ValueError, match="0 times, not once"):
        tutorial.apply_change("a\nb\n", "-x\n+c\n")
