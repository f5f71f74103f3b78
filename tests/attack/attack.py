"""What an attack is, and what may become of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Commands; {run} is the changed copy, {out} a folder to write to, {keys} the folder of the keys,
# {honest} the victim as it was made, {other} another honest run.
VALIDATE = ("verify", "{run}", "--validate-only")
VERIFY = ("verify", "{run}")
SIGNED = (*VALIDATE, "--public-key", "{keys}/key.pem.pub")

# Verdicts: what the command says, in one word. REFUSED: `error: ...` and exit code 2, no verdict.
# DONE: exit code 0 of a command that gives no verdict. The others are never acceptable.
PASSED = ("IDENTICAL", "CONSISTENT", "DONE")
REFUSALS = frozenset({"INVALID", "REFUSED"})
DETECTED = REFUSALS | {"DIFFERS"}
UNDECIDED = DETECTED | {"CANNOT JUDGE"}

Change = Callable[[Path], None]


@dataclass(frozen=True)
class Attack:
    """One change of a copy of one victim, and one command on it.

    Attributes:
        name: unique; FAMILY/what is done.
        victim: the name of a folder or file that `victims.py` makes.
        change: changes the copy.
        command: the arguments of the program.
        allowed: the acceptable verdicts.
        reason: why a verdict that passes is acceptable; empty where none is.
        writes: paths below the sandbox, as patterns, that the command may create or change.
        says: a text of which the output must hold at least one, where there are any.
        inspect: looks at the sandbox afterwards and returns what is wrong, or None.
        terminal: whether the command prints to a terminal, and not to a file.
    """

    name: str
    victim: str
    change: Change
    command: tuple[str, ...] = VALIDATE
    allowed: frozenset[str] = REFUSALS
    reason: str = ""
    writes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    inspect: Callable[[Path], str | None] | None = None
    terminal: bool = False

    @property
    def family(self):
        return self.name.split("/")[0]


def leave(run):
    """Change nothing: an attack by the command or the folder it runs in, or a control."""
