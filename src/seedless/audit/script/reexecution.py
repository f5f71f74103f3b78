"""Execute the command of a script's run again, in a scratch folder, and compare.

    execute_script: plan -> prepare the scratch folder -> show -> execute -> compare

Nothing comes from the run folder but digests and arguments: the sources and the data are the
verifier's own files, and each must have the digest that the receipt names before anything is
executed.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from seedless.audit.script.command_line import plan_execution, show_command
from seedless.audit.script.comparison import compare
from seedless.audit.script.recording import execute_shown
from seedless.audit.verdict import Verdict
from seedless.core.bounded_reading import open_plain_file
from seedless.core.display import count_things, escape_text
from seedless.core.errors import ConfigError
from seedless.core.files import hash_file
from seedless.numerics.environment import VARIABLES
from seedless.proof.script_claims import is_inner_path
from seedless.runs.script_run import ScriptRun

# Files up to this size are copied into the scratch folder; a larger one is linked.
MAX_COPIED_BYTES = 64 * 2**20
# Not taken from a receipt: which of the devices of a machine are used is the verifier's choice.
_OWN_VARIABLES = ("CUDA_VISIBLE_DEVICES",)

Show = Callable[[str], None]


@dataclass(frozen=True)
class ExecutionRequest:
    """What the verifier chose for executing a script again.

    Attributes:
        sources: the folder that holds the script, as its working folder did.
        python: the interpreter.
    """

    sources: Path
    python: str


def choose_execution(
    run: Path, sources: str | os.PathLike[str] | None, python: str | None
) -> ExecutionRequest:
    """Return the folder and the interpreter to execute with; by default the current ones."""
    folder = Path.cwd() if sources is None else Path(sources)
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r} to take the script from")
    program = sys.executable if python is None else shutil.which(python)
    if program is None:
        raise ConfigError(f"there is no program {python!r} to execute the script with")
    inside = Path(run).resolve()
    for place in (folder.resolve(), Path(program).absolute(), Path(program).resolve()):
        if place.is_relative_to(inside):
            raise ConfigError(f"{place} is in the run folder, and nothing in it is executed")
    return ExecutionRequest(folder.resolve(), os.path.abspath(program))


def execute_script(run: ScriptRun, request: ExecutionRequest, show: Show) -> Verdict:
    """Execute the command of a run again and return the verdict.

    Args:
        run: consistent with its receipt.
        request: the verifier's own folder and interpreter.
        show: is called with each line that says what will be executed, before it is.
    """
    # [Step 1] What would be executed; nothing else may be.
    script = run.script
    command, main = plan_execution(script, [file["path"] for file in run.data], request.python)
    if script["changed"]:
        names = ", ".join(script["changed"])
        return Verdict(
            "cannot judge", f"it read files and then changed them, so it has no repeat: {names}"
        )
    with TemporaryDirectory(prefix="seedless-script-") as place:
        # [Step 2] A folder with the same sources and data, each with its digest.
        scratch = Path(place) / "work"
        prepare_folder(run, request.sources, scratch)
        for line in describe_plan(run, command, main, request):
            show(line)
        # [Step 3] Execute it, with the variables that change bits as they were.
        temporary = Path(place) / "tmp"
        temporary.mkdir()
        variables = {**choose_variables(run), "TMPDIR": str(temporary)}
        began = time.perf_counter()
        executed = execute_shown(command, Path(place) / "run", scratch, variables=variables)
        seconds = round(time.perf_counter() - began, 1)
        verdict = compare(run, command, executed, scratch)
    return Verdict(**{**vars(verdict), "seconds": seconds})


def choose_variables(run: ScriptRun) -> dict[str, str | None]:
    """Return the variables that change bits as the run had them; None removes one."""
    recorded = run.claims["environment"]["variables"]
    return {name: recorded.get(name) for name in VARIABLES if name not in _OWN_VARIABLES}


def prepare_folder(run: ScriptRun, sources: Path, scratch: Path) -> None:
    """Make a folder with the files that a script needs; each must have its recorded digest."""
    scratch.mkdir()
    wanted = [(name, digest, "source") for name, digest in run.script["sources"].items()]
    wanted += [(file["path"], file["digest"], "data") for file in run.data]
    sizes = {file["path"]: file["size"] for file in run.data}
    for name, digest, kind in wanted:
        place = sources / name  # an absolute path stays what it is
        _check_file(place, digest, sizes.get(name), f"{run.path} needs the {kind} {name!r}")
        if not is_inner_path(name):
            continue
        copy = scratch / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if kind == "data" and place.stat().st_size > MAX_COPIED_BYTES:
            copy.symlink_to(place.resolve())
        else:
            shutil.copyfile(place, copy)
            if hash_file(copy) != digest:
                raise ConfigError(f"{place} was changed while it was copied; try again")
    for name in run.script["outputs"]:  # a script may expect the folders to be there
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)


def _check_file(path: Path, digest: str, size: int | None, needs: str) -> None:
    """Refuse a file that is missing, no plain file, or not the one that the receipt names."""
    try:
        with open_plain_file(path, follow_links=True, error=ConfigError) as file:
            found = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise ConfigError(
            f"{needs}, and {path} cannot be read: {error.strerror}; name the folder that holds the "
            "script with --sources"
        ) from None
    if size is not None and found != size:
        raise ConfigError(f"{needs} with {size:,} bytes, and {path} has {found:,}")
    if (here := hash_file(path)) != digest:
        raise ConfigError(
            f"{needs} with {digest}, and {path} has {here}: it is another version of the file"
        )


def describe_plan(
    run: ScriptRun, command: Sequence[str], main: str, request: ExecutionRequest
) -> list[str]:
    """Return what will be executed, line by line, before it is."""
    script, variables = run.script, run.claims["environment"]["variables"]
    given = " ".join(f"{name}={variables[name]}" for name in sorted(variables)) or "none"
    return [
        "executing a script, with your rights, in a scratch folder:",
        f"  command    {show_command(command)}",
        f"  main file  {request.sources / main}",
        f"  sources    {count_things(len(script['sources']), 'file')}, as the receipt has them",
        f"  data       {count_things(len(run.data), 'file')}, as the receipt has them",
        f"  variables  {given}",
    ]


def show_on_standard_error(line: str) -> None:
    """Print a line in which values of someone else's cannot move the cursor or end it."""
    with suppress(OSError):
        sys.stderr.write(f"{escape_text(line)}\n")
        sys.stderr.flush()
