"""Is a run folder consistent with itself? `validate` compares everything in it with its receipt.

Nothing is executed but the scores. The three steps: the receipt and the digests of all files; the
files that everything else is read from; the content of each file, in content_checks.py. A run is
executed again from the `ValidatedRun` that `validate` returns, and not from the disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seedless.core.config import Config, parse_config
from seedless.core.config_files import load_config
from seedless.core.errors import RunError, SeedlessError
from seedless.proof.receipt import check_receipt, read_receipt
from seedless.proof.stripped_run import read_left_out
from seedless.proof.trail import TrailEntry, read_trail
from seedless.runs.content_checks import DAMAGE, check_content
from seedless.runs.folder import CONFIG
from seedless.train.log import LOG_FILE, read_log


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
    trail: Sequence[TrailEntry]
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
        config = load_config(run / CONFIG)
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
