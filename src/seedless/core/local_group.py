"""Start the processes of a group on this machine, watch them, and end all when one has failed.

The first process prints as usual. What the others print is kept, and shown only where one of them
is the reason that the group failed.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from seedless.core.errors import RunError
from seedless.core.processes import (
    MEETING_FILE,
    POLL_SECONDS,
    Variables,
    build_command,
    build_environment,
    describe_exit,
)
from seedless.core.worker_requests import read_answer, send_request

LOST = 75  # the exit code of a process that ends because another one did
GRACE_SECONDS = 20.0  # that the others have to end by themselves after one has failed
INTERFACE = "GLOO_SOCKET_IFNAME"  # the network interface that gloo uses
HUNG = "it did not answer the others within execution.timeout seconds"
_PARENT_SECONDS = 2.0  # in which a process that was killed is gone
_LAST_LINES = 5  # of a failed process that are shown


def run_processes(arguments: Sequence[str], count: int, *, quiet: bool = False) -> int:
    """Run a command in ``count`` processes that form a group; return the exit code of the first.

    Raises an error that names the process, if another one than the first failed by itself. With
    ``quiet`` the first process prints nothing either, and an error names it like the others.
    """
    with tempfile.TemporaryDirectory(prefix="seedless-") as folder:
        kept = range(0 if quiet else 1, count)
        logs = [(Path(folder) / f"process-{rank}").open("w+b") for rank in kept]
        outputs: list[IO[bytes] | None] = [*([] if quiet else [None]), *logs]
        variables = list_variables(count, Path(folder))
        command = build_command("seedless", arguments)
        processes: list[subprocess.Popen[bytes]] = []
        stuck: list[int] = []
        try:
            with _pass_interrupts_on(processes) as interrupts:
                for rank, log in enumerate(outputs):
                    processes.append(_start(command, {**variables, "RANK": str(rank)}, log))
                stuck = _wait(processes)
        finally:
            for process in processes:
                assert process.stdin is not None
                process.stdin.close()
                process.kill()  # does nothing to one that has ended
                process.wait()
            texts = ["" if log is None else _read(log) for log in outputs]
        codes = [process.returncode for process in processes]
    if interrupts and codes[0] in (0, -signal.SIGINT):
        # Ctrl-C came before the first process could stop after a step, or after its last one.
        if codes[0]:
            raise KeyboardInterrupt
        return 0
    return judge_exits(codes, texts, stuck, quiet=quiet)


def list_variables(count: int, folder: Path) -> dict[str, str]:
    """Return the variables that all processes of a group on this machine get."""
    variables = {"WORLD_SIZE": str(count), MEETING_FILE: str(folder / "meeting")}
    if sys.platform == "linux":  # let no other machine connect to them
        variables[INTERFACE] = os.environ.get(INTERFACE, "lo")
    return variables


def _start(
    command: Sequence[str], variables: Mapping[str, str], log: IO[bytes] | None
) -> subprocess.Popen[bytes]:
    # Its standard input closes when this process ends, however it ends: see `end_with_parent`. It
    # has a session of its own, so that Ctrl-C reaches it once, through this process.
    return subprocess.Popen(
        command,
        env=build_environment(variables),
        stdin=subprocess.PIPE,
        stdout=None if log is None else log,
        stderr=None if log is None else log,
        start_new_session=True,
    )


@contextmanager
def _pass_interrupts_on(processes: Sequence[subprocess.Popen[bytes]]) -> Iterator[list[int]]:
    """Let Ctrl-C reach the processes, which stop after a step, and not end this one.

    Yields the signals that were passed on so far.
    """
    passed: list[int] = []

    def send(number: int, frame: Any) -> None:
        passed.append(number)
        for process in processes:
            process.send_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, send)
    try:
        yield passed
    finally:
        signal.signal(signal.SIGINT, before)


def _wait(processes: Sequence[subprocess.Popen[bytes]], until: float | None = None) -> list[int]:
    """Wait until all have ended, at most ``until``, or until a while after one of them failed.

    Returns the numbers of those that still run.
    """
    while any(process.poll() is None for process in processes):
        if until is None and any(process.poll() for process in processes):
            until = time.monotonic() + GRACE_SECONDS
        if until is not None and time.monotonic() > until:
            break
        time.sleep(POLL_SECONDS)
    return [rank for rank, process in enumerate(processes) if process.poll() is None]


def ask_processes(
    module: str,
    request: Any,
    count: int,
    variables: Variables | None = None,
    untrusted: Sequence[Path] = (),
) -> Any:
    """Send a request to ``count`` processes that form a group; return the answer of the first.

    The arguments are those of `ask_worker`.
    """
    with tempfile.TemporaryDirectory(prefix="seedless-") as folder:
        meeting = list_variables(count, Path(folder))
        line, processes = b"", list[subprocess.Popen[bytes]]()
        stuck: list[int] = []
        try:
            for rank in range(count):
                own = {**(variables or {}), **meeting, "RANK": str(rank)}
                process = subprocess.Popen(
                    build_command(module),
                    env=build_environment(own, untrusted=untrusted),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                    stderr=None if rank == 0 else subprocess.DEVNULL,
                )
                processes.append(process)
                send_request(process, request)
            first = processes[0].stdout
            assert first is not None
            with first:
                line = first.readline()
            stuck = _wait(processes, time.monotonic() + GRACE_SECONDS)
        finally:
            for process in processes:
                process.kill()  # does nothing to one that has ended
                process.wait()
    codes = [process.returncode for process in processes]
    check_answers(codes, stuck)
    return read_answer(line, codes[0])


def check_answers(codes: Sequence[int], stuck: Sequence[int]) -> None:
    """Raise an error that names a process which ended, or had to be ended, without an answer."""
    ended = [rank for rank, code in enumerate(codes) if code and rank not in stuck]
    for rank in (*ended, *stuck):
        reason = HUNG if rank in stuck else describe_exit(codes[rank])
        raise RunError(f"process {rank} of {len(codes)} gave no answer: {reason}")


def judge_exits(
    codes: Sequence[int], texts: Sequence[str], stuck: Sequence[int] = (), *, quiet: bool = False
) -> int:
    """Return the exit code of the group; raise an error where its first process said nothing.

    Args:
        codes: the exit code of each process, negative for one that a signal ended.
        texts: what each process printed; "" for the first, which prints for all to see.
        stuck: those that had to be ended, a while after another one had failed.
        quiet: whether what the first process printed was kept too, and nobody has seen it.
    """
    # One that was killed or failed by itself explains the others, which lost it.
    killed = [rank for rank, code in enumerate(codes) if code < 0 and rank not in stuck]
    failed = [rank for rank, code in enumerate(codes) if code > 0 and code != LOST]
    if not any(codes) or (0 in failed and not quiet):
        return codes[0]
    if not killed and not failed and not stuck:
        raise RunError(f"the {len(codes)} processes lost each other")
    rank = (failed or killed or list(stuck))[0]
    lines = texts[rank].strip().splitlines()[-_LAST_LINES:]
    reason = " / ".join(lines).removeprefix("error: ")
    if rank in stuck:
        reason = HUNG
    elif codes[rank] < 0 or not reason:
        reason = describe_exit(codes[rank])
    raise RunError(
        f"process {rank} of {len(codes)} failed, and the others were ended; `seedless resume` "
        f"continues a run from its last checkpoint, on any number of processes. Process {rank}: "
        f"{reason}"
    )


def _read(log: IO[bytes]) -> str:
    with log:
        log.seek(0)
        return log.read().decode(errors="replace")


def is_local_member() -> bool:
    """Whether this process was started by `run_processes`."""
    return MEETING_FILE in os.environ


def end_with_parent() -> None:
    """End this process when the one that started it is gone, so that nothing is left behind."""
    parent, folder = os.getppid(), Path(os.environ[MEETING_FILE]).parent

    def watch() -> None:
        os.read(0, 1)  # returns when the other end of the pipe is closed
        # Where it was killed, it cannot remove the folder itself. It closes its files a moment
        # before it is gone; one that still runs ends this process now.
        until = time.monotonic() + _PARENT_SECONDS
        while os.getppid() == parent and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        if os.getppid() != parent:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(LOST)

    threading.Thread(target=watch, daemon=True).start()
