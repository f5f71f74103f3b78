"""Run a user's command, unchanged, with the recorder in the processes of Python that it starts.

The recorder enters through two variables of the environment: PYTHONPATH, with the one folder that
holds our sitecustomize.py, and SEEDLESS_RECORDER, the file that says what to record. What the
command prints goes to files. When it has ended, or is ended, nothing that it started is left.
"""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from seedless.core.errors import RunError
from seedless.numerics.determinism import list_user_environment
from seedless.script_recorder.settings import (
    SETTINGS_VARIABLE,
    Settings,
    make_environment,
    write_settings,
)

OUT_WORD = "{out}"  # in a command: a fresh folder for each run
POLL_SECONDS = 0.02
SECONDS_TO_END = 5.0  # that a process has between SIGTERM and SIGKILL


@dataclass(frozen=True)
class Execution:
    """One run of the command.

    Attributes:
        folder: holds "records", "stdout.txt", "stderr.txt" and "out".
        exit_code: negative for a command that a signal ended.
        seconds: from its start to its end.
        timed_out: it was ended because its time was up.
        started_ns: when it was started, as files are dated; 0 if that is not known.
    """

    folder: Path
    exit_code: int
    seconds: float
    timed_out: bool = False
    started_ns: int = 0

    @property
    def records(self) -> Path:
        """The folder of its records."""
        return self.folder / "records"

    def read_last_lines(self, count: int = 5, name: str = "stderr.txt") -> list[str]:
        """Return the last lines that the command printed, of which no more than 8 KiB are read."""
        with (self.folder / name).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
            text = file.read(8192).decode("utf-8", "replace")
        return [line for line in text.splitlines() if line.strip()][-count:]


def execute(
    command: Sequence[str],
    folder: Path,
    settings: Settings,
    *,
    variables: Mapping[str, str | None] | None = None,
    timeout: float | None = None,
    cwd: Path | None = None,
    out: Path | None = None,
) -> Execution:
    """Run a command to its end, and return how it ended.

    Args:
        command: the program and its arguments, in which "{out}" becomes an empty folder.
        folder: a folder to make, for records and output.
        settings: what the recorder does; its folder is set here.
        variables: changes to the environment; None removes a variable.
        timeout: seconds after which the command is ended.
        cwd: where it runs; the current folder by default.
        out: the folder that "{out}" becomes, where it is not to be a new one.
    """
    # [Step 1] Make the folders, and the file that the recorder reads.
    folder = folder.absolute()
    for name in ("records", "out"):
        (folder / name).mkdir(parents=True)
    settings_file = folder / "settings.json"
    write_settings(replace(settings, folder=str(folder / "records")), str(settings_file))
    # [Step 2] Start the command in a session of its own, so that all of it can be ended.
    line = [word.replace(OUT_WORD, str(out or folder / "out")) for word in command]
    changed = {**list_user_environment(), **(variables or {})}
    kept = {name: value for name, value in changed.items() if value is not None}
    environment = make_environment(str(settings_file), kept)
    began, started_ns = time.monotonic(), time.time_ns()
    timed_out = False
    with (folder / "stdout.txt").open("wb") as text, (folder / "stderr.txt").open("wb") as errors:
        try:
            process = subprocess.Popen(
                line,
                env=environment,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=text,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise RunError(f"cannot start {command[0]}: {error.strerror}") from None
        # [Step 3] Wait for it, and end what is left of it: also after Ctrl-C and SIGTERM.
        try:
            with _exit_on_sigterm():
                process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            _end_all(process, str(settings_file))
    seconds = time.monotonic() - began
    return Execution(folder, process.returncode, seconds, timed_out, started_ns)


def find_program(command: Sequence[str]) -> str:
    """Return the path of the program that a command runs, or raise an error."""
    if not command:
        raise RunError("expected a command after --, as in: seedless doctor -- python train.py")
    program = shutil.which(command[0])
    if program is None:
        raise RunError(f"there is no program {command[0]!r}; give the command as in a shell")
    return program


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Leave the block by SystemExit when this process is to end, so that its children end too."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)  # as a shell reports a program that a signal ended

    if threading.current_thread() is not threading.main_thread():  # no signal arrives elsewhere
        yield
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end_all(process: subprocess.Popen[bytes], mark: str) -> None:
    """End a process and everything that it started, at first politely, then by force."""
    if process.poll() is None or _list_marked(mark):
        _signal_all(process, mark, signal.SIGTERM)
        end = time.monotonic() + SECONDS_TO_END
        while (process.poll() is None or _list_marked(mark)) and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
    _signal_all(process, mark, signal.SIGKILL)
    process.wait()


def _signal_all(process: subprocess.Popen[bytes], mark: str, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
    for pid in _list_marked(mark):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _list_marked(mark: str) -> list[int]:
    """Return the processes whose environment names a file of settings.

    Programs that start workers in sessions of their own, as torchrun does, leave the group of their
    parent. Where there is no /proc, only the group is known.
    """
    found = []
    wanted = f"{SETTINGS_VARIABLE}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_dead = b") Z " in (folder / "stat").read_bytes()
            if not is_dead and wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found
