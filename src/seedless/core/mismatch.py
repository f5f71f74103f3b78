"""Fields in which two records of plain values differ: settings, environments, receipts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seedless.core.digests import canonical_json


@dataclass(frozen=True)
class Mismatch:
    """A field of two records that differs, named by its path, such as "cpu.model"."""

    field: str
    recorded: Any
    here: Any

    def __str__(self) -> str:
        return f"{self.field}: {_show(self.recorded)} there, {_show(self.here)} here"


def compare_values(recorded: Any, here: Any, field: str = "") -> list[Mismatch]:
    """Return every leaf at which two plain values differ, in the order of the fields' names."""
    if isinstance(recorded, Mapping) and isinstance(here, Mapping):
        return [
            mismatch
            for key in sorted({*recorded, *here})
            for mismatch in compare_values(
                recorded.get(key), here.get(key), f"{field}.{key}" if field else key
            )
        ]
    if isinstance(recorded, list) and isinstance(here, list) and len(recorded) == len(here):
        return [
            mismatch
            for place, pair in enumerate(zip(recorded, here, strict=True))
            for mismatch in compare_values(*pair, f"{field}.{place}")
        ]
    return [] if is_same_json(recorded, here) else [Mismatch(field, recorded, here)]


def is_same_json(one: Any, other: Any) -> bool:
    """Whether two plain values are the same in JSON, where 1, 1.0 and true are three values."""
    return canonical_json(one) == canonical_json(other)


def _show(value: Any) -> str:
    return "nothing" if value is None else str(value)
