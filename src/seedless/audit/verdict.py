"""The result of a verification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

# Exit codes of `seedless verify`. 3: inconclusive, this machine cannot decide.
CODES = {"identical": 0, "consistent": 0, "differs": 1, "invalid": 2, "cannot judge": 3}


@dataclass(frozen=True)
class Verdict:
    """The result of a verification.

    Attributes:
        outcome: "identical", "consistent" (validated, not executed), "differs", "invalid" or
            "cannot judge" (it differs, and this machine is not like the one it was made on).
        sentence: the result in words.
        details: what is wrong, or what differs, line by line.
        difference: {"epoch", "names"} of the first trail entry that differs, where one does.
        seconds: how long it took to execute the run again.
    """

    outcome: str
    sentence: str
    details: tuple[str, ...] = ()
    difference: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def code(self) -> int:
        """The exit code: 0 identical or consistent, 1 differs, 2 invalid, 3 cannot judge."""
        return CODES[self.outcome]

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against the run."""
        return self.code == 0

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, with the exit code."""
        return {**asdict(self), "details": list(self.details), "code": self.code}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Verdict:
        """Return the verdict that `as_dict` described."""
        rest = {name: value for name, value in values.items() if name != "code"}
        return cls(**{**rest, "details": tuple(values["details"])})
