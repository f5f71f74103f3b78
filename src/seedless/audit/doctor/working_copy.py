"""Copies of a working folder, so that runs do not see what other runs wrote."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from seedless.core.errors import RunError

MAX_COPY_BYTES = 2**30
SKIPPED = (".git", "__pycache__")


def copy_working_folder(folder: Path, target: Path) -> Path:
    """Copy a folder without its links' contents, its .git and its caches; return the copy.

    The target may be inside it. A folder of more than 1 GiB is refused. A link that is relative
    keeps leading to the same file.
    """

    def is_skipped(place: str, name: str) -> bool:
        return name in SKIPPED or target.is_relative_to(Path(place, name))

    # [Step 1] Count first: a copy that stops half-way helps nobody.
    size = 0
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not is_skipped(place, name)]
        size += sum(os.lstat(os.path.join(place, name)).st_size for name in files)
        if size > MAX_COPY_BYTES:
            raise RunError(
                f"{folder} holds more than {MAX_COPY_BYTES:,} bytes, and each run needs a copy of "
                "it. Run in a folder that holds the script alone, keep data elsewhere, and let the "
                "script write to {out}"
            )
    # [Step 2] Copy. What is neither a file nor a folder, as a socket, is left out.
    shutil.copytree(
        folder,
        target,
        symlinks=True,
        ignore=lambda place, names: [name for name in names if is_skipped(place, name)],
        copy_function=_copy,
    )
    # [Step 3] Relative links lead elsewhere from the copy, unless they stay inside it.
    for place, folders, files in os.walk(target):
        for path in (Path(place, name) for name in (*folders, *files)):
            if path.is_symlink() and not path.exists():
                original = folder / path.relative_to(target)
                path.unlink()
                path.symlink_to(original.resolve())
    return target


def move_command(command: Sequence[str], folder: Path, target: Path) -> list[str]:
    """Return a command in which paths inside a folder lead to its copy."""
    before, after = f"{folder}{os.sep}", f"{target}{os.sep}"
    return [
        word.replace(before, after) if word.startswith(before) or f"={before}" in word else word
        for word in command
    ]


def _copy(source: str, target: str) -> None:
    if os.path.isfile(source) or os.path.islink(source):
        shutil.copy2(source, target, follow_symlinks=False)
