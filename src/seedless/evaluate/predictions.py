"""The predictions of a model for each record, with the digest of its weights: `predictions.npz`.

docs/receipt.md specifies the file. It is read without unpickling, and checked as a whole: the
arrays of a `Predictions` need no further check of shapes, types or NaN.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.array_files import NUMBERS, TEXT, parse_npz
from seedless.core.bounded_reading import read_file, shorten
from seedless.core.dataset import TASKS
from seedless.core.digests import digest, digest_value, is_digest
from seedless.core.errors import DataError, RunError, SeedlessError

FILE = "predictions.npz"
HEAD = ("classes", "task", "weights")
PARTS = ("ids", "probabilities", "labels", "features")

# Limits within which scoring predictions again takes neither much memory nor much time.
MAX_PREDICTIONS_BYTES = 2**28
MAX_CLASSES = 10_000
# Intervals are resampled from all records, which takes seconds for a million probabilities.
MAX_RECORDS = 2**19  # of all splits together
MAX_PROBABILITIES = 2**23  # of all splits together
MAX_FEATURES = 2_048  # the singular values of a split's features are computed
MAX_FEATURE_VALUES = 2**25
_MAX_SPLIT_NAME = 40


@dataclass(frozen=True, eq=False)
class SplitPredictions:
    """The predictions for the records of one split.

    Attributes:
        ids: (n,) names, no two alike.
        probabilities: (n, K) float64 in [0, 1].
        labels: (n, K) uint8 of 0 and 1.
        features: (n, D) float32, the input of the model's head; None where it declares no head.
    """

    ids: NDArray[np.str_]
    probabilities: NDArray[np.float64]
    labels: NDArray[np.uint8]
    features: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        _check_scored(self)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions of one model, by split.

    Attributes:
        classes: K names.
        weights: "sha256:..." of the model.
        splits: "validation" and "test", or "train" for a run that has neither.
        task: "multi-label" or "multi-class".
    """

    classes: tuple[str, ...]
    weights: str
    splits: Mapping[str, SplitPredictions]
    task: str = "multi-label"

    def __post_init__(self) -> None:
        _check(self)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the file, by name."""
        arrays: dict[str, NDArray[Any]] = {
            "classes": np.array(self.classes),
            "task": np.array(self.task),
            "weights": np.array(self.weights),
        }
        for name, scored in self.splits.items():
            parts = {part: getattr(scored, part) for part in PARTS}
            arrays |= {f"{name}_{part}": v for part, v in parts.items() if v is not None}
        return arrays

    @property
    def digest(self) -> str:
        """The digest of the content, as in the receipt."""
        return digest_predictions(self.arrays)


def digest_predictions(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the digest of a prediction file's content: names as text, numbers as bytes."""
    numbers = {name: array for name, array in arrays.items() if array.dtype.kind not in "US"}
    texts = {name: array.tolist() for name, array in arrays.items() if name not in numbers}
    return digest_value({"numbers": digest(numbers), "texts": digest_value(texts)})


def serialize(predictions: Predictions) -> bytes:
    """Return the bytes of the file, without compression and times, so that they repeat."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **predictions.arrays)
    return buffer.getvalue()


def can_keep_features(records: int, width: int) -> bool:
    """Whether the features of a split are few enough to be kept, and scored again."""
    return width <= MAX_FEATURES and records * width <= MAX_FEATURE_VALUES


def read_predictions(file: str | Path) -> Predictions:
    """Read a file of predictions. Those of a run are opened with the run, which is validated."""
    try:
        content = read_file(Path(file), MAX_PREDICTIONS_BYTES, follow_links=True)
    except FileNotFoundError:
        raise RunError(f"no file of predictions at {str(file)!r}") from None
    except OSError as error:
        raise RunError(f"cannot read {file}: {error.strerror}") from None
    return parse_predictions(content, str(file))


def parse_predictions(content: bytes, where: str = FILE) -> Predictions:
    """Return predictions from the bytes of a file; ``where`` is its name in messages."""
    arrays = parse_npz(content, where, kinds=_find_kinds)
    splits: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in arrays.items():
        split, _, part = name.rpartition("_")
        if name not in HEAD:
            splits.setdefault(split, {})[part] = array
    for name in (*HEAD, *(f"{split}_{part}" for split in splits for part in PARTS[:3])):
        if name not in arrays:
            raise RunError(f"{where} lacks {name!r}: it is not a whole file of predictions")
    head = {name: arrays[name] for name in HEAD}
    for name, shape in (("classes", 1), ("task", 0), ("weights", 0)):
        if head[name].dtype.kind != "U" or head[name].ndim != shape:
            raise RunError(f"{where}: expected {name} as text, got {head[name].dtype}")
    try:
        return Predictions(
            classes=tuple(head["classes"].tolist()),
            weights=str(head["weights"]),
            splits={name: SplitPredictions(**parts) for name, parts in splits.items()},
            task=str(head["task"]),
        )
    except SeedlessError as error:
        raise RunError(f"{where}: {error}") from None


def check_count(records: int, classes: int) -> None:
    """Refuse more predictions than can be scored, and validated again, within seconds."""
    if records > MAX_RECORDS or records * classes > MAX_PROBABILITIES:
        raise DataError(
            f"predictions of {records:,} records in {classes:,} classes; at most {MAX_RECORDS:,} "
            f"records and {MAX_PROBABILITIES:,} probabilities are scored, of all splits together: "
            "use smaller validation and test splits"
        )


def _find_kinds(name: str) -> str:
    """Return the kinds of dtypes that are read for an array's name; none for an unknown name."""
    split, _, part = name.rpartition("_")
    known = name in HEAD or (part in PARTS and 0 < len(split) <= _MAX_SPLIT_NAME)
    return NUMBERS + TEXT if known else ""


def _check(predictions: Predictions) -> None:
    classes, task = predictions.classes, predictions.task
    if not classes or len(set(classes)) < len(classes):
        raise DataError(
            f"expected names of classes, no two alike, got {shorten(str(list(classes)))}"
        )
    if len(classes) > MAX_CLASSES:
        raise DataError(f"{len(classes):,} classes; at most {MAX_CLASSES:,} are scored")
    if not is_digest(predictions.weights):
        raise DataError(f"expected the weights' digest, sha256:..., got {predictions.weights!r}")
    if task not in TASKS:
        raise DataError(f"expected a task of {', '.join(TASKS)}, got {task!r}")
    if not predictions.splits:
        raise DataError("expected the predictions of at least one split, got none")
    check_count(sum(len(scored.ids) for scored in predictions.splits.values()), len(classes))
    for name, scored in predictions.splits.items():
        if scored.labels.shape[1] != len(classes):
            raise DataError(
                f"{name}: {scored.labels.shape[1]} columns of labels for {len(classes)} classes"
            )


def _check_scored(scored: SplitPredictions) -> None:
    ids, probabilities = scored.ids, scored.probabilities
    labels, features = scored.labels, scored.features
    if ids.dtype.kind != "U" or ids.ndim != 1 or len(ids) == 0:
        raise DataError(f"expected ids as text (n,), got {ids.dtype} of shape {ids.shape}")
    unique, counts = np.unique(ids, return_counts=True)
    if len(unique) < len(ids):
        raise DataError(f"the id {str(unique[counts.argmax()])!r} occurs more than once")
    if probabilities.dtype != np.float64 or probabilities.ndim != 2:
        raise DataError(
            f"expected probabilities as float64 (n, K), got {probabilities.dtype} of shape "
            f"{probabilities.shape}"
        )
    if not ((probabilities >= 0) & (probabilities <= 1)).all():  # false for NaN too
        raise DataError("expected probabilities from 0 to 1, found NaN or others")
    if labels.dtype != np.uint8 or labels.max(initial=0) > 1:
        raise DataError(f"expected labels of 0 and 1 as uint8, got {labels.dtype}")
    if not len(ids) == len(probabilities) or labels.shape != probabilities.shape:
        raise DataError(
            f"expected as many ids, probabilities and labels, got shapes {ids.shape}, "
            f"{probabilities.shape} and {labels.shape}"
        )
    if features is None:
        return
    if features.dtype != np.float32 or features.ndim != 2 or len(features) != len(ids):
        raise DataError(
            f"expected features as float32 ({len(ids)}, D), got {features.dtype} of shape "
            f"{features.shape}"
        )
    if not can_keep_features(*features.shape):
        raise DataError(
            f"features of shape {features.shape}; at most {MAX_FEATURE_VALUES:,} values of one "
            f"split, and {MAX_FEATURES:,} of a record, are scored; leave the features out"
        )
    if not np.isfinite(features).all():
        raise DataError("expected finite features, found NaN or infinity")
