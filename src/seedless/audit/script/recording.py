"""Run a script once, unchanged, and write what was recorded as a run folder with a receipt."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from seedless.audit.doctor.command import OUT_WORD, Execution, execute, find_program
from seedless.audit.doctor.pair import Run
from seedless.audit.doctor.recorded_run import RecordedRun, read_run
from seedless.audit.doctor.run_outcome import explain_missing_steps
from seedless.audit.script.command_line import describe_command
from seedless.audit.script.observation import (
    describe_environment,
    describe_outputs,
    list_data,
    list_sources,
    list_steps,
    list_unobserved,
)
from seedless.audit.script.working_folder import find_written, list_files
from seedless.core.bounded_reading import shorten
from seedless.core.display import escape_text
from seedless.core.errors import RunError
from seedless.core.files import AnyPath
from seedless.core.processes import describe_exit
from seedless.proof.script_claims import is_inner_path
from seedless.runs.script_seal import seal_script
from seedless.script_recorder.settings import Settings

FOLLOW_SECONDS = 0.1
MAX_OUTPUTS = 20_000  # so that the receipt is not larger than what is read of one


def record_script(
    command: Sequence[str],
    out: AnyPath,
    *,
    outputs: Sequence[AnyPath] = (),
    show: tuple[IO[bytes], IO[bytes]] | None = None,
) -> dict[str, Any]:
    """Run a command in the current folder, and write its run folder; return the receipt.

    A command that fails, or that makes no training step, leaves no run folder.

    Args:
        command: the program and its arguments, as in a shell.
        out: the run folder, which must not exist.
        outputs: the files that the receipt is about, or folders of them, as far as they exist at
            the end; by default all that the command writes in the current folder.
        show: where what it prints to standard output and standard error goes; None for nowhere.

    Example:
        >>> record_script(["python", "train.py"], "runs/mine")["predicate"]["trail"]
    """
    # [Step 1] Refuse what could not be written at the end, before anything is executed.
    folder, run = Path.cwd().resolve(), Path(out).absolute()
    program = find_program(command)
    if any(OUT_WORD in word for word in command):
        raise RunError(f"{OUT_WORD} in a command is for `seedless doctor`: name a folder here")
    check_new_folder(run)
    named = [name_output(output, folder) for output in outputs]
    before = {} if named else list_files(folder, [run])
    # [Step 2] Execute it, and read what was recorded.
    with TemporaryDirectory(prefix="seedless-run-") as place:
        began_ns = time.time_ns()
        executed = execute_shown(command, Path(place) / "run", folder, show=show)
        recorded = read_run(executed.records)
        check_success(command, executed, recorded)
        # [Step 3] Describe it, and seal it.
        written = find_named(named, folder)
        if not named:
            written = find_written(before, list_files(folder, [run]))
        if len(written) > MAX_OUTPUTS:
            raise RunError(
                f"no receipt was written: it would list {len(written):,} outputs, of at most "
                f"{MAX_OUTPUTS:,}; name those that matter with --output"
            )
        sources = list_sources(recorded, folder)
        data, changed = list_data(recorded, folder, {*sources, program}, began_ns)
        script = {
            "command": describe_command(command, folder),
            "exit_code": executed.exit_code,
            "sources": sources,
            "changed": changed,
            "unobserved": list_unobserved(recorded),
            "outputs": describe_outputs(written, folder),
            "outputs_named": bool(named),
        }
        environment = describe_environment(recorded.training[0])
        return seal_script(run, script, environment, list_steps(recorded), data)


def check_new_folder(run: Path) -> None:
    """Refuse a run folder that exists, or that cannot be made."""
    if os.path.lexists(run):
        raise RunError(f"{run} is there already; choose another folder with --out")
    parent = next(parent for parent in run.parents if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise RunError(f"cannot write {run}: {parent} is not a folder this user may write to")


def name_output(output: AnyPath, folder: Path) -> str:
    """Return the path of an output in the working folder; refuse one outside of it."""
    name = os.path.relpath(os.path.abspath(output), folder)
    if not is_inner_path(name):
        raise RunError(
            f"the output {output} is not in the current folder {folder}, or its name cannot be "
            "printed: let the script write it here, so that another run writes it elsewhere"
        )
    return name


def find_named(names: Sequence[str], folder: Path) -> list[str]:
    """Return the outputs that were named and exist, sorted; all files of a folder that was named.

    A name that nothing was written under gives nothing: a run of many hours keeps its receipt.
    """
    found = {name for name in names if (folder / name).is_file()}
    for name in names:
        if (folder / name).is_dir():
            found |= {f"{name}/{inner}" for inner in list_files(folder / name)}
    return sorted(found)


def execute_shown(
    command: Sequence[str],
    place: Path,
    folder: Path,
    *,
    show: tuple[IO[bytes], IO[bytes]] | None = None,
    variables: dict[str, str | None] | None = None,
) -> Execution:
    """Execute a command in a folder under the recorder; pass on what it prints, if asked for."""
    files = [place / "stdout.txt", place / "stderr.txt"]
    with _follow(dict(zip(files, show, strict=True)) if show else {}):
        settings = Settings(folder="")  # `execute` names it
        return execute(command, place, settings, variables=variables, cwd=folder)


def check_success(command: Sequence[str], executed: Execution, recorded: RecordedRun) -> None:
    """Raise an error for a command that failed, or of which no step was recorded to its end."""
    if executed.exit_code != 0:
        lines = [shorten(escape_text(line)) for line in executed.read_last_lines()]
        said = "\n".join(["The last lines of its standard error:", *lines]) if lines else ""
        raise RunError(f"no receipt was written: {describe_exit(executed.exit_code)}. {said}")
    if not recorded.training:
        raise RunError(explain_missing_steps(Run(executed, recorded), command))
    for process in recorded.training:
        if process.errors:
            raise RunError(f"no receipt was written: the recorder failed: {process.errors[0]}")
        if process.end is None or process.end.error is not None:
            raise RunError(
                f"no receipt was written: process {process.start.rank} was ended before its end "
                f"was recorded, after step {process.steps[-1].step}"
            )


@contextmanager
def _follow(files: Mapping[Path, IO[bytes]]) -> Iterator[None]:
    """Copy what is written to files to the streams that they are for, until the block is left."""
    stop = threading.Event()
    thread = threading.Thread(target=_copy_until, args=(files, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _copy_until(files: Mapping[Path, IO[bytes]], stop: threading.Event) -> None:
    opened: dict[Path, IO[bytes]] = {}
    last = not files
    while True:
        for path, stream in files.items():
            if path not in opened and path.exists():
                opened[path] = path.open("rb")
            if path in opened and (content := opened[path].read()):
                stream.write(content)
                stream.flush()
        if last:
            break
        last = stop.wait(FOLLOW_SECONDS)
    for file in opened.values():
        file.close()
