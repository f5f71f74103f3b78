"""The trail of the user's own loop: its files, one for each process, and its lines.

Process 0 writes trail.jsonl, process r trail-r.jsonl. Line 0 ("start") says what the loop began
with; each other line ("step") is keyed by the step that the user gave. docs/receipt.md states the
format. Trails of schema 1, which counted calls, are read too.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedless.core.digests import canonical_json, digest_value
from seedless.core.errors import RunError
from seedless.proof.trail import (
    FILE,
    MAX_TRAIL_BYTES,
    MAX_TRAIL_VALUES,
    SCHEMA,
    TrailEntry,
    read_trail,
)

LOOP_SCHEMA = "seedless.trail/2"
# What two lines of one step must agree in. The generators are not among them: one that nobody draws
# from changes no value.
COMPARED = ("loss", "batch", "rate", "options", "scheduler", "scaler", "sampler", "epoch")
# A trail names each tensor in its lines up to so many values; later lines have one digest for each
# model and optimizer, so that a long loop's trail can still be read.
MAX_NAMED_VALUES = 1_000_000
_RANK_FILE = re.compile(r"trail-([1-9][0-9]{0,5})\.jsonl")


def name_trail_file(rank: int) -> str:
    """Return the name of the trail that the process of this rank writes.

    >>> name_trail_file(0), name_trail_file(3)
    ('trail.jsonl', 'trail-3.jsonl')
    """
    return FILE if rank == 0 else f"trail-{rank}.jsonl"


def parse_trail_name(name: str) -> int | None:
    """Return the rank of the process that writes a trail of this name; None for another file.

    >>> parse_trail_name("trail-3.jsonl"), parse_trail_name("trail-03.jsonl")
    (3, None)
    """
    match = _RANK_FILE.fullmatch(name)
    return 0 if name == FILE else int(match[1]) if match else None


def list_ranks(folder: Path) -> list[int]:
    """Return the ranks that have a trail in a folder, in ascending order."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise RunError(
            f"cannot read {folder / FILE}: {error.strerror}; is {folder} a run folder?"
        ) from None
    return sorted(rank for rank in map(parse_trail_name, names) if rank is not None)


def read_loop(folder: Path) -> dict[int, list[TrailEntry]]:
    """Return the trail of each process of a recorded loop, by its rank, after checking the chains.

    An incomplete last line, as a killed process leaves it, is dropped.

    Example:
        >>> [line["step"] for line in read_loop(Path("runs/mine"))[0][1:]]
    """
    ranks = list_ranks(folder) or [0]  # without any, the error of reading trail.jsonl
    return {rank: read_loop_trail(folder, rank) for rank in ranks}


def read_loop_trail(folder: Path, rank: int = 0) -> list[TrailEntry]:
    """Return the trail of one process of a recorded loop after checking chain and steps."""
    file = name_trail_file(rank)
    entries = read_trail(folder, allow_incomplete=True, file=file, schemas=(SCHEMA, LOOP_SCHEMA))
    last = -1
    for number, entry in enumerate(entries, start=1):
        step = entry.get("step")
        expected = "start" if number == 1 else "step"
        if entry.get("kind") != expected:
            raise RunError(f"{folder / file}: line {number} is not of kind {expected!r}")
        if number == 1:
            continue
        if not isinstance(step, int) or isinstance(step, bool) or step <= last:
            raise RunError(
                f"{folder / file}: line {number} has step {step!r}, expected an integer above "
                f"{last}"
            )
        last = step
    return entries


def compare_lines(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return what differs between two lines of one step: names of tensors, then other fields.

    Where one of them has whole digests of its models and optimizers, these are compared.
    """
    left, right = one["state"], other["state"]
    if is_folded(left) != is_folded(right):
        left, right = fold_state(left), fold_state(right)
    names = [name for name in sorted({*left, *right}) if left.get(name) != right.get(name)]
    return names + [key for key in COMPARED if one.get(key) != other.get(key)]


def is_folded(state: Mapping[str, Any]) -> bool:
    """Whether a line's state has whole digests of models and optimizers instead of tensors."""
    return bool(state) and not any("/" in name for name in state)


def fold_state(state: Mapping[str, Any]) -> dict[str, str]:
    """Return one digest for all tensors of the models, and one for those of each optimizer.

    >>> sorted(fold_state({"model/weight": "00", "model/bias": "01", "optimizer/step/bias": "02"}))
    ['model', 'optimizer']
    """
    if is_folded(state):
        return dict(state)
    groups: dict[str, dict[str, Any]] = {}
    for name, digest in state.items():
        groups.setdefault(name.partition("/")[0], {})[name] = digest
    return {name: digest_value(group) for name, group in groups.items()}


@dataclass
class TrailSize:
    """How much of a trail is before the next line, in bytes and in values as a reader counts."""

    size: int = 0
    values: int = 0

    def add(self, entry: TrailEntry) -> None:
        """Add a line."""
        line = canonical_json(entry)
        self.size += len(line) + 1
        self.values += 1 + sum(map(line.count, (b",", b"[", b"{")))

    @property
    def is_long(self) -> bool:
        """Whether the next line must not name each tensor."""
        return self.values > MAX_NAMED_VALUES

    @property
    def is_full(self) -> bool:
        """Whether a trail with one more line might be too long to be read again."""
        return self.values > MAX_TRAIL_VALUES - 1_000 or self.size > MAX_TRAIL_BYTES - 2**20


def compare_generators(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the generators that two lines both state and whose states differ."""
    left, right = one.get("generators"), other.get("generators")
    if not isinstance(left, dict) or not isinstance(right, dict):
        return []
    return [name for name in sorted({*left, *right}) if left.get(name) != right.get(name)]
