"""Judge between two parties that have different trails of one run in portable arithmetic.

Both folders are validated. A party that is only a folder is executed again here; a party with a
command is asked through it, and so need not be on this machine.
"""

import math
import os
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from seedless.audit.dispute.disputed_step import Case
from seedless.audit.dispute.judgement import is_disputed, settle
from seedless.audit.dispute.party import AnsweringRun, LocalParty, serve_requests
from seedless.audit.dispute.party_answers import Side
from seedless.audit.dispute.party_process import Party, PartyProcess
from seedless.audit.dispute.ruling import Ruling
from seedless.audit.verdict_notes import list_decisive
from seedless.core.errors import ConfigError, RunError
from seedless.core.files import AnyPath
from seedless.numerics.environment import capture_environment
from seedless.numerics.saved_flags import run_by_itself
from seedless.proof.trail import GENESIS
from seedless.runs.prepare import USER_MODEL, Preparer
from seedless.runs.user_model import ENTRY_OPTION_HELP, choose_preparer
from seedless.runs.validation import ValidatedRun, open_validated

MAX_SECONDS = 1_000_000  # for one answer of a command: 11 days


@run_by_itself()
def referee(
    a: AnyPath,
    b: AnyPath,
    *,
    a_command: str | None = None,
    b_command: str | None = None,
    entry: str | None = None,
    data: str | None = None,
    seconds: float = 3600.0,
) -> Ruling:
    """Return who is right where two runs of one portable configuration begin to differ.

    Args:
        a: the run folder of one party.
        b: the run folder of the other.
        a_command: a command that answers for A, as `seedless referee --answer A` does; without it
            A is executed again here.
        b_command: the same for B.
        entry: for runs of `fit`, "package.module:function" that returns their model and arrays.
        data: where the data are, if not where the configuration says.
        seconds: how long a command may take for one answer.

    Example:
        >>> referee("runs/a", "runs/b").outcome
        'A is right'
    """
    if not 0 < seconds <= MAX_SECONDS:  # also false for NaN
        raise ConfigError(
            f"expected more than 0 and at most {MAX_SECONDS:,} seconds; got {seconds}"
        )
    # [Step 1] Both must be valid runs of one configuration.
    try:
        runs = [open_validated(path) for path in (a, b)]
    except RunError as error:
        return Ruling("invalid", str(error))
    if refused := check_pair(*runs):
        return refused
    if runs[0].config.model.name == USER_MODEL and entry is None:
        raise ConfigError(f"{a} is a run of fit(): use {ENTRY_OPTION_HELP}")
    preparer = choose_preparer(runs[0].config, entry, data)
    # [Step 2] Ask the commands, or execute folders here.
    with ExitStack() as stack:
        parties: list[Party | None] = [None, None]
        for place, command in enumerate((a_command, b_command)):
            if command is not None:
                process = PartyProcess(split_command(command), seconds=seconds)
                parties[place] = stack.enter_context(process)
        return settle_pair(runs, parties, preparer)


def settle_pair(
    runs: Sequence[ValidatedRun], parties: Sequence[Party | None], preparer: Preparer
) -> Ruling:
    """Return the ruling on two runs that `check_pair` does not refuse.

    Args:
        runs: those of A and B.
        parties: who answers for A and for B; None for a run that is executed here.
        preparer: turns their configuration into a training problem.
    """
    began = time.perf_counter()
    a_party, b_party = parties
    answered_here = runs[1] if a_party is not None and b_party is None else runs[0]
    judge = AnsweringRun(answered_here, preparer)
    sides = [
        Side(name, run, LocalParty(judge) if party is None else party)
        for name, run, party in zip("AB", runs, parties, strict=True)
    ]
    # Two folders would be executed alike: one execution by the referee says as much.
    ask = any(party is not None for party in parties)
    ruling = settle(Case(sides[0], sides[1], judge), ask=ask)
    exchanged = {"a": sides[0].party.exchanged, "b": sides[1].party.exchanged}
    exchanged["trail"] = count_bisection_bytes(len(runs[0].trail))
    return replace(ruling, exchanged=exchanged, seconds=round(time.perf_counter() - began, 2))


def answer_for(run: AnyPath, *, entry: str | None = None, data: str | None = None) -> None:
    """Answer a referee's requests about a run: read from standard input, write to the output."""
    opened = open_validated(run)
    answering = AnsweringRun(opened, choose_preparer(opened.config, entry, data))
    # What any code prints from here on goes to standard error: only answers go to the referee.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with answers:
        serve_requests(answering, sys.stdin.buffer, answers)


def split_command(command: str) -> list[str]:
    """Return the words of a command, as a shell would split them."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"expected a command, got {command!r}: {error}") from None
    if not words:
        raise ConfigError("expected a command, got an empty one")
    return words


def check_pair(a: ValidatedRun, b: ValidatedRun) -> Ruling | None:
    """Return why nothing can be said of two valid runs, or None."""
    if a.config.digest != b.config.digest:
        return Ruling("invalid", f"{a.path} and {b.path} are runs of different configurations")
    if a.claims["schema"] != b.claims["schema"]:
        return Ruling("invalid", f"{a.path} and {b.path} have receipts of different schemas")
    if a.left_out or b.left_out:
        return Ruling("cannot judge", "a stripped run has no trail: the parties must give theirs")
    if not a.config.is_portable:
        return Ruling(
            "cannot judge",
            "the runs are in native arithmetic, whose bits depend on the processor: there is no "
            "one right result of an operation",
        )
    environment = capture_environment()
    decisive = [
        f"{name}: {mismatch}"
        for name, run in (("A", a), ("B", b))
        for mismatch in list_decisive(run, environment)
    ]
    if decisive and is_disputed(a, b):
        reason = "a party used other versions than are here, and versions can change bits"
        return Ruling("cannot judge", reason, tuple(decisive))
    return None


def count_bisection_bytes(entries: int) -> int:
    """Return the bytes in which two remote parties find the first entry that differs.

    Each sends one chained digest for every halving of the trail.
    """
    return 2 * math.ceil(math.log2(max(2, entries))) * len(GENESIS)
