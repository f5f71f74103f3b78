"""What the recorder saw of a script, in the words of its receipt: files, environment, steps."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from seedless.audit.doctor.recorded_run import Process, RecordedRun
from seedless.audit.script.output_content import digest_content
from seedless.core.errors import RunError
from seedless.core.files import hash_file
from seedless.numerics.environment import VARIABLES, read_cpu_model
from seedless.proof.source_digest import PACKAGE
from seedless.script_recorder.file_observer import MAX_FILES


def list_steps(recorded: RecordedRun) -> list[list[dict[str, Any]]]:
    """Return the steps of each process that trained, as the trail states them."""
    return [
        [
            {
                "step": step.step,
                "optimizer": step.optimizer,
                "values": {name: list(digests) for name, digests in step.values.items()},
                "shown": step.shown,
            }
            for step in process.steps
        ]
        for process in recorded.training
    ]


def describe_environment(process: Process) -> dict[str, Any]:
    """Return the environment of the script's own interpreter, and this machine's processor."""
    torch, first = process.torch, process.steps[0]
    versions = dict(process.packages.versions)
    if torch is not None:
        versions["torch"] = torch.version
    return {
        "python": process.start.python,
        "machine": platform.machine(),
        "packages": dict(sorted(versions.items())),
        "cpu": {"model": read_cpu_model()},
        "devices": [{"name": name} for name in (torch.devices if torch else ())],
        "cuda": torch.cuda if torch else None,
        "threads": {
            "intraop": torch.threads if torch else 0,
            "interop": torch.interop_threads if torch else 0,
        },
        "flags": dict(first.flags),
        "variables": {
            name: value for name, value in process.start.variables.items() if name in VARIABLES
        },
    }


def list_unobserved(recorded: RecordedRun) -> list[str]:
    """Return what may have read files that are not listed: packages with native code, sorted."""
    processes = (*recorded.processes, *recorded.workers)
    names = {name for process in processes for name in process.packages.native}
    if any(len(process.files.read) >= MAX_FILES for process in processes):
        names.add(f"all after the first {MAX_FILES:,} files")
    return sorted(names)


def list_sources(recorded: RecordedRun, folder: Path) -> dict[str, str]:
    """Return the digest of each Python file that was imported, by its path."""
    found: dict[str, str] = {}
    for process in (*recorded.processes, *recorded.workers):
        for path, digest in process.sources.items():
            place = _find_place(path, process, folder)
            if os.path.isfile(folder / place) and not (folder / place).is_relative_to(PACKAGE):
                found[place] = f"sha256:{digest}" if digest else hash_file(folder / place)
    return dict(sorted(found.items()))


def list_data(
    recorded: RecordedRun, folder: Path, known: Collection[str], began_ns: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the files that were read, with their digests, and those that were then changed.

    A file that the script made itself, and read again, is neither.

    Args:
        recorded: the records of the run.
        folder: its working folder.
        known: files that are described elsewhere: source code, and the program.
        began_ns: when the command was started.
    """
    data: dict[str, dict[str, Any]] = {}
    changed: set[str] = set()
    for place, size, changed_ns, digest in _list_reads(recorded, folder):
        if place in known:
            continue
        path = folder / place
        state = os.stat(path) if os.path.isfile(path) else None
        now = None if state is None else (state.st_size, state.st_mtime_ns)
        if changed_ns is not None and changed_ns >= began_ns:
            continue  # the script made it itself
        if state is None or now != (size, changed_ns):
            changed.add(place)
            continue
        data[place] = {
            "path": place,
            "size": state.st_size,
            "digest": hash_file(path) if digest is None else f"sha256:{digest}",
        }
    return [data[place] for place in sorted(data)], sorted(changed)


def describe_outputs(names: Sequence[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Return size and digests of files that a script wrote, by their paths in its folder."""
    found = {}
    for name in names:
        path = folder / name
        try:
            found[name] = {
                "size": path.stat().st_size,
                "digest": hash_file(path),
                "content": digest_content(path),
            }
        except OSError as error:
            raise RunError(f"cannot read the output {path}: {error.strerror}") from None
    return found


def _list_reads(
    recorded: RecordedRun, folder: Path
) -> Iterator[tuple[str, int | None, int | None, str | None]]:
    """Yield place, size, time of the last change and digest of each file that was read."""
    for process in (*recorded.processes, *recorded.workers):
        for file in process.files.read:
            place = _find_place(file.path, process, folder)
            yield place, file.size, file.mtime_ns, file.sha256


def _find_place(path: str, process: Process, folder: Path) -> str:
    """Return a path as a receipt states it: relative in the working folder, else absolute."""
    place = os.path.normpath(os.path.join(process.start.cwd or folder, path))
    inside = os.path.commonpath([place, folder]) == str(folder)
    return os.path.relpath(place, folder) if inside else place
