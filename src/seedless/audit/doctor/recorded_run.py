"""Read what the recorder wrote in the processes of one run.

The records come from a script that may be anyone's, so they are read as hostile input: sizes are
bounded, every line is checked against its model, and a line of an unknown kind is skipped.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seedless.audit.doctor.record_lines import (
    Draws,
    End,
    Files,
    Listing,
    Outside,
    Packages,
    RecorderError,
    RecordLine,
    Seed,
    Sources,
    Start,
    Step,
    Torch,
)
from seedless.core.bounded_reading import parse_json, read_lines, shorten
from seedless.core.errors import RunError

MAX_RECORD_BYTES = 256 * 2**20
MAX_LINE_BYTES = 16 * 2**20
MAX_PROCESSES = 1024


@dataclass(frozen=True)
class Process:
    """What one process recorded.

    Attributes:
        file: the record's name.
        steps: the steps of its optimizers; backward passes where it has no optimizer.
        seeds, draws, outside, listings: events, each with the number of steps before it.
        sources: digests of its own source files, by path.
        packages: the packages that it had loaded at its end.
        errors: failures of the recorder itself, after which it recorded nothing.
        end: None for a process that was cut off.
    """

    file: str
    start: Start
    torch: Torch | None = None
    steps: tuple[Step, ...] = ()
    seeds: tuple[Seed, ...] = ()
    draws: tuple[Draws, ...] = ()
    outside: tuple[Outside, ...] = ()
    listings: tuple[Listing, ...] = ()
    files: Files = field(default_factory=Files)
    sources: Mapping[str, str] = field(default_factory=dict)
    packages: Packages = field(default_factory=Packages)
    errors: tuple[str, ...] = ()
    end: End | None = None


@dataclass(frozen=True)
class RecordedRun:
    """The processes of one run, those of lower ranks first.

    Attributes:
        folder: where the records are.
        processes: main processes.
        workers: processes that load data for one of them.
    """

    folder: Path
    processes: tuple[Process, ...]
    workers: tuple[Process, ...] = ()

    @property
    def training(self) -> tuple[Process, ...]:
        """The processes that made a step."""
        return tuple(process for process in self.processes if process.steps)

    def list_workers(self, process: Process) -> tuple[Process, ...]:
        """Return the workers of one process, sorted by their number."""
        own = [worker for worker in self.workers if worker.start.ppid == process.start.pid]
        return tuple(sorted(own, key=lambda worker: worker.start.worker_id or 0))


def read_run(folder: Path, replace: Mapping[str, str] | None = None) -> RecordedRun:
    """Return the records of the processes of a run.

    Args:
        folder: where the recorder wrote process-*.jsonl.
        replace: texts to replace in the records before they are read: the folder that belongs to
            one run alone, by the word that stood for it in the command.
    """
    files = sorted(folder.glob("process-*.jsonl"))
    if len(files) > MAX_PROCESSES:
        raise RunError(
            f"{folder} holds records of {len(files):,} processes; at most {MAX_PROCESSES} are read"
        )
    read = [read_process(file, replace or {}) for file in files]
    processes = sorted(
        (process for process in read if process is not None),
        key=lambda process: (process.start.rank, process.start.pid),
    )
    return RecordedRun(
        folder=folder,
        processes=tuple(one for one in processes if one.start.role == "main"),
        workers=tuple(one for one in processes if one.start.role == "worker"),
    )


def read_process(file: Path, replace: Mapping[str, str] | None = None) -> Process | None:
    """Return the record of one process; None for one that ended before its first line."""
    found: dict[str, list[Any]] = {}
    flags: dict[str, Any] = {}
    counted = 0
    for where, values in read_record_lines(file, replace or {}):
        kind = str(values.get("kind"))
        if kind == "flags" and isinstance(values.get("flags"), dict):
            flags = values["flags"]
        elif kind in ("step", "backward", "replay"):
            counted += kind != "backward"
            name = "backward" if kind == "backward" else "step"
            found.setdefault(name, []).append(_check(Step, {**values, "flags": flags}, where))
        elif kind in _MODELS:
            line = _check(_MODELS[kind], {**values, "after": counted}, where)
            found.setdefault(kind, []).append(line)
    if "process" not in found:
        return None
    sources = [source for line in found.get("sources", []) for source in line.files]
    start = found["process"][0]
    read = [one for line in found.get("files", []) for one in line.read]
    written = [one for line in found.get("files", []) for one in line.written]
    return Process(
        file=file.name,
        start=start,
        torch=_last(found.get("torch")),
        steps=tuple(found.get("step") or found.get("backward") or ()),
        seeds=tuple(found.get("seed", ())),
        draws=tuple(found.get("draws", ())),
        outside=tuple(found.get("outside", ())),
        listings=tuple(found.get("listing", ())),
        files=Files(read=_make_relative(read, start), written=_make_relative(written, start)),
        sources={source.path: source.sha256 or "" for source in _make_relative(sources, start)},
        packages=_last(found.get("packages")) or Packages(),
        errors=tuple(f"{one.where}: {one.error}" for one in found.get("error", ())),
        end=_last(found.get("end")),
    )


def read_record_lines(
    file: Path, replace: Mapping[str, str] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where each line of a record is, for messages, and its value.

    A last line without its line feed, as a killed process leaves it, is left out.
    """
    changes = [(_encode(old), _encode(new)) for old, new in (replace or {}).items()]
    for number, line in enumerate(read_lines(file, MAX_RECORD_BYTES, MAX_LINE_BYTES), start=1):
        if not line.endswith(b"\n"):
            return
        for old, new in changes:
            line = line.replace(old, new)
        where = f"{file.name}: line {number}"
        values = parse_json(line, where, allow_nan=True)
        if not isinstance(values, dict):
            raise RunError(f"{where}: expected a JSON object, got {shorten(str(values), 40)}")
        yield where, values


_MODELS: dict[str, type[RecordLine]] = {
    "process": Start,
    "torch": Torch,
    "seed": Seed,
    "draws": Draws,
    "outside": Outside,
    "listing": Listing,
    "files": Files,
    "sources": Sources,
    "packages": Packages,
    "error": RecorderError,
    "end": End,
}


def _check(model: type[RecordLine], values: dict[str, Any], where: str) -> Any:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise RunError(
            f"{where} is not a line of the recorder: {shorten(place, 80)}: "
            f"{shorten(first['msg'], 120)}. Record the run again"
        ) from None


def _make_relative(files: list[Any], start: Start) -> tuple[Any, ...]:
    """Return files with paths relative to the working folder where they are inside it."""
    prefix = f"{start.cwd.rstrip('/')}/"
    return tuple(file.model_copy(update={"path": file.path.removeprefix(prefix)}) for file in files)


def _last(lines: list[Any] | None) -> Any:
    return lines[-1] if lines else None


def _encode(text: str) -> bytes:
    """Return a text as it stands inside a text of JSON."""
    return json.dumps(text)[1:-1].encode()
