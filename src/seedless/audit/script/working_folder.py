"""The files of a working folder before and after a script: which of them it wrote."""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from seedless.core.errors import RunError

MAX_FILES = 300_000
# Folders of tools, which hold no outputs of a script.
_SKIPPED = frozenset({"__pycache__", ".git", ".hg", ".venv", ".ipynb_checkpoints"})


class FileState(NamedTuple):
    """What changes when a file is written."""

    size: int
    changed_ns: int
    inode: int


def list_files(folder: Path, skip: Collection[Path] = ()) -> dict[str, FileState]:
    """Return the state of every plain file in a folder by its POSIX path in it.

    Links are not followed. ``skip``: folders that are left out.
    """
    found: dict[str, FileState] = {}
    for path, state in _walk(folder, {os.path.abspath(one) for one in skip}):
        found[os.path.relpath(path, folder)] = state
        if len(found) > MAX_FILES:
            raise RunError(
                f"{folder} holds more than {MAX_FILES:,} files, too many to see which of them the "
                "script writes: name its outputs with --output, or run it in another folder"
            )
    return found


def find_written(before: Mapping[str, FileState], after: Mapping[str, FileState]) -> list[str]:
    """Return the files that are new or were written, sorted."""
    return sorted(name for name, state in after.items() if before.get(name) != state)


def _walk(folder: Path, skip: Collection[str]) -> Iterator[tuple[str, FileState]]:
    for place, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if name not in _SKIPPED and os.path.abspath(os.path.join(place, name)) not in skip
        ]
        for name in files:
            path = os.path.join(place, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            state = os.stat(path)
            yield path, FileState(state.st_size, state.st_mtime_ns, state.st_ino)
