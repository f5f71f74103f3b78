"""Is a run folder consistent with itself? `validate` compares everything in it with its receipt.

Nothing is executed but the scores. The steps: the names in the folder, before anything in it is
opened; the receipt and the digests of all files; the files that everything else is read from; the
content of each file, in content_checks.py. Whoever uses a finished run opens it with
`open_validated`, and takes what is in it from the `ValidatedRun`: a file that is read later must
still have the digest it was validated with.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seedless.core.config import Config, parse_config
from seedless.core.config_files import load_config
from seedless.core.digests import digest_bytes
from seedless.core.errors import RunError, SeedlessError
from seedless.core.files import AnyPath
from seedless.evaluate.predictions import FILE as PREDICTIONS
from seedless.evaluate.predictions import Predictions, parse_predictions
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import check_receipt, is_script, read_receipt
from seedless.proof.run_files import check_listed_names, check_run_files
from seedless.proof.stripped_run import read_left_out
from seedless.proof.trail import TrailEntry, read_trail
from seedless.runs.attestation_checks import check_attestations
from seedless.runs.content_checks import DAMAGE, check_content
from seedless.runs.folder import CONFIG
from seedless.runs.streamed_results import has_user_loss
from seedless.train.log import LOG_FILE, read_log


@dataclass(frozen=True, eq=False)
class ValidatedRun:
    """A run folder as it was read; consistent with its receipt where ``problems`` is empty.

    Attributes:
        path: the run folder.
        receipt: the whole statement; empty where the names in the folder are wrong.
        config: the resolved configuration.
        trail: its entries; none for a stripped run, which has no trail.
        log: a line for each epoch.
        problems: what is wrong, a sentence each.
        left_out: the files that a stripped run lists as left out.
    """

    path: Path
    receipt: Mapping[str, Any]
    config: Config
    trail: Sequence[TrailEntry]
    log: Sequence[Mapping[str, Any]]
    problems: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def claims(self) -> Mapping[str, Any]:
        """The receipt's predicate: what the run says of itself."""
        predicate: Mapping[str, Any] = self.receipt["predicate"]
        return predicate

    def read_file(self, name: str) -> bytes:
        """Return the bytes of a file of the run; they must be those that were validated."""
        path = self.path / name
        if name in self.left_out:
            raise RunError(
                f"{self.path} is a stripped run, without {name}: `seedless verify` executes it "
                "again; `seedless study archive --weights` makes one that keeps its weights"
            )
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RunError(f"cannot read {path}: {error.strerror}") from None
        if digest_bytes(content) != self.claims["files"][name]:
            raise RunError(f"{path} was changed while it was used; open the run again")
        return content

    def read_predictions(self) -> Predictions:
        """Return the predictions that the run wrote."""
        if has_user_loss(self.claims):
            raise RunError(
                f"{self.path} is a run with a loss of its own, which keeps its scores and a digest "
                "of its outputs, and no predictions: its scores are in metrics.json"
            )
        return parse_predictions(self.read_file(PREDICTIONS), str(self.path / PREDICTIONS))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, to hand the run to another process."""
        return {
            "path": str(self.path.absolute()),
            "receipt": self.receipt,
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
    # [Step 1] The names, before anything is opened. Without a receipt it is no finished run, and
    # `read_receipt` says what it may be.
    if os.path.lexists(run / RECEIPT) and (added := check_run_files(run)):
        return ValidatedRun(run, {}, Config(), (), (), tuple(added))
    # [Step 2] The receipt, its own digest, and the digest of every file it covers.
    statement = read_receipt(run)
    if is_script(statement["predicate"]):
        raise RunError(
            f"{run} is the run of a script, which has no model of this package: `seedless verify`, "
            "diff, sign, bundle and report can use it, and nothing else can"
        )
    try:
        left_out = read_left_out(run, statement)
        problems = check_receipt(run, statement, left_out)
        files = statement["predicate"].get("files")
        kind = statement["predicate"].get("kind")
        problems += check_listed_names(files if isinstance(files, dict) else (), kind)
    except OSError as error:
        raise RunError(f"cannot read {error.filename}: {error.strerror}") from None
    # [Step 3] Configuration, trail and log. Without them nothing else can be checked.
    try:
        config = load_config(run / CONFIG)
        trail = [] if left_out else read_trail(run)
        log = read_log(run / LOG_FILE, allow_incomplete=False)
    except SeedlessError as error:
        return ValidatedRun(run, statement, Config(), (), (), (str(error), *problems))
    except DAMAGE as error:
        damage = f"{LOG_FILE} cannot be read: {error}"
        return ValidatedRun(run, statement, Config(), (), (), (damage, *problems))
    # [Step 4] Whether the files say what the receipt says, and attestations are about this run.
    read = ValidatedRun(run, statement, config, trail, log, (), left_out)
    return replace(read, problems=(*problems, *check_content(read), *check_attestations(read)))


def open_validated(run: AnyPath) -> ValidatedRun:
    """Return a finished run that agrees with its receipt; any other is an error that says why.

    Everything that uses a finished run opens it here. One that was opened is returned as it is.

    Example:
        >>> open_validated("runs/demo").claims["weights"]["digest"]
    """
    validated = run if isinstance(run, ValidatedRun) else validate(Path(run))
    if not validated.problems:
        return validated
    first, *others = validated.problems
    more = f" (and {len(others)} more)" if others else ""
    raise RunError(
        f"{validated.path} is not what its receipt says: {first}{more}. Nothing of it is used; "
        f"`seedless verify --validate-only {validated.path}` lists everything"
    )
