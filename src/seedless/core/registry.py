"""Look a name up in a registry; an unknown name is an error that lists the known ones."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from seedless.core.errors import UnknownNameError

T = TypeVar("T")


def choose(kind: str, name: str, table: Mapping[str, T]) -> T:
    """Return ``table[name]``, or raise an error that names the known ones and the nearest one."""
    if isinstance(name, str) and name in table:
        return table[name]
    known = ", ".join(sorted(table))
    if not isinstance(name, str):
        raise UnknownNameError(
            f"expected the {kind} by its name, got {type(name).__name__}; known: {known}"
        )
    raise UnknownNameError(f"unknown {kind} {name!r}{suggest(name, table)}; known: {known}")


def suggest(name: object, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the nearest known name, or nothing."""
    near = get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""
