"""The manifest of a dataset's folder: read with bounds, and its form checked before it is used.

A folder may come from someone else, in a bundle. Names of arrays are taken from a fixed list, so
that no manifest can name a file outside its folder.
"""

import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json, read_file, shorten
from seedless.core.digests import digest_value, is_digest
from seedless.core.errors import DataError, RunError

SCHEMA = 1
MANIFEST = "manifest.json"
# The small arrays of a dataset, and the kinds of dtypes that each may have.
KINDS = {
    "Y": "u",
    "folds": "iu",
    "ids": "U",
    "content": "u",
    "patients": "U",
    "sex": "U",
    "age": "f",
}
REQUIRED_ARRAYS = ("Y", "folds", "ids", "content")
PACKED_HEAD, CACHE_HEAD = ("packed",), ("key", "sources")  # what else a manifest holds


class UnusableEntryError(DataError):
    """A folder that cannot be used: it is stale, damaged or missing; the message says why."""


def read_manifest(folder: Path, head: Collection[str]) -> dict[str, Any]:
    """Return the manifest of a folder, if it is undamaged and has the form of this schema.

    ``head``: `PACKED_HEAD` or `CACHE_HEAD`.
    """
    try:
        content = read_file(folder / MANIFEST, MAX_JSON_BYTES, error=UnusableEntryError)
    except OSError as error:
        raise UnusableEntryError(f"{MANIFEST} cannot be read: {error.strerror}") from error
    try:
        manifest = parse_json(content, MANIFEST)
    except RunError as error:
        raise UnusableEntryError(f"{MANIFEST} is damaged: {error}") from None
    if not isinstance(manifest, dict):
        raise UnusableEntryError(f"{MANIFEST} is damaged: it is no object")
    seal = manifest.pop("seal", None)
    if seal != digest_value(manifest):
        raise UnusableEntryError(f"{MANIFEST} is damaged: its digest is not that of its content")
    if not _is_count(manifest.get("schema")) or manifest["schema"] != SCHEMA:
        found = shorten(repr(manifest.get("schema")), 40)
        raise UnusableEntryError(f"it has schema {found}, this version reads {SCHEMA}")
    _check_form(manifest, {**_FORM, **{name: _HEADS[name] for name in head}}, "")
    return manifest


def _check_form(values: Mapping[str, Any], form: Mapping[str, Any], where: str) -> None:
    """Refuse values that lack a field of a form, have another, or one of another type."""
    for name in sorted({*values} ^ {*form}):
        state = "lacks" if name in form else "holds"
        raise UnusableEntryError(f"{MANIFEST} {state} {where}{shorten(name, 80)}")
    for name, expected in form.items():
        if isinstance(expected, Mapping):
            if not isinstance(values[name], dict):
                raise UnusableEntryError(_refuse(f"{where}{name}", "an object", values[name]))
            _check_form(values[name], expected, f"{where}{name}.")
        elif not expected[0](values[name]):
            raise UnusableEntryError(_refuse(f"{where}{name}", expected[1], values[name]))


def _refuse(name: str, expected: str, value: Any) -> str:
    return f"{MANIFEST}: expected {expected} as {name}, got {shorten(repr(value), 80)}"


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list_of(value: Any, is_item: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(is_item, value))


def _is_names(value: Any) -> bool:
    return _is_list_of(value, _is_text)


def _is_rate(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and 0 < value < math.inf)


def _is_protocol(value: Any) -> bool:
    """Whether a value is a list of pairs such as ["train", [1, 2]], no split twice."""
    pairs = _is_list_of(
        value,
        lambda pair: (
            isinstance(pair, list)
            and len(pair) == 2
            and _is_text(pair[0])
            and _is_list_of(pair[1], _is_count)
        ),
    )
    return pairs and len({split for split, _ in value}) == len(value)


def _is_arrays(value: Any) -> bool:
    """Whether a value gives a digest for each array, all of them known, none missing."""
    return (
        isinstance(value, dict)
        and {*REQUIRED_ARRAYS} <= {*value} <= {*KINDS}
        and all(map(is_digest, value.values()))
    )


def _is_sources(value: Any) -> bool:
    """Whether a value lists sources, each with a name and what is known of it."""
    return _is_list_of(
        value,
        lambda item: (
            isinstance(item, dict)
            and _is_text(item.get("name"))
            and ("sha256" not in item or {"bytes", "mtime_ns"} <= {*item})
        ),
    )


# Each field with the test of its value, and the words for what is expected.
_FORM: dict[str, Any] = {
    "schema": (_is_count, f"{SCHEMA}"),
    "values": {
        "name": (_is_text, "text"),
        "classes": (_is_names, "a list of names"),
        "task": (_is_text, "text"),
        "fs": (_is_rate, "a number above 0, or null"),
        "leads": (lambda value: value is None or _is_names(value), "a list of names, or null"),
        "provenance": (lambda value: isinstance(value, dict), "an object"),
        "warnings": (_is_names, "a list of sentences"),
    },
    "protocol": (_is_protocol, 'a list of pairs such as ["val", [9]]'),
    "arrays": (_is_arrays, f"a digest for each of {', '.join(REQUIRED_ARRAYS)}, and for no other"),
    "samples": {"bytes": (_is_count, "a count"), "mtime_ns": (_is_count, "a time")},
    "digest": (is_digest, "sha256:..."),
}
_HEADS: dict[str, Any] = {
    "packed": (_is_text, "text"),
    "key": (lambda value: isinstance(value, dict), "an object"),
    "sources": (_is_sources, "a list of sources"),
}
