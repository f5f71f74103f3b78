"""A command that answers a referee: read in bounded time and size, whatever it writes."""

import json
import sys

import pytest

from seedless.audit.dispute.party_process import PartyError, PartyProcess

REQUEST = {"ask": "steps"}


def start(text, seconds=20.0):
    """Start a program that may read the requests as ``lines``."""
    program = "import json, sys, time\nlines = iter(sys.stdin.readline, '')\n" + text
    return PartyProcess([sys.executable, "-c", program], seconds=seconds)


def test_answers_follow_requests_and_bytes_are_counted():
    echo = "for n, line in enumerate(lines): print(json.dumps({'steps': [n, line]}), flush=True)"
    with start(echo) as party:
        sent = json.dumps(REQUEST) + "\n"
        assert party.ask(REQUEST) == [0, sent]
        first = party.exchanged
        assert party.ask(REQUEST) == [1, sent]
        assert first == len(sent) + len(json.dumps({"steps": [0, sent]}))
        assert party.exchanged == 2 * first


def test_answers_that_come_together_are_read_one_by_one():
    both = 'next(lines); print(\'{"steps": 1}\\n{"steps": 2}\', flush=True); next(lines)'
    with start(both) as party:
        assert [party.ask(REQUEST), party.ask(REQUEST)] == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ended without an answer"),
        ("next(lines); print('{\"steps\"', end='', flush=True)", "ended without an answer"),
        ("print('no json', flush=True); next(lines)", "its answer is not valid JSON"),
        ("print('[' * 5000, flush=True); next(lines)", "nested 5,000 deep"),
        ("print('[]', flush=True); next(lines)", "expected an answer with one name"),
        ("print('{\"state\": 1}', flush=True); next(lines)", "expected an answer to 'steps'"),
        ('print(\'{"error": "no"}\', flush=True); next(lines)', "it answers: no"),
        ("print('{\"steps\": NaN}', flush=True); next(lines)", "not valid JSON"),
    ],
)
def test_what_is_no_answer_is_an_error(text, message):
    with start(text) as party, pytest.raises(PartyError, match=message):
        party.ask(REQUEST)


def test_an_endless_answer_is_not_read_to_its_end():
    endless = "sys.stdout.write('[')\nwhile True: sys.stdout.write('1,' * 100_000)"
    with start(endless) as party, pytest.raises(PartyError, match="more than 1,000,000 bytes"):
        party.ask(REQUEST, max_bytes=1_000_000)


def test_a_late_answer_is_not_waited_for():
    late = start("time.sleep(100)", seconds=0.2)
    with late as party, pytest.raises(PartyError, match=r"no answer within 0\.2 seconds"):
        party.ask(REQUEST)
    assert late._process.poll() is not None  # it does not live on


def test_a_command_that_does_not_exist_is_an_error():
    with pytest.raises(PartyError, match="cannot be started"):
        PartyProcess(["/nowhere/at/all"])
