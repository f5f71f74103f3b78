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
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seedless.audit.doctor.command import Execution
from seedless.audit.doctor.recorded_run import RecordedRun, read_run
from seedless.audit.loop_comparison import LoopDifference, compare_loops
from seedless.audit.script.command_line import plan_execution, show_command
from seedless.audit.script.observation import describe_environment, describe_outputs, list_steps
from seedless.audit.script.recording import check_success, execute_shown
from seedless.audit.verdict import Verdict
from seedless.core.bounded_reading import open_plain_file
from seedless.core.display import escape_text
from seedless.core.errors import ConfigError, RunError
from seedless.core.files import hash_file
from seedless.core.mismatch import Mismatch, compare_values
from seedless.numerics.environment import VARIABLES
from seedless.proof.script_claims import is_inner_path
from seedless.proof.source_digest import describe_source
from seedless.runs.script_run import ScriptRun
from seedless.runs.script_seal import make_trail

# Files up to this size are copied into the scratch folder; a larger one is linked.
MAX_COPIED_BYTES = 64 * 2**20
# The parts of an environment that can change the bits of a script. Flags are set by the script.
DECISIVE = ("python", "machine", "packages", "cpu", "devices", "cuda", "threads")
# Not taken from a receipt: which of the devices of a machine are used is the verifier's choice.
_OWN_VARIABLES = ("CUDA_VISIBLE_DEVICES",)

OTHER_VERSION = (
    "it was recorded by another version of seedless: of each step the values that both versions "
    "record were compared, the weights among them"
)

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
        raise ConfigError(f"there is no folder {folder} to take the script from")
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
        recorded_variables = run.claims["environment"]["variables"]
        variables = {name: recorded_variables.get(name) for name in VARIABLES}
        for name in _OWN_VARIABLES:
            del variables[name]
        began = time.perf_counter()
        executed = execute_shown(command, Path(place) / "run", scratch, variables=variables)
        seconds = round(time.perf_counter() - began, 1)
        verdict = compare(run, command, executed, scratch)
    return Verdict(**{**vars(verdict), "seconds": seconds})


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
    count = len(script["sources"])
    return [
        "executing a script, with your rights, in a scratch folder:",
        f"  command    {show_command(command)}",
        f"  main file  {request.sources / main}",
        f"  sources    {count} file{'s' * (count != 1)}, with the digests in the receipt",
        f"  data       {len(run.data)} file{'s' * (len(run.data) != 1)}, with their digests, too",
        f"  variables  {given}",
    ]


def compare(run: ScriptRun, command: Sequence[str], executed: Execution, scratch: Path) -> Verdict:
    """Return the verdict on what executing a script again gave."""
    # [Step 1] It must have trained to its end here, too.
    recorded = read_run(executed.records)
    try:
        check_success(command, executed, recorded)
    except RunError as error:
        reason = str(error).removeprefix("no receipt was written: ").splitlines()
        return Verdict("cannot judge", "executed here, the command failed", tuple(reason))
    # [Step 2] The steps, then the outputs.
    notes = [] if is_same_version(run) else [OTHER_VERSION]
    difference = compare_steps(run, recorded)
    if difference is None:
        differing, more = compare_outputs(run, scratch)
        notes += more
        steps = sum(len(trail) - 1 for trail in run.trails)
        if not differing:
            outputs = len(run.script["outputs"])
            sentence = f"executed again, identical: {steps} steps and {outputs} outputs"
            return Verdict("identical", sentence, tuple(notes))
        sentence = f"executed again, all {steps} steps agree, and outputs differ"
        found: Mapping[str, Any] = {"names": differing}
        notes.insert(0, f"another content: {', '.join(differing)}")
        if not run.script["outputs_named"]:
            notes.append(
                "a file with times or places in it always differs: `seedless run --output FILE` "
                "makes a receipt about the files that matter"
            )
    else:
        where = "before the first step" if difference.step is None else f"at step {difference.step}"
        ranks = (
            f" of process {', '.join(map(str, difference.ranks))}" if any(run.trails[1:]) else ""
        )
        sentence = f"executed again, it differs {where}{ranks}: {', '.join(difference.names)}"
        found = {
            "step": difference.step,
            "ranks": list(difference.ranks),
            "names": list(difference.names),
        }
        notes.append(f"to find out why: seedless doctor -- {show_command(run.script['command'])}")
    # [Step 3] Whether this machine can explain the difference.
    mismatches = compare_machines(run, recorded)
    outcome = "cannot judge" if mismatches else "differs"
    explained = [f"this machine differs: {mismatch}" for mismatch in mismatches]
    return Verdict(outcome, sentence, (*notes, *explained), difference=found)


def compare_steps(run: ScriptRun, recorded: RecordedRun) -> LoopDifference | None:
    """Return the first step that differs from the trails of a run, or None."""
    every = int(run.trails[0][1]["step"])  # 1, unless the run was so long that steps were left out
    here = [
        list(make_trail(run.claims, n, steps, every))
        for n, steps in enumerate(list_steps(recorded))
    ]
    there: Sequence[Sequence[dict[str, Any]]] = run.trails
    if not is_same_version(run):
        names = _list_names(there) & _list_names(here) | {"weights"}
        there, here = _keep_names(there, names), _keep_names(here, names)
    difference, _ = compare_loops(dict(enumerate(there)), dict(enumerate(here)))
    return difference


def is_same_version(run: ScriptRun) -> bool:
    """Whether a run was recorded by this version, which records the same values of each step."""
    return bool(run.claims["source"]["digest"] == describe_source()["digest"])


def _list_names(trails: Sequence[Sequence[dict[str, Any]]]) -> set[str]:
    """Return the names of the values that the steps have, without their numbers."""
    lines = [line for trail in trails for line in trail[1:]]
    return {name.partition("/")[0] for line in lines for name in line["state"]}


def _keep_names(
    trails: Sequence[Sequence[dict[str, Any]]], names: Collection[str]
) -> list[list[dict[str, Any]]]:
    """Return trails whose states have the values of these names alone."""
    return [[{**line, "state": _keep(line["state"], names)} for line in trail] for trail in trails]


def _keep(state: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: state[name] for name in state if name.partition("/")[0] in names}


def compare_outputs(run: ScriptRun, scratch: Path) -> tuple[list[str], list[str]]:
    """Return the outputs that differ, and notes on those that agree in what they hold alone."""
    differing, notes = [], []
    for name, expected in run.script["outputs"].items():
        path = scratch / name
        if path.is_symlink() or not path.is_file():
            differing.append(name)
            notes.append(f"{name} was not written")
            continue
        found = describe_outputs([name], scratch)[name]
        if found["digest"] == expected["digest"]:
            continue
        if expected["content"] is not None and found["content"] == expected["content"]:
            notes.append(f"{name} has other bytes and the same content: its times, or their order")
        else:
            differing.append(name)
    return differing, notes


def compare_machines(run: ScriptRun, recorded: RecordedRun) -> list[Mismatch]:
    """Return in what this machine differs from the recorded one that can change bits."""
    here = describe_environment(recorded.training[0])
    there = run.claims["environment"]
    versions = (run.claims["source"]["digest"], describe_source()["digest"])
    return [
        *(found for name in DECISIVE for found in compare_values(there[name], here[name], name)),
        *compare_values(*versions, "source"),
    ]


def show_on_standard_error(line: str) -> None:
    """Print a line in which values of someone else's cannot move the cursor or end it."""
    with suppress(OSError):
        sys.stderr.write(f"{escape_text(line)}\n")
        sys.stderr.flush()
