"""The result of a verification: an outcome, what was checked, who signed, and an exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from seedless.core.display import escape_text

# Exit codes of `seedless verify`. 3: this machine cannot decide. 4: what was checked agrees, and
# the rest was not executed: all but a part of a run, or all of a script's run.
PART = "segment identical"
NOT_EXECUTED = "not executed"
CODES = {
    "identical": 0,
    "consistent": 0,
    "differs": 1,
    "invalid": 2,
    "cannot judge": 3,
    PART: 4,
    NOT_EXECUTED: 4,
}


@dataclass(frozen=True, repr=False)
class Verdict:
    """The result of a verification.

    Attributes:
        outcome: "identical", "consistent" (validated, not executed), "differs", "invalid",
            "cannot judge" (it differs, and this machine is not like the one it was made on),
            "segment identical" (a part of the run was executed and agrees), or "not executed" (the
            run of a script agrees with its receipt, and nobody asked to execute it).
        sentence: the result in words.
        details: what is wrong, or what differs, line by line.
        difference: {"epoch", "names"} of the first trail entry that differs, where one does; for a
            script {"rank", "step", "names"}.
        seconds: how long it took to execute the run again.
        checked: {"segments": [2], "of": 8} where only these segments were executed, with "token"
            where they were chosen by one; else empty.
        signature: {"state", "keyid"}: "checked", "files checked" (model.sig), "not checked" (no
            public key was given), "none" (not signed) or "invalid"; empty where the run could not
            be read at all.
        remarks: what must be known to read the outcome; shown in the first line.
        subject: what was judged, as "sha256:...": the file ``weights``, the ``receipt``'s digest,
            and by name the ``attestations`` that were read; empty where the run is not valid.
    """

    outcome: str
    sentence: str
    details: tuple[str, ...] = ()
    difference: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    checked: Mapping[str, Any] = field(default_factory=dict)
    signature: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    subject: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """The lines of `seedless verify`, which a notebook shows."""
        return self.as_text()

    @property
    def code(self) -> int:
        """The exit code of `seedless verify`: see `CODES`."""
        return CODES[self.outcome]

    @property
    def ok(self) -> bool:
        """Whether the outcome is "identical" or "consistent". A part that agrees is not enough."""
        return self.code == 0

    @property
    def partial(self) -> bool:
        """Whether only a part of the run was executed, and that part agrees."""
        return self.outcome == PART

    @property
    def headline(self) -> str:
        """The outcome in capitals, as in "SEGMENT 2 OF 8 IDENTICAL"."""
        if not self.partial:
            return self.outcome.upper()
        segments, total = self.checked["segments"], self.checked["of"]
        if "token" in self.checked:
            return f"SAMPLE OF {len(segments)} OF {total} SEGMENTS IDENTICAL"
        numbers = ", ".join(map(str, segments))
        return f"SEGMENT{'S' * (len(segments) > 1)} {numbers} OF {total} IDENTICAL"

    def as_text(self) -> str:
        """Return the verdict as people read it: outcome and remarks, the signature, the details."""
        lines = [f"{self.headline}: {'; '.join((self.sentence, *self.remarks))}"]
        if self.signature:
            lines.append(describe_signature(self.signature))
        # Values of the receipt are in these lines, and none of them may begin another line.
        return "\n  ".join(map(escape_text, (*lines, *self.details)))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, with the exit code."""
        lists = {"details": list(self.details), "remarks": list(self.remarks)}
        return {**asdict(self), **lists, "code": self.code}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Verdict:
        """Return the verdict that `as_dict` described."""
        rest = {name: value for name, value in values.items() if name != "code"}
        tuples = {name: tuple(values[name]) for name in ("details", "remarks")}
        return cls(**{**rest, **tuples})


def describe_signature(signature: Mapping[str, Any]) -> str:
    """Return in words whether a run is signed, by which key, and whether that was checked.

    Example:
        >>> describe_signature({"state": "none", "keyid": None})
        'not signed'
    """
    keyid = signature["keyid"]
    return {
        "checked": f"signed by key {keyid} (checked)",
        "files checked": f"files signed by key {keyid} in model.sig (checked)",
        "not checked": f"signed by key {keyid}, not checked: give its public key to --public-key",
        "none": "not signed",
        "invalid": "the signature is not valid",
    }[signature["state"]]
