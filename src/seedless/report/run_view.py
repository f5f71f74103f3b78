"""A finished run as a page or a card shows it, made from the content of its files.

A run without a validation set has no validation scores: what is missing is empty here, and its
section is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from seedless.core.digests import digest_value, get_hex
from seedless.core.errors import RunError
from seedless.evaluate.predictions import Predictions


@dataclass(frozen=True)
class LogLine:
    """What was printed after an epoch; ``score`` is None where nothing was validated."""

    epoch: int
    step: int
    loss: float
    score: float | None


@dataclass(frozen=True)
class TrailEntry:
    """An entry of the hash chain.

    ``digest`` covers the state and all entries before, with the settings and the environment in the
    first. ``state`` covers the ``tensors`` tensors alone, so that runs with other settings and the
    same bits are seen as such.
    """

    epoch: int
    step: int
    digest: str
    state: str
    tensors: int


@dataclass(frozen=True)
class RunView:
    """A run with the name it has on the page. It holds no path, so that a page shows none."""

    label: str
    receipt: Mapping[str, Any]
    config_text: str
    log: tuple[LogLine, ...]
    trail: tuple[TrailEntry, ...]
    metrics: Mapping[str, Any]
    predictions: Predictions | None = None

    @property
    def predicate(self) -> Mapping[str, Any]:
        """The claims of the receipt."""
        return as_mapping(self.receipt.get("predicate"))

    @property
    def settings(self) -> Mapping[str, Any]:
        """The configuration in the receipt, defaults included."""
        return as_mapping(as_mapping(self.predicate.get("config")).get("values"))

    @property
    def is_portable(self) -> bool:
        """Whether the run was computed in the arithmetic that is the same on every processor."""
        return as_mapping(self.settings.get("execution")).get("arithmetic") == "portable"

    @property
    def environment(self) -> Mapping[str, Any]:
        """The source code, versions, hardware, threads and flags of the run."""
        source = self.predicate.get("source")
        return {
            **({"source": source} if source else {}),
            **as_mapping(self.predicate.get("environment")),
        }

    @property
    def hashes(self) -> tuple[tuple[str, str], ...]:
        """The final weights three ways: (what is hashed, hex). Missing ones are left out."""
        subjects = self.receipt.get("subject") or [{}]
        weights = as_mapping(self.predicate.get("weights"))
        hashes = (
            ("File SHA-256", as_mapping(as_mapping(subjects[0]).get("digest")).get("sha256")),
            ("State SHA-256", get_hex(weights.get("digest") or "")),
            ("MD5", weights.get("md5")),
        )
        return tuple((name, str(value)) for name, value in hashes if value)


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping, or an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def make_view(
    label: str,
    receipt: Mapping[str, Any],
    config_text: str,
    trail: Sequence[Mapping[str, Any]],
    log: Sequence[Mapping[str, Any]],
    predictions: Predictions | None = None,
) -> RunView:
    """Return the view of a run, whose files were read and validated by the caller."""
    if not trail:
        raise RunError(f"{label} has no trail, as a stripped run: nothing can be compared")
    return RunView(
        label,
        receipt,
        config_text,
        tuple(map(_read_log_line, log)),
        tuple(map(_read_entry, trail)),
        as_mapping(as_mapping(receipt.get("predicate")).get("metrics")),
        predictions,
    )


def find_difference(a: RunView, b: RunView) -> int | None:
    """Return the first epoch whose state differs or that only one has; None where all are equal."""
    for left, right in zip_longest(a.trail, b.trail):
        if left is None or right is None:
            return int((left or right).epoch)
        if left.state != right.state:
            return left.epoch
    return None


def same_bits(a: RunView, b: RunView) -> bool:
    """Return whether the states of every epoch and the final weights of two runs are equal."""
    return find_difference(a, b) is None and a.hashes == b.hashes


def _read_entry(line: Mapping[str, Any]) -> TrailEntry:
    state = line["state"]
    return TrailEntry(
        int(line["epoch"]), int(line["step"]), str(line["digest"]), digest_value(state), len(state)
    )


def _read_log_line(line: Mapping[str, Any]) -> LogLine:
    score = line.get("score")
    return LogLine(
        int(line["epoch"]),
        int(line["step"]),
        float(line["loss"]),
        None if score is None else float(score),
    )
