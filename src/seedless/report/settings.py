"""Settings of several runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def list_differing(
    settings: Sequence[Mapping[str, Any]],
) -> tuple[list[str], list[dict[str, str]]]:
    """Return the dotted keys in which runs differ, and each run's settings as text."""
    tables = [dict(flatten(one)) for one in settings]
    keys = sorted({key for table in tables for key in table})
    return [key for key in keys if len({table.get(key) for table in tables}) > 1], tables


def flatten(value: Any, key: str = "") -> list[tuple[str, str]]:
    """Return (dotted key, text) for each leaf that is set."""
    if value is None:
        return []
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        value = {str(place): item for place, item in enumerate(value)}
    if isinstance(value, Mapping):
        return [row for k, v in value.items() for row in flatten(v, f"{key}.{k}" if key else k)]
    if isinstance(value, list):
        return [(key, ", ".join(str(item) for item in value) or "none")]
    return [(key, str(value).lower() if isinstance(value, bool) else str(value))]
