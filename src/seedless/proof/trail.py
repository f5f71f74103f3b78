"""The trail of a run: a line for each epoch, with a digest of every tensor; the lines are chained.

Line 0 ("start") says what the run began with: configuration, source, data, initialization and
environment. A line's "digest" is that of its canonical JSON without this field; "previous" is the
digest of the line before. A line that is changed, removed or moved breaks the chain.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from seedless.core.bounded_reading import read_json_lines
from seedless.core.digests import canonical_json, digest_each, digest_value
from seedless.core.errors import RunError
from seedless.core.files import write_atomic
from seedless.numerics.environment import capture_environment
from seedless.proof.source_digest import describe_source
from seedless.train.checkpoint import is_checkpoint_due
from seedless.train.progress_state import Observer, ProgressState

FILE = "trail.jsonl"
SCHEMA = "seedless.trail/1"
GENESIS = "sha256:" + 64 * "0"

# The most that is read of a trail: 800 tensors for 5,000 epochs, say.
MAX_TRAIL_BYTES = 2**29
MAX_TRAIL_VALUES = 4_000_000
_OTHER_VALUES = 16  # of a line, beside those of its tensors

TrailEntry = dict[str, Any]


def chain(entry: Mapping[str, Any], previous: str) -> TrailEntry:
    """Return an entry with the two fields that chain it to the one before."""
    content = {**entry, "previous": previous}
    return {**content, "digest": digest_value(content)}


def describe_beginning(settings: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run begins with, as line 0 of its trail and its receipt state it.

    Args:
        settings: the digest of its configuration.
        facts: of its data, its initialization and its model.
    """
    return {
        "settings": settings,
        "source": describe_source(),
        "environment": capture_environment(),
        **facts,
    }


def make_start(facts: Mapping[str, Any], state: Mapping[str, Tensor]) -> TrailEntry:
    """Return line 0, not chained yet: what the run began with, and the digest of each tensor."""
    return {
        "kind": "start",
        "schema": SCHEMA,
        "epoch": 0,
        "step": 0,
        **facts,
        "state": digest_each(state),
    }


def make_entry(progress: ProgressState) -> TrailEntry:
    """Return the line of an epoch that ended, not chained yet."""
    return {
        "kind": "epoch",
        "epoch": progress.position.epoch,
        "step": progress.position.step,
        "schedule": progress.schedule,
        "loss": progress.loss,
        "score": progress.score,
        "state": digest_each(progress.state),
    }


def summarize_trail(entries: Sequence[TrailEntry]) -> dict[str, Any]:
    """Return what a receipt says of a trail: the schedule of all epochs, and the chain's end."""
    return {
        "schedule": digest_value([entry.get("schedule") for entry in entries[1:]]),
        "trail": {"head": entries[-1]["digest"], "entries": len(entries)},
    }


def read_trail(
    run: Path,
    *,
    allow_incomplete: bool = False,
    file: str = FILE,
    schemas: Sequence[str] = (SCHEMA,),
) -> list[TrailEntry]:
    """Return the entries of a run's trail after checking the chain.

    Args:
        run: the folder.
        allow_incomplete: drop an incomplete last line, as a killed process leaves it.
        file: the name of the trail in the folder.
        schemas: the schemas that line 0 may name.
    """
    try:
        return list(_read_entries(run / file, allow_incomplete, schemas))
    except OSError as error:
        raise RunError(
            f"cannot read {run / file}: {error.strerror}; is {run} a run folder?"
        ) from None


def _read_entries(
    path: Path, allow_incomplete: bool, schemas: Sequence[str]
) -> Iterator[TrailEntry]:
    """Yield the entries of a trail one by one; each must follow the one before."""
    previous = GENESIS
    lines = read_json_lines(path, max_bytes=MAX_TRAIL_BYTES, max_values=MAX_TRAIL_VALUES)
    for number, (line, entry) in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            if not allow_incomplete:
                raise RunError(f"{path}: line {number} is incomplete")
            return
        try:
            # [Step 1] The line must be an entry, written in canonical form, with its own digest.
            content = {key: value for key, value in entry.items() if key != "digest"}
            intact = (
                entry["digest"] == digest_value(content) and canonical_json(entry) + b"\n" == line
            )
            # [Step 2] It must name the digest of the line before, line 0 that of no line.
            linked = entry["previous"] == previous
            schema = entry["schema"] if number == 1 else schemas[0]
            if not isinstance(entry["state"], dict):
                raise TypeError("no state")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RunError(f"{path}: line {number} is not an entry of a trail") from None
        if not intact:
            raise RunError(f"{path}: line {number} does not match its own digest; it was changed")
        if not linked:
            raise RunError(
                f"{path}: line {number} does not follow line {number - 1}: the chain is broken, an "
                "entry was removed, moved or inserted"
            )
        if schema not in schemas:
            expected = " or ".join(schemas)
            raise RunError(f"{path} has schema {schema}; this version reads {expected}")
        previous = entry["digest"]
        yield entry


class TrailWriter(Observer):
    """Writes the trail of a run while it trains.

    A resumed run repeats the epochs after its checkpoint; the lines written before must agree.

    Attributes:
        facts: what line 0 says the run began with.
        known: the lines that were in the file at the start, then all lines.
        entries: the lines up to the epoch that is trained now.
    """

    def __init__(self, run: Path, facts: Mapping[str, Any]) -> None:
        self.path = run / FILE
        self.facts = facts
        self.known = read_trail(run, allow_incomplete=True) if self.path.exists() else []
        self.entries: list[TrailEntry] = []

    @property
    def begun(self) -> TrailEntry | None:
        """Line 0 of a trail that exists already; None for a new one."""
        return self.known[0] if self.known else None

    def begin(self, progress: ProgressState) -> None:
        """Write line 0, or check that the run resumes from a state the trail has."""
        epoch = progress.position.epoch
        lines = progress.problem.config.train.epochs + 1
        if lines * (len(progress.state) + _OTHER_VALUES) > MAX_TRAIL_VALUES:
            raise RunError(
                f"a trail of {lines:,} lines with {len(progress.state):,} tensors each would have "
                f"more than {MAX_TRAIL_VALUES:,} values, the most that are read again: train fewer "
                "epochs"
            )
        if not self.known:
            self.known = [chain(make_start(self.facts, progress.state), GENESIS)]
        if len(self.known) <= epoch:
            raise RunError(
                f"{self.path} ends with epoch {len(self.known) - 1}, before the checkpoint of "
                f"epoch {epoch} from which the run would resume: they are not of one run"
            )
        if not progress.position.batch:
            self._agree(self.known[epoch], {"state": digest_each(progress.state)})
        self.entries = self.known[: epoch + 1]
        write_atomic(self.path, b"".join(canonical_json(entry) + b"\n" for entry in self.known))

    def epoch(self, progress: ProgressState) -> None:
        """Append the epoch's line, or compare it with the one that is there already."""
        epoch, content = progress.position.epoch, make_entry(progress)
        if epoch < len(self.known):
            self._agree(self.known[epoch], content)
            self.entries.append(self.known[epoch])
            return
        entry = chain(content, self.entries[-1]["digest"])
        self.entries.append(entry)
        self.known.append(entry)
        with self.path.open("ab") as file:
            file.write(canonical_json(entry) + b"\n")
            file.flush()
            # The line must be on the disk before the checkpoint of this epoch is. Lines after the
            # last checkpoint are written again on resuming, so losing them loses nothing.
            if is_checkpoint_due(progress.problem.config.train, epoch):
                os.fsync(file.fileno())

    def _agree(self, known: TrailEntry, now: Mapping[str, Any]) -> None:
        differing = [key for key in now if known.get(key) != now[key]]
        if differing:
            raise RunError(
                f"resuming {self.path.parent}: epoch {known['epoch']} now differs from what was "
                f"recorded before ({', '.join(differing)}): this machine or a checkpoint has "
                "changed"
            )


def digest_entry(entry: TrailEntry) -> str:
    """Return one digest of an entry's whole state, which does not depend on the chain."""
    return digest_value(entry["state"])


def compare_trails(
    a: Sequence[TrailEntry], b: Sequence[TrailEntry]
) -> tuple[int, list[str]] | None:
    """Return the number of the first line at which two trails differ and what differs, or None.

    The names are those of tensors, and "schedule", "loss", "score", "step"; "length" where one
    trail ends before the other. Of lines 0 only the states are compared, not what the runs began
    with.
    """
    for place, (one, other) in enumerate(zip(a, b, strict=False)):
        keys = sorted({*one["state"], *other["state"]})
        names = [name for name in keys if one["state"].get(name) != other["state"].get(name)]
        names += [
            key for key in ("schedule", "loss", "score", "step") if one.get(key) != other.get(key)
        ]
        if names:
            return place, names
    if len(a) != len(b):
        return min(len(a), len(b)), ["length"]
    return None
