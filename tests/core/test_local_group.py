"""Which process of a group is to blame, by how all of them ended."""

import pytest

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
