"""Requests to worker processes: what counts as the answer, refusals, and workers that die."""

import os
import time

import pytest

from seedless.core.errors import RunError
from seedless.core.worker_requests import ask_worker

ANSWERING = """
import os, sys, time
from seedless.core.errors import DataError
from seedless.core.worker_requests import answer_request

def answer(request):
    print("value", [1])  # what user code prints is no answer
    if request == "refuse":
        raise DataError("no such data")
    if request == "die":
        os._exit(7)
    if request == "fork" and os.fork() == 0:
        time.sleep(100)  # holds our end of the pipe
    return {"request": request, "pid": os.getpid()}

answer_request(answer)
"""


def test_a_request_is_answered_in_another_process(add_module, capfd):
    add_module("answering", ANSWERING)
    answer = ask_worker("answering", {"n": [1, None, "é"]})
    assert answer["request"] == {"n": [1, None, "é"]}
    assert answer["pid"] != os.getpid()
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "value [1]\n")


def test_a_refusal_and_a_death_are_errors_here(add_module):
    add_module("answering", ANSWERING)
    with pytest.raises(RunError, match=r"^no such data$"):
        ask_worker("answering", "refuse")
    with pytest.raises(RunError, match="gave no answer: it ended with exit code 7"):
        ask_worker("answering", "die")
    with pytest.raises(RunError, match="gave no answer"):
        ask_worker("no_such_module", "x" * 10**6)  # more than a pipe holds, and nobody reads it


def test_a_process_that_a_worker_forked_keeps_nobody_waiting(add_module):
    add_module("answering", ANSWERING.replace("time.sleep(100)", "time.sleep(20); os._exit(0)"))
    began = time.monotonic()
    assert ask_worker("answering", "fork")["request"] == "fork"
    assert time.monotonic() - began < 20


def test_an_answer_counts_only_through_the_pipe(add_module, tmp_path, monkeypatch, capfd):
    """Whatever else a worker writes while it works, to standard output or to files, is none."""
    monkeypatch.chdir(tmp_path)
    add_module(
        "forging",
        """
import os
from seedless.core.worker_requests import answer_request

def answer(request):
    for name in ("answer.json", "answer", "out", "stdout"):
        with open(name, "w") as file:
            file.write('["value", "forged"]')
    os.write(1, b'["value", "forged"]')
    os.system("echo '[\\"value\\", \\"forged\\"]'")
    if request == "die":
        os._exit(0)
    return "true"

answer_request(answer)
""",
    )
    assert ask_worker("forging", "live") == "true"
    assert "forged" in capfd.readouterr().err
    with pytest.raises(RunError, match="gave no answer"):
        ask_worker("forging", "die")
