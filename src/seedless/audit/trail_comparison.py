"""Compare a run executed again with its records, epoch by epoch; stop where they differ.

`TrailComparison` has the run's trail. `ChainComparison` is for a stripped run, which has none: it
makes the trail and the checkpoints again in memory, and their digests must be those in the receipt.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seedless.core.digests import canonical_json, digest_bytes, digest_each
from seedless.numerics.environment import capture_environment
from seedless.proof.stripped_run import list_facts
from seedless.proof.trail import FILE as TRAIL
from seedless.proof.trail import (
    GENESIS,
    TrailEntry,
    chain,
    compare_trails,
    make_entry,
    make_start,
    summarize_trail,
)
from seedless.train.checkpoint import (
    CHECKPOINT_FOLDER,
    checkpoint_file_name,
    is_checkpoint_due,
    serialize_checkpoint,
)
from seedless.train.progress_state import Observer, ProgressState


class DivergenceError(Exception):
    """The run executed now differs from its records.

    Attributes:
        details: what differs, a sentence each.
        difference: {"epoch", "names"} of the entry of the trail, where it is one that differs.
    """

    def __init__(self, details: Iterable[str], difference: Mapping[str, Any] | None = None) -> None:
        self.details = tuple(details)
        self.difference = dict(difference or {})
        super().__init__("; ".join(self.details))


class TrailComparison(Observer):
    """Stops a run executed again at the first entry that differs from its trail.

    Attributes:
        compared: how many entries agreed.
        claims: fields of the receipt to compare at the end: none, since every entry was compared.
    """

    claims: Mapping[str, Any] = {}

    def __init__(self, expected: Sequence[TrailEntry]) -> None:
        self.expected = expected
        self.compared = 0

    def begin(self, progress: ProgressState) -> None:
        """Compare the state the run starts from."""
        recorded = self.expected[progress.position.epoch]
        self._compare(recorded, {**recorded, "state": digest_each(progress.state)})

    def epoch(self, progress: ProgressState) -> None:
        """Compare the epoch that ended."""
        self._compare(self.expected[progress.position.epoch], make_entry(progress))

    def _compare(self, recorded: TrailEntry, now: TrailEntry) -> None:
        difference = compare_trails([recorded], [now])
        if difference is not None:
            raise diverge(recorded["epoch"], difference[1])
        self.compared += 1


class ChainComparison(Observer):
    """Makes the trail and the checkpoints of a stripped run again, to compare their digests.

    Loss and score of each epoch are compared with the log on the way, to stop early.

    Attributes:
        checkpoints: "sha256:..." of each checkpoint by its name in the run folder.
    """

    def __init__(self, claims: Mapping[str, Any], log: Sequence[Mapping[str, Any]]) -> None:
        self.facts = {name: claims[name] for name in list_facts(claims)}
        self.log = log
        self.entries: list[TrailEntry] = []
        self.checkpoints: dict[str, str] = {}

    @property
    def compared(self) -> int:
        """How many lines were written."""
        return len(self.entries)

    @property
    def claims(self) -> Mapping[str, Any]:
        """The fields of the receipt on the trail, to be compared at the end."""
        return summarize_trail(self.entries)

    @property
    def files(self) -> dict[str, str]:
        """The digest of each file that was made again: the trail and the checkpoints."""
        lines = (canonical_json(entry) + b"\n" for entry in self.entries)
        return {TRAIL: digest_bytes(b"".join(lines)), **self.checkpoints}

    def begin(self, progress: ProgressState) -> None:
        """Write line 0 with what the receipt says the run began with."""
        self.entries = [chain(make_start(self.facts, progress.state), GENESIS)]

    def epoch(self, progress: ProgressState) -> None:
        """Write the line of the epoch that ended, after comparing it with the log's."""
        entry, logged = make_entry(progress), self.log[progress.position.epoch - 1]
        differing = [key for key in ("step", "loss", "score") if logged[key] != entry[key]]
        if differing:
            raise diverge(progress.position.epoch, differing)
        self.entries.append(chain(entry, self.entries[-1]["digest"]))
        config = progress.problem.config
        if is_checkpoint_due(config.train, progress.position.epoch):
            name = f"{CHECKPOINT_FOLDER}/{checkpoint_file_name(progress.position)}"
            self.checkpoints[name] = digest_bytes(serialize_checkpoint(progress, config.digest))


def compare_left_out(
    claims: Mapping[str, Any], left_out: Iterable[str], files: Mapping[str, str]
) -> None:
    """Compare the digests of files that a stripped run lacks with those in its receipt.

    ``files``: the digest of each, executed again.
    """
    same_format, claimed = has_same_safetensors(claims), claims["files"]
    changed = [
        f"{name}: the receipt says {claimed[name]}, executed again it is {files.get(name)}"
        for name in left_out
        if files.get(name) != claimed[name] and (same_format or name == TRAIL)
    ]
    if changed:
        raise DivergenceError(changed)


def has_same_safetensors(claims: Mapping[str, Any]) -> bool:
    """Whether the installed safetensors, which writes tensors to files, is the version of a run."""
    made, here = claims["environment"]["packages"], capture_environment()["packages"]
    return bool(made.get("safetensors") == here["safetensors"])


def diverge(epoch: int, names: Sequence[str]) -> DivergenceError:
    """Return the error for an entry of the trail that differs in the things named."""
    difference = {"epoch": epoch, "names": list(names)}
    return DivergenceError([describe_difference(epoch, names)], difference)


def describe_difference(epoch: int, names: Sequence[str]) -> str:
    """Say in words in which epoch two trails differ, and in what."""
    tensors = [name for name in names if "/" in name]
    where = "before the first step" if epoch == 0 else f"in epoch {epoch}"
    parts = []
    if tensors:
        shown = ", ".join(tensors[:3]) + (", ..." if len(tensors) > 3 else "")
        parts.append(f"{len(tensors)} tensor{'s' * (len(tensors) > 1)} ({shown})")
    parts += [f"the {name}" for name in names if "/" not in name]
    return f"{where}: {', '.join(parts)}"
