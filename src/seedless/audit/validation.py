"""Is a run folder consistent with itself? `validate` compares everything in it with its receipt.

Nothing is executed but the scores. The three steps: the receipt and the digests of all files; the
files that everything else is read from; the content of each file, in content_checks.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from seedless.audit.content_checks import check_content
from seedless.audit.validated_run import DAMAGE, ValidatedRun
from seedless.core.config import Config
from seedless.core.errors import RunError, SeedlessError
from seedless.proof.receipt import check_receipt, read_receipt
from seedless.proof.stripped_run import read_left_out
from seedless.proof.trail import read_trail
from seedless.runs.folder import read_config
from seedless.train.log import LOG_FILE, read_log


def validate(run: Path) -> ValidatedRun:
    """Read a finished run and return it with everything that is wrong with it.

    An unreadable receipt is an error.

    Example:
        >>> validate(Path("runs/demo")).problems
        ()
    """
    # [Step 1] The receipt, its own digest, and the digest of every file it covers.
    statement = read_receipt(run)
    claims = statement["predicate"]
    try:
        left_out = read_left_out(run, statement)
        problems = check_receipt(run, statement, left_out)
    except OSError as error:
        raise RunError(f"cannot read {error.filename}: {error.strerror}") from None
    # [Step 2] Configuration, trail and log. Without them nothing else can be checked.
    try:
        config = read_config(run)
        trail = [] if left_out else read_trail(run)
        log = read_log(run / LOG_FILE)
    except SeedlessError as error:
        return ValidatedRun(run, claims, Config(), (), (), (str(error), *problems))
    except DAMAGE as error:
        damage = f"{LOG_FILE} cannot be read: {error}"
        return ValidatedRun(run, claims, Config(), (), (), (damage, *problems))
    # [Step 3] Whether the files say what the receipt says.
    read = ValidatedRun(run, claims, config, trail, log, (), left_out)
    return replace(read, problems=(*problems, *check_content(read)))
