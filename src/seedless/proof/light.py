"""Light runs: a finished run without what is large, and with a note that says what was left out.

The note, ``light.json``, names files that the receipt covers and that are not here: the trail, the
checkpoints and, as a rule, the weights. Their digests stay in the receipt, so a light run can be
executed again and judged as strictly as a whole one: every line of the trail goes into its head.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedless.core.canonical import canonical_json
from seedless.core.digest import digest_value
from seedless.core.errors import RunError
from seedless.proof.receipt import FILE, LIGHT, WEIGHTS, read_receipt
from seedless.proof.replay import DivergenceError
from seedless.proof.trail import FILE as TRAIL
from seedless.proof.trail import GENESIS, Entry, chain, make_entry, make_start
from seedless.train.checkpoint import CHECKPOINT_FOLDER as CHECKPOINTS
from seedless.train.progress_state import Observer, ProgressState

SCHEMA = "seedless.light/1"
# What line 0 of a trail and the receipt say alike.
FACTS = ("settings", "source", "environment", "data", "initialization", "model")


def is_heavy(name: str, *, weights: bool = False) -> bool:
    """Whether a light run goes without a file; with ``weights`` it keeps those."""
    return name == TRAIL or name.startswith(f"{CHECKPOINTS}/") or (name == WEIGHTS and not weights)


def describe_light(receipt: Mapping[str, Any], names: Iterable[str]) -> bytes:
    """Return the content of the note on files that were left out."""
    claims = receipt["predicate"]
    note = {"schema": SCHEMA, "receipt": claims["digest"], "left_out": sorted(names)}
    return canonical_json(note) + b"\n"


def read_left_out(run: Path, receipt: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files a run goes without by its own account; none where it is whole."""
    path = run / LIGHT
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from None
    try:
        names = tuple(json.loads(content)["left_out"])
        sound = describe_light(receipt, names) == content
        allowed = {name for name in receipt["predicate"]["files"] if is_heavy(name)}
        sound = sound and {*names} in (allowed, allowed - {WEIGHTS})
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise RunError(
            f"{path} is not a note on this run: expected the trail and the checkpoints of its "
            "receipt, and perhaps the weights, as left out. Get the run again"
        )
    return names


class ChainReplay(Observer):
    """Writes the trail of a run executed again, in memory, to compare its head.

    Loss and score of each epoch are compared with the log on the way: what differs is found early.
    """

    def __init__(self, claims: Mapping[str, Any], log: Sequence[Mapping[str, Any]]) -> None:
        self.facts = {name: claims[name] for name in FACTS}
        self.log = log
        self.entries: list[Entry] = []

    @property
    def compared(self) -> int:
        """How many lines were written."""
        return len(self.entries)

    @property
    def claims(self) -> dict[str, Any]:
        """What a receipt says of a trail."""
        return {
            "schedule": digest_value([entry["schedule"] for entry in self.entries[1:]]),
            "trail": {"head": self.entries[-1]["digest"], "entries": len(self.entries)},
        }

    def begin(self, progress: ProgressState) -> None:
        """Write line 0 with what the receipt says the run began with."""
        self.entries = [chain(make_start(self.facts, progress.state), GENESIS)]

    def epoch(self, progress: ProgressState) -> None:
        """Add a line, and compare it with the log's."""
        content = make_entry(progress)
        told = self.log[progress.position.epoch - 1]
        odd = [key for key in ("step", "loss", "score") if told[key] != content[key]]
        if odd:
            raise DivergenceError(progress.position.epoch, odd)
        self.entries.append(chain(content, self.entries[-1]["digest"]))


def copy_light(run: Path, to: Path) -> Path:
    """Copy a finished run without what is large into the new folder ``to``, with the note."""
    receipt = read_receipt(run)
    covered = receipt["predicate"]["files"]
    dropped = [name for name in covered if is_heavy(name)]
    to.mkdir(parents=True)
    for name in (FILE, *(name for name in covered if name not in dropped)):
        shutil.copyfile(run / name, to / name)
    (to / LIGHT).write_bytes(describe_light(receipt, dropped))
    return to
