"""A run folder as `validate` read it. It is executed again from this, not from the disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedless.core.config import Config, parse_config
from seedless.proof.trail import Entry

# What reading a damaged file raises.
DAMAGE = (OSError, ValueError, RecursionError)


@dataclass(frozen=True, eq=False)
class ValidatedRun:
    """A run folder as it was read; consistent with its receipt where ``problems`` is empty.

    Attributes:
        path: the run folder.
        claims: the receipt's predicate.
        config: the resolved configuration.
        trail: its entries; none for a stripped run, which has no trail.
        log: a line for each epoch.
        problems: what is wrong, a sentence each.
        left_out: the files that a stripped run lists as left out.
    """

    path: Path
    claims: Mapping[str, Any]
    config: Config
    trail: Sequence[Entry]
    log: Sequence[Mapping[str, Any]]
    problems: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, to hand the run to another process."""
        return {
            "path": str(self.path.absolute()),
            "claims": self.claims,
            "config": self.config.model_dump(exclude_unset=True),
            "trail": self.trail,
            "log": self.log,
            "left_out": self.left_out,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ValidatedRun:
        """Return the run that `as_dict` described."""
        path, config = Path(values["path"]), parse_config(values["config"])
        return cls(**{**values, "path": path, "config": config})
