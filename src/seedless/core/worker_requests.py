"""One request to a worker process and its answer, both plain JSON values.

`ask_worker` starts a module of this package, sends it the request and returns its answer.
`answer_request` is the worker's side.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from seedless.core.errors import RunError, SeedlessError
from seedless.core.processes import Variables, build_command, build_environment, describe_exit


def ask_worker(
    module: str,
    request: Any,
    variables: Variables | None = None,
    untrusted: Sequence[Path] = (),
) -> Any:
    """Send a request to a module that calls `answer_request`; return its answer.

    ``variables`` and ``untrusted`` are as for `build_environment`. Request and answer are plain
    JSON values, and travel through pipes that no other process can write to. What the worker prints
    appears on standard error. An error that it answers with is raised here.
    """
    process = subprocess.Popen(
        build_command(module),
        env=build_environment(variables, untrusted=untrusted),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        send_request(process, request)
        # One line, not up to the end of the stream: a process that the worker forked may hold the
        # other end of the pipe open.
        line = process.stdout.readline()
        process.wait()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
    return read_answer(line, process.returncode)


def send_request(process: subprocess.Popen[bytes], request: Any) -> None:
    """Write a request to a worker that calls `answer_request`."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it ended before it read everything: no answer will come
        process.stdin.write(json.dumps(request).encode())
    with suppress(BrokenPipeError):
        process.stdin.close()


def read_answer(line: bytes, exit_code: int) -> Any:
    """Return a worker's answer; raise the error that it answers with, or that it gave none."""
    if not line.endswith(b"\n"):
        raise RunError(
            f"the process that executes the run gave no answer: {describe_exit(exit_code)}"
        )
    kind, value = json.loads(line)
    if kind == "error":
        raise RunError(value)
    return value


def answer_request(answer: Callable[[Any], Any]) -> None:
    """Read one request from `ask_worker` and send back what ``answer`` returns for it."""
    # [Step 1] Ctrl-C reaches this process too. The one that asked reports it; this one just ends.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # [Step 2] Keep the pipe to ourselves: from here on, what any code prints goes to standard
    # error, so that a user's `print` cannot be taken for the answer.
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # [Step 3] Answer on one line. Only refusals are sent as errors; anything else is a defect, and
    # its traceback on standard error says more than a message.
    request = json.loads(sys.stdin.buffer.read())
    try:
        reply = ("value", answer(request))
    except SeedlessError as error:
        reply = ("error", str(error))
    with pipe:
        pipe.write(json.dumps(reply) + "\n")
