"""YAML front matter, written so that every parser reads the same: all text is in double quotes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seedless.core.errors import SeedlessError

_PLAIN = re.compile(r"[a-z][a-z0-9_-]*")
# What YAML does not print as it is, or what a parser may take for a line's end.
_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def write_front_matter(values: Mapping[str, Any]) -> str:
    """Return plain values (mappings, sequences, text, numbers, true, false, null) between ---.

    Empty mappings and sequences are left to the caller to leave out. Floats have six decimals:
    a form such as 1e-05 is a number to some parsers and text to others.
    """
    return "\n".join(["---", *_write(values, 0), "---", ""])


def quote(text: str) -> str:
    """Return text as a double-quoted scalar: JSON's escapes, which YAML shares."""
    plain = json.dumps(text, ensure_ascii=False)
    return _ODD.sub(lambda found: f"\\u{ord(found.group()):04x}", plain)


def _write(value: Mapping[str, Any] | Sequence[Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(value, Mapping):
        for key, item in value.items():
            name = key if _PLAIN.fullmatch(key) else quote(key)
            if _is_nested(item):
                yield f"{indent}{name}:"
                yield from _write(item, depth + 1)
            else:
                yield f"{indent}{name}: {_scalar(item)}"
        return
    for item in value:
        if not _is_nested(item):
            yield f"{indent}- {_scalar(item)}"
            continue
        first, *rest = _write(item, depth + 1)
        yield f"{indent}- {first.lstrip()}"
        yield from rest


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.6f}"
    raise SeedlessError(f"front matter holds plain values only, got {value!r}")
