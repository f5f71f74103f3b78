"""`Dataset`: the record that every reader returns and everything else uses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.digests import canonical_json, digest_bytes, digest_samples
from seedless.core.errors import DataError

TEN_FOLDS: dict[str, tuple[int, ...]] = {
    "train": (1, 2, 3, 4, 5, 6, 7, 8),
    "val": (9,),
    "test": (10,),
}
THREE_SPLITS: dict[str, tuple[int, ...]] = {"train": (1,), "val": (2,), "test": (3,)}
TEST_ONLY: dict[str, tuple[int, ...]] = {"test": (1,)}
ROLES = ("train", "val", "test")
# In the provenance of a dataset whose records have no ids: a user finds them by their rows.
ROW_NUMBERS = "by content, the file has none"
# What a receipt calls the task of a run with a loss of the user's own, and the score of its epochs:
# the highest is selected.
OWN_LOSS = "own loss"
NEGATIVE_LOSS = "negative loss"
TASKS = ("multi-label", "multi-class")


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Samples, labels, folds, and where they came from. Nothing writes to the arrays.

    Attributes:
        name: its name in the catalog, or the file's.
        X: (n, leads, time) float32, or (n, channels, height, width) uint8 or float32; may be
            memory-mapped.
        Y: (n, K) multi-hot, uint8. A multi-class sample has exactly one 1.
        classes: K names.
        folds: (n,) integers; `protocol` says which folds make up which split.
        ids: (n,) text, all different.
        patients: (n,) text; None if unknown.
        sex: (n,) "F", "M" or "" (unknown); or None.
        age: (n,) float32 years, NaN if unknown; or None.
        fs: samples per second; None for images.
        leads: names along the second axis; None for images.
        task: "multi-label" or "multi-class".
        provenance: source, version, licence, choices of the reader: plain values.
        warnings: what a user should know before trusting results.
        content: (n, 32) digests of the samples if they are known already, as from a cache.
    """

    name: str
    X: NDArray[Any]
    Y: NDArray[np.uint8]
    classes: tuple[str, ...]
    folds: NDArray[np.int64]
    ids: NDArray[np.str_]
    protocol: Mapping[str, tuple[int, ...]]
    task: str = "multi-label"
    patients: NDArray[np.str_] | None = None
    sex: NDArray[np.str_] | None = None
    age: NDArray[np.float32] | None = None
    fs: float | None = None
    leads: tuple[str, ...] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    content: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        _check(self)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self)} samples of {self.X.shape[1:]}, {self.task})"

    def rows(self, split: str) -> NDArray[np.int64]:
        """Return the row numbers of a split: "train", "val" or "test", as in `protocol`."""
        if split not in self.protocol:
            raise DataError(f"{self.name} has splits {', '.join(self.protocol)}; got {split!r}")
        return np.flatnonzero(np.isin(self.folds, self.protocol[split]))

    def take(self, rows: NDArray[np.int64]) -> Dataset:
        """Return a dataset of these rows alone, in this order."""
        per_row = {"X", "Y", "folds", "ids", "patients", "sex", "age", "content"}
        changed = {
            item.name: value[rows]
            for item in fields(self)
            if item.name in per_row and (value := getattr(self, item.name)) is not None
        }
        return replace(self, **changed)

    @property
    def units(self) -> str | None:
        """The unit of the samples, such as "mV"; None where the reader does not know it."""
        units = self.provenance.get("units")
        return units if isinstance(units, str) else None

    def name_record(self, row: int) -> str:
        """Return how a user finds a record: by its id, or by its row in a file without ids."""
        return f"row {row}" if self.provenance.get("ids") == ROW_NUMBERS else str(self.ids[row])

    @cached_property
    def digests(self) -> NDArray[np.uint8]:
        """The BLAKE2b digest of each sample's canonical bytes: (n, 32)."""
        return digest_samples(self.X) if self.content is None else self.content

    @cached_property
    def digest(self) -> str:
        """One digest of all that training uses; it does not depend on the order of the records.

        SHA-256 over a line of canonical JSON (classes, fs, leads, task), then, sorted, each
        sample's SHA-256 of content digest, labels, fold and id.
        """
        header = {
            "classes": list(self.classes),
            "fs": self.fs,
            "leads": None if self.leads is None else list(self.leads),
            "task": self.task,
        }
        samples = b"".join(sorted(self.record_digests))
        return digest_bytes(canonical_json(header) + b"\n" + samples)

    @cached_property
    def record_digests(self) -> tuple[bytes, ...]:
        """The SHA-256 of each record's content digest, labels, fold and id: n of 32 bytes."""
        return tuple(
            hashlib.sha256(
                content.tobytes() + labels.tobytes() + canonical_json([int(fold), str(name)])
            ).digest()
            for content, labels, fold, name in zip(
                self.digests, self.Y, self.folds, self.ids, strict=True
            )
        )

    def digest_split(self, split: str) -> str:
        """Return the SHA-256 over the sorted digests of a split's records."""
        records = b"".join(sorted(self.record_digests[row] for row in self.rows(split)))
        return digest_bytes(records)


def check_protocol(protocol: Mapping[str, tuple[int, ...]], where: str) -> None:
    """Refuse splits with unknown names, and a fold that is in two splits or twice in one."""
    if unknown := sorted({*protocol} - {*ROLES}):
        raise DataError(f"{where}: expected splits among {', '.join(ROLES)}, got {unknown[0]!r}")
    taken: dict[int, str] = {}
    for split, folds in protocol.items():
        for fold in folds:
            if fold in taken:
                raise DataError(
                    f"{where}: expected each fold in one split, got fold {fold} in {taken[fold]} "
                    f"and in {split}"
                )
            taken[fold] = split


def _check(data: Dataset) -> None:
    """Refuse a dataset that contradicts itself."""
    n, k = len(data.ids), len(data.classes)
    expected: dict[str, tuple[int, ...]] = {
        "Y": (n, k),
        "folds": (n,),
        "ids": (n,),
        "patients": (n,),
        "sex": (n,),
        "age": (n,),
        "content": (n, 32),
    }
    for name, shape in expected.items():
        value = getattr(data, name)
        if value is not None and value.shape != shape:
            raise DataError(f"{data.name}: expected {name} of shape {shape}, got {value.shape}")
    if n == 0:
        raise DataError(f"{data.name}: no records")
    if len(data.X) != n or data.X.ndim not in (3, 4):
        raise DataError(
            f"{data.name}: expected {n} samples of (leads, time) or (channels, height, width), "
            f"got shape {data.X.shape}"
        )
    if data.X.dtype not in (np.float32, np.uint8):
        raise DataError(f"{data.name}: expected samples as float32 or uint8, got {data.X.dtype}")
    if data.leads is not None and data.X.shape[1] != len(data.leads):
        raise DataError(
            f"{data.name}: {len(data.leads)} lead names for {data.X.shape[1]} leads of signal"
        )
    if data.Y.dtype != np.uint8 or data.Y.max(initial=0) > 1:
        raise DataError(f"{data.name}: expected labels of 0 and 1 as uint8, got {data.Y.dtype}")
    if data.task not in TASKS:
        raise DataError(f"{data.name}: expected a task of {', '.join(TASKS)}, got {data.task!r}")
    if data.task == "multi-class" and (data.Y.sum(axis=1) != 1).any():
        raise DataError(f"{data.name}: a multi-class sample has exactly one class")
    check_protocol(data.protocol, data.name)
    unique, counts = np.unique(data.ids, return_counts=True)
    if len(unique) < n:
        raise DataError(
            f"{data.name}: the id {str(unique[counts.argmax()])!r} occurs more than once"
        )
