"""A finished run as a page or a card shows it, read from its folder.

`receipt.json` and `trail.jsonl` must exist. A run without a validation set has no metrics, and a
user's own loop may write no log: what is missing is empty here, and its section is left out. Files
are read without validation and without torch, since a page also shows runs that are not valid,
and says so.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from seedless.core.bounded_reading import (
    MAX_JSON_BYTES,
    MAX_TOML_BYTES,
    parse_json,
    read_file,
    read_json_lines,
)
from seedless.core.digests import digest_value
from seedless.core.errors import RunError
from seedless.evaluate.predictions import FILE as PREDICTIONS
from seedless.evaluate.predictions import Predictions, read_predictions
from seedless.proof.trail import MAX_TRAIL_BYTES, MAX_TRAIL_VALUES

T = TypeVar("T")


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
            ("State SHA-256", bare_hex(weights.get("digest"))),
            ("MD5", weights.get("md5")),
        )
        return tuple((name, str(value)) for name, value in hashes if value)


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping, or an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def read_run(folder: Path, label: str) -> RunView:
    """Read the folder of a finished run."""
    content = _read(folder / "receipt.json", MAX_JSON_BYTES)
    if content is None:
        raise RunError(
            f"{folder} holds no receipt.json: expected the folder of a finished run, as "
            "'seedless train CONFIG --out RUN' leaves it"
        )
    receipt = _check_object(
        parse_json(content, str(folder / "receipt.json")), folder / "receipt.json"
    )
    trail = _read_records(folder / "trail.jsonl", _read_entry)
    if not trail:
        raise RunError(f"{folder} holds no trail.jsonl with entries: nothing can be compared")
    log = _read_records(folder / "log.jsonl", _read_log_line)
    # The receipt's, and not those of metrics.json, which anyone may have edited since.
    metrics = as_mapping(as_mapping(receipt.get("predicate")).get("metrics"))
    config = (_read(folder / "config.toml", MAX_TOML_BYTES) or b"").decode(errors="replace")
    predictions = read_predictions(folder) if (folder / PREDICTIONS).exists() else None
    return RunView(label, receipt, config, log, trail, metrics, predictions)


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


def bare_hex(digest: object) -> str:
    """Return the hex of ``"sha256:..."``, or the text as it is."""
    return str(digest or "").removeprefix("sha256:")


def _read(path: Path, max_bytes: int) -> bytes | None:
    try:
        return read_file(path, max_bytes)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from None


def _read_records(path: Path, read: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
    """Read a file of JSON lines, one record a line; a file that is not there has none."""
    if not path.exists():
        return ()
    records = []
    lines = read_json_lines(path, max_bytes=MAX_TRAIL_BYTES, max_values=MAX_TRAIL_VALUES)
    for number, (_, value) in enumerate(lines, start=1):
        where = f"{path}, line {number},"
        try:
            records.append(read(_check_object(value, where)))
        except KeyError as error:
            raise RunError(f"{where} lacks {error}") from None
        except (TypeError, OverflowError) as error:
            raise RunError(f"{where} holds a value of the wrong type: {error}") from None
    return tuple(records)


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


def _check_object(value: Any, where: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RunError(f"{where} should hold a JSON object, not a {type(value).__name__}")
    return value
