"""The result of a dispute between two runs: who is right at the first place where they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from seedless.core.display import escape_text

# Exit codes of `seedless referee`. 2: no valid pair of runs. 3: this machine cannot decide.
CODES = {
    "no dispute": 0,
    "invalid": 2,
    "cannot judge": 3,
    "A is right": 10,
    "B is right": 11,
    "neither is right": 12,
}


@dataclass(frozen=True)
class Ruling:
    """Who is right at the first place where two runs differ.

    Attributes:
        outcome: "no dispute", "A is right", "B is right", "neither is right", "cannot judge" or
            "invalid" (not two valid runs of one configuration).
        sentence: the result in words.
        details: how it was found, or what is wrong, line by line.
        place: where they differ first: "epoch", and as far as it was found "step", "operation"
            (its number, from 1), "op" and "names" of what differs.
        settled_by: "one operation", "one step", "one epoch", "the start" or "the scores": what was
            executed here; "" where nothing was.
        exchanged: bytes to and from each party, "a" and "b"; "trail": what comparing the two trails
            by bisection would take.
        seconds: how long it took.
    """

    outcome: str
    sentence: str
    details: tuple[str, ...] = ()
    place: Mapping[str, Any] = field(default_factory=dict)
    settled_by: str = ""
    exchanged: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def code(self) -> int:
        """The exit code."""
        return CODES[self.outcome]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, with the exit code."""
        return {**asdict(self), "details": list(self.details), "code": self.code}

    def as_text(self) -> str:
        """Return the ruling as people read it."""
        lines = (f"{self.outcome.upper()}: {self.sentence}", *self.details)
        return "\n  ".join(map(escape_text, lines))


def make_ruling(agree: Sequence[bool], what: str, **more: Any) -> Ruling:
    """Return the ruling on one thing that was derived here, and that A and B state differently.

    Args:
        agree: whether A states what was derived, and whether B does; not both, since they differ.
        what: the beginning of the sentence: what differs, and how it was derived.
        more: further fields of the ruling.
    """
    a_agrees, b_agrees = agree
    if a_agrees == b_agrees:
        return Ruling("neither is right", f"{what}, it is neither as A nor as B states", **more)
    right, wrong = ("A", "B") if a_agrees else ("B", "A")
    sentence = f"{what}, it is as {right} states, and not as {wrong} states"
    return Ruling(f"{right} is right", sentence, **more)
