"""A few lines of the user's own source around a line that a record names.

A record may come from someone else and name any file. Only Python files are shown, and only those
that lie in the working folder or whose SHA-256 the run itself recorded.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seedless.core.bounded_reading import read_file
from seedless.core.errors import SeedlessError

MAX_SOURCE_BYTES = 2 * 2**20
LINES_AROUND = 4
_MAX_LINE_CHARACTERS = 240


@dataclass(frozen=True)
class Excerpt:
    """Lines of a file: (number, text, whether it is the line named); ``changed`` since the run."""

    path: str
    lines: tuple[tuple[int, str, bool], ...]
    changed: bool


def read_excerpt(place: str, folder: Path, recorded: Mapping[str, str]) -> Excerpt | None:
    """Return the lines around ``place``, or None where they cannot or must not be shown.

    Args:
        place: "path:line", the path relative to ``folder`` or absolute.
        folder: the folder in which the script ran.
        recorded: the SHA-256 of each source file of the run, by path.
    """
    name, _, number = place.rpartition(":")
    if not name.endswith(".py") or not number.isdecimal() or len(number) > 9:
        return None
    try:
        path = (folder / name).resolve()
        content = read_file(path, MAX_SOURCE_BYTES)
        inside = path.is_relative_to(folder.resolve())
    except (OSError, ValueError, SeedlessError):  # missing, too large, or no name of a file
        return None
    known = recorded.get(name, recorded.get(str(path)))  # sources are recorded by full path
    same = hashlib.sha256(content).hexdigest() == known
    if not (inside or same):
        return None
    lines = content.decode(errors="replace").splitlines()
    wanted = int(number)
    if not 1 <= wanted <= len(lines):
        return None
    first = max(wanted - LINES_AROUND, 1)
    shown = lines[first - 1 : wanted + LINES_AROUND]
    return Excerpt(
        path=name,
        lines=tuple(
            (at, text[:_MAX_LINE_CHARACTERS].expandtabs(4), at == wanted)
            for at, text in enumerate(shown, start=first)
        ),
        changed=known is not None and not same,
    )
