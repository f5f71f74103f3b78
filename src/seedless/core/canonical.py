"""Canonical JSON: one value, one sequence of bytes, on every machine.

Keys are sorted by code point, there is no white space, text is UTF-8, floats are written in the
shortest form that reads back to the same float64, and NaN and infinities are refused.
"""

from __future__ import annotations

import json
import math
from typing import Any

from seedless.core.errors import SeedlessError


def canonical_json(value: Any) -> bytes:
    """Serialize ``value`` (dicts with string keys, lists, tuples, str, int, float, bool, None)."""
    _check(value, "$")
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def _check(value: Any, where: str) -> None:
    """Refuse what JSON would bend silently: other key types, other objects, NaN, infinities."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise SeedlessError(f"canonical JSON needs string keys; {where} has {key!r}")
            _check(item, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            _check(item, f"{where}[{position}]")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise SeedlessError(f"canonical JSON holds finite numbers only; {where} is {value}")
    elif value is not None and not isinstance(value, str | int | bool):
        raise SeedlessError(
            f"canonical JSON holds plain values only; {where} is a {type(value).__name__}"
        )
