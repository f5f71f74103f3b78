"""The run of a script, as `seedless run` writes it: read, and compared with its receipt.

Nothing is executed, and nothing outside the folder is opened. The steps are those of `validate`:
the names in the folder, the receipt with the digests of all files, and what the files say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedless.core.bounded_reading import read_json_lines
from seedless.core.digests import canonical_json
from seedless.core.errors import RunError, SeedlessError
from seedless.core.files import AnyPath
from seedless.core.mismatch import is_same_json
from seedless.proof import model_signing
from seedless.proof.loop_lines import LOOP_SCHEMA, name_trail_file, parse_trail_name
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import check_receipt, is_script, read_receipt
from seedless.proof.run_files import (
    DATA_LIST,
    check_listed_names,
    check_run_files,
    is_script_file,
)
from seedless.proof.script_claims import DataFile, Step, find_problem
from seedless.proof.trail import TrailEntry, read_trail
from seedless.runs.attestation_checks import list_signed_files
from seedless.runs.environment_checks import is_source
from seedless.runs.validation import ValidatedRun, open_validated

# The most that is read of data.jsonl: a million files, say.
MAX_DATA_BYTES = 2**29
MAX_DATA_VALUES = 8_000_000
_CHAINED = ("previous", "digest")


@dataclass(frozen=True, eq=False)
class ScriptRun:
    """The folder of a script's run; consistent with its receipt where ``problems`` is empty.

    Attributes:
        path: the folder.
        receipt: the whole statement; empty where the names in the folder are wrong.
        trails: for each process that trained, its entries: the start, then its steps.
        data: the lines of data.jsonl: path, size and digest of each file that was read.
        problems: what is wrong, a sentence each.
        left_out: always empty; a script's run cannot be stripped.
    """

    path: Path
    receipt: Mapping[str, Any]
    trails: Sequence[Sequence[TrailEntry]] = ()
    data: Sequence[Mapping[str, Any]] = ()
    problems: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def claims(self) -> Mapping[str, Any]:
        """The receipt's predicate: what the run says of itself."""
        predicate: Mapping[str, Any] = self.receipt["predicate"]
        return predicate

    @property
    def script(self) -> Mapping[str, Any]:
        """Command, sources, data and outputs, as the receipt states them."""
        script: Mapping[str, Any] = self.claims["script"]
        return script


def is_script_run(run: AnyPath) -> bool:
    """Whether a folder holds the run of a script; False where that cannot be told.

    A folder that is no run at all gives False, so that `validate` can say what is wrong with it.
    """
    try:
        return is_script(read_receipt(Path(run))["predicate"])
    except SeedlessError:
        return False


def validate_script(run: Path) -> ScriptRun:
    """Read the run of a script and return it with everything that is wrong with it.

    Example:
        >>> validate_script(Path("runs/train")).problems
        ()
    """
    # [Step 1] The names, before anything is opened.
    if os.path.lexists(run / RECEIPT) and (added := _check_names(run)):
        return ScriptRun(run, {}, problems=tuple(added))
    # [Step 2] The receipt, its own digest, and the digest of every file it covers.
    statement = read_receipt(run)
    claims = statement["predicate"]
    if not is_script(claims):
        raise RunError(f"{run} is not the run of a script")
    try:
        problems = check_receipt(run, statement)
    except OSError as error:
        raise RunError(f"cannot read {error.filename}: {error.strerror}") from None
    files = claims.get("files")
    names = files if isinstance(files, dict) else {}
    problems += check_listed_names(names, claims["kind"])
    if not is_source(claims.get("source")):
        problems.append("the receipt does not state name, version and digest of the source code")
    if problems:  # what follows reads fields that may not be there
        return ScriptRun(run, statement, problems=tuple(problems))
    # [Step 3] Whether the files say what the receipt says.
    try:
        trails = [
            read_trail(run, file=name_trail_file(rank), schemas=(LOOP_SCHEMA,))
            for rank in range(claims["processes"]["count"])
        ]
        data = read_data_list(run / DATA_LIST)
    except SeedlessError as error:
        return ScriptRun(run, statement, problems=(str(error),))
    read = ScriptRun(run, statement, trails, data)
    found = [*check_trails(read), *check_data(read), *_check_model_signature(read)]
    return ScriptRun(run, statement, trails, data, tuple(found))


def open_script(run: AnyPath) -> ScriptRun:
    """Return the run of a script that agrees with its receipt; any other is an error."""
    read = validate_script(Path(run))
    if read.problems:
        first, *others = read.problems
        more = f" (and {len(others)} more)" if others else ""
        raise RunError(
            f"{read.path} is not what its receipt says: {first}{more}. Nothing of it is used; "
            f"`seedless verify {read.path}` lists everything"
        )
    return read


def open_finished(run: AnyPath) -> ValidatedRun | ScriptRun:
    """Return a finished run of either kind that agrees with its receipt; any other is an error."""
    return open_script(run) if is_script_run(run) else open_validated(run)


def describe_start(claims: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """Return line 0 of the trail of a process, not chained yet, from the receipt's claims."""
    script = claims["script"]
    return {
        "kind": "start",
        "schema": LOOP_SCHEMA,
        "epoch": None,
        "step": None,
        "settings": {"command": script["command"], "sources": script["sources"]},
        "source": claims["source"],
        "environment": claims["environment"],
        "rank": rank,
        "world_size": claims["processes"]["count"],
        "state": {},
    }


def read_data_list(path: Path) -> list[Mapping[str, Any]]:
    """Return the lines of data.jsonl, each in its form, sorted by path, no path twice."""
    found: list[Mapping[str, Any]] = []
    try:
        lines = read_json_lines(path, max_bytes=MAX_DATA_BYTES, max_values=MAX_DATA_VALUES)
        for number, (line, value) in enumerate(lines, start=1):
            where = f"{DATA_LIST}: line {number}"
            if problem := find_problem(DataFile, value, where):
                raise RunError(problem[0])
            if line != canonical_json(value) + b"\n":
                raise RunError(f"{where} is not in canonical form")
            if found and found[-1]["path"] >= value["path"]:
                raise RunError(f"{where} does not follow the line before in the order of paths")
            found.append(value)
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from None
    return found


def write_data_list(files: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the content of data.jsonl."""
    ordered = sorted(files, key=lambda file: str(file["path"]))
    return b"".join(canonical_json(dict(file)) + b"\n" for file in ordered)


def check_trails(run: ScriptRun) -> list[str]:
    """Return what is wrong between the trails of a script's run and its receipt."""
    problems: list[str] = []
    listed = {name for name in run.claims["files"] if parse_trail_name(name) is not None}
    if listed != {name_trail_file(rank) for rank in range(len(run.trails))}:
        problems.append("the receipt does not list one trail for each process")
    for rank, (trail, end) in enumerate(
        zip(run.trails, run.claims["processes"]["trails"], strict=True)
    ):
        problems += _check_trail(trail, describe_start(run.claims, rank), name_trail_file(rank))
        if trail and not is_same_json(end, describe_end(trail)):
            problems.append(f"the receipt names another end of {name_trail_file(rank)}")
    return problems


def describe_end(trail: Sequence[TrailEntry]) -> dict[str, Any]:
    """Return what a receipt says of a trail: its last digest, and how many lines it has."""
    return {"head": trail[-1]["digest"], "entries": len(trail)}


def _check_trail(trail: Sequence[TrailEntry], start: Mapping[str, Any], file: str) -> list[str]:
    """Return what is wrong with the lines of one trail, whose chain was checked."""
    contents = [{name: one[name] for name in one if name not in _CHAINED} for one in trail]
    if len(contents) < 2:
        return [f"{file} has no step: nothing was recorded"]
    if not is_same_json(contents[0], dict(start)):
        return [f"line 1 of {file} does not say what the receipt says of the start"]
    last = 0
    for number, content in enumerate(contents[1:], start=2):
        if problem := find_problem(Step, content, f"{file}: line {number}"):
            return problem
        if content["step"] <= last:
            return [f"{file}: line {number} is out of the order of its steps"]
        last = content["step"]
    return []


def check_data(run: ScriptRun) -> list[str]:
    """Return what is wrong between data.jsonl and the receipt, a sentence each."""
    counted = {"files": len(run.data), "bytes": sum(file["size"] for file in run.data)}
    if not is_same_json(run.script["data"], counted):
        return [f"the receipt counts other files or bytes than {DATA_LIST} lists"]
    return []


def _check_names(run: Path) -> list[str]:
    """Return what the folder holds and must not hold, a sentence each; open none of it."""
    if problems := check_run_files(run):
        return problems
    return [
        f"{name!r} is not a file of a script's run: it was added; move it away"
        for name in sorted(os.listdir(run))
        if not is_script_file(name, covered=False)
    ]


def _check_model_signature(run: ScriptRun) -> list[str]:
    """Return a sentence where model.sig is there and lists other files than the run's."""
    if not os.path.lexists(run.path / model_signing.FILE):
        return []
    try:
        return model_signing.check_listed_files(run.path, list_signed_files(run))
    except (SeedlessError, OSError, LookupError, TypeError, AttributeError) as error:
        return [f"{model_signing.FILE} cannot be read as what its name says: {error}"]
