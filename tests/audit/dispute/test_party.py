"""A run that answers a referee: what it is asked in the right form, and nothing else."""

import io
import json

import pytest

from benchmarks.faulty_party import STEPS_PER_EPOCH, Fault, answer_with, make_faulty_run
from seedless.audit.dispute.party import SCHEMA, serve_requests
from tests.tiny import flags_restored

HONEST = Fault("none", 0)


@pytest.fixture(scope="module")
def answering(tmp_path_factory):
    with flags_restored():
        run = make_faulty_run(HONEST, tmp_path_factory.mktemp("party") / "run")
        yield answer_with(run, HONEST)


def ask(answering, *lines):
    """Return the answer to each line, a request or any bytes."""
    sent = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    answers = io.BytesIO()
    serve_requests(answering, io.BytesIO(b"".join(line + b"\n" for line in sent)), answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def make_request(answering, **changes):
    run = answering.run.claims["digest"]
    return {"schema": SCHEMA, "ask": "steps", "run": run, "epoch": 2, "start": 1, **changes}


def test_requests_are_answered_one_by_one(answering):
    record = make_request(answering, ask="record", step=6)
    steps, record = ask(answering, make_request(answering), record)
    assert len(steps["steps"]) == STEPS_PER_EPOCH
    assert (record["record"]["step"], record["record"]["batch"]) == (6, 2)


def test_from_another_checkpoint_the_answers_are_the_same(answering):
    requests = [make_request(answering, start=start) for start in (0, 1)]
    first, second = ask(answering, *requests)
    assert first == second
    states = [make_request(answering, ask="state", step=6, start=start) for start in (0, 1)]
    first, second = ask(answering, *states)
    assert first == second


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ask": "weights"}, "expected a request of seedless.referee/1 for steps, record"),
        ({"schema": "seedless.referee/2"}, "expected a request of seedless.referee/1"),
        ({"run": "sha256:" + 64 * "0"}, "the request is about another run"),
        ({"ask": "record", "step": 99}, "epoch 2 has no step 99"),
        ({"ask": "record"}, "does not have the form of one"),
        ({"ask": "operation", "step": 6, "index": 10**6}, "does not have the form of one"),
        ({"ask": ["steps"]}, "does not have the form of one"),
        ({"start": 7, "epoch": 9}, "cannot be read as a checkpoint"),
        ({"ask": "state", "step": 2}, "step 2 is not after epoch 1"),
    ],
)
def test_another_request_gets_an_error_and_the_next_one_an_answer(answering, changes, message):
    bad, good = ask(answering, make_request(answering, **changes), make_request(answering))
    assert message in bad["error"]
    assert "steps" in good


@pytest.mark.parametrize("line", [b"no json", b"[]", b"1", b"[" * 5000, b'{"ask": NaN}'])
def test_what_is_no_request_gets_an_error(answering, line):
    bad, good = ask(answering, line, make_request(answering))
    assert {*bad} == {"error"}
    assert "steps" in good
