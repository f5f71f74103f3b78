"""Compare a run executed again with the trail it left, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedless.core.canonical import canonical_json
from seedless.core.config import ExecutionConfig
from seedless.proof.trail import Entry, digest_tensors, first_difference, make_entry
from seedless.train.progress_state import Observer, ProgressState

# What of an environment can change bits. The rest (Python, kernel, memory, idle cores) is recorded
# and shown, and decides nothing.
DECISIVE = ("machine", "packages", "cpu", "flags", "precision", "devices", "variables")
# The thread count is set in the program, whatever a shell says.
_HARMLESS = {
    "cpu": ("cores",),
    "devices": ("memory_bytes",),
    "variables": ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONHASHSEED"),
}


class DivergenceError(Exception):
    """The run executed now differs from its trail: at which entry, and in what."""

    def __init__(self, epoch: int, names: Sequence[str]) -> None:
        super().__init__(describe_difference(epoch, names))
        self.epoch = epoch
        self.names = list(names)


class Replay(Observer):
    """Stops a run executed again at the first entry that differs from its trail."""

    def __init__(self, expected: Sequence[Entry]) -> None:
        self.expected = expected
        self.compared = 0

    def begin(self, progress: ProgressState) -> None:
        """Compare the state the run starts from."""
        recorded = self.expected[progress.position.epoch]
        now = {**recorded, "state": digest_tensors(progress.state)}
        self._compare(recorded, now)

    def epoch(self, progress: ProgressState) -> None:
        """Compare the epoch that is over."""
        self._compare(self.expected[progress.position.epoch], make_entry(progress))

    def _compare(self, recorded: Entry, now: Entry) -> None:
        found = first_difference([recorded], [now])
        if found is not None:
            raise DivergenceError(recorded["epoch"], found[1])
        self.compared += 1


def describe_difference(epoch: int, names: Sequence[str]) -> str:
    """Say in words where two trails part and in what."""
    tensors = [name for name in names if "/" in name]
    others = [name for name in names if "/" not in name]
    where = "before the first step" if epoch == 0 else f"in epoch {epoch}"
    parts = []
    if tensors:
        shown = ", ".join(tensors[:3]) + (", ..." if len(tensors) > 3 else "")
        parts.append(f"{len(tensors)} tensor{'s' * (len(tensors) > 1)} ({shown})")
    parts += [f"the {name}" for name in others]
    return f"{where}: {', '.join(parts)}"


@dataclass(frozen=True)
class Mismatch:
    """A field of two records that differs, by its path."""

    field: str
    recorded: Any
    here: Any

    def __str__(self) -> str:
        return f"{self.field}: {_show(self.recorded)} there, {_show(self.here)} here"


def compare_values(recorded: Any, here: Any, field: str = "") -> list[Mismatch]:
    """Return every leaf at which two plain values differ."""
    if isinstance(recorded, Mapping) and isinstance(here, Mapping):
        return [
            mismatch
            for key in sorted({*recorded, *here})
            for mismatch in compare_values(
                recorded.get(key), here.get(key), f"{field}.{key}" if field else key
            )
        ]
    if isinstance(recorded, list) and isinstance(here, list) and len(recorded) == len(here):
        return [
            mismatch
            for place, pair in enumerate(zip(recorded, here, strict=True))
            for mismatch in compare_values(*pair, f"{field}.{place}")
        ]
    # In JSON, where 1, 1.0 and true are three things.
    same = canonical_json(recorded) == canonical_json(here)
    return [] if same else [Mismatch(field, recorded, here)]


def judge_environment(
    recorded: Mapping[str, Any], here: Mapping[str, Any], execution: ExecutionConfig
) -> tuple[list[Mismatch], list[Mismatch]]:
    """Return what differs between two environments: what can change bits, and the rest.

    In portable arithmetic only versions can: they may hold another algorithm.
    """
    sections = ("packages",) if execution.arithmetic == "portable" else DECISIVE
    decisive: list[Mismatch] = []
    harmless: list[Mismatch] = []
    for mismatch in compare_values(recorded, here):
        section, _, rest = mismatch.field.partition(".")
        leaf = rest.rpartition(".")[2]
        matters = section in sections and leaf not in _HARMLESS.get(section, ())
        if section == "devices" and execution.device == "cpu":
            matters = False
        (decisive if matters else harmless).append(mismatch)
    return decisive, harmless


def _show(value: Any) -> str:
    return "nothing" if value is None else str(value)
