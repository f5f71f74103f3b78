"""A user's own arrays: an .npz file with samples, labels and folds.

| array | shape | meaning |
|---|---|---|
| X | (n, leads, time) or (n, channels, height, width) | samples: any real or integer type |
| Y | (n, K) of 0 and 1, or (n,) class numbers from 0 | several classes per sample, or one |
| folds | (n,) | 1..10 (8 to train, 9, 10), 1..3, or "train", "val", "test" |
| scale | () or (leads,) | optional: X is multiplied by it |
| ids, patients | (n,) | optional: text or whole numbers |
| classes, leads | (K,), (leads,) | optional: names |
| fs | () | optional: samples per second |
| units | () | optional: the unit of X times scale, such as mV |
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import ROW_NUMBERS, TEN_FOLDS, THREE_SPLITS, Dataset
from seedless.core.errors import DataError
from seedless.core.files import hash_file
from seedless.data.label_notes import describe_labels
from seedless.data.leads import spell_lead
from seedless.data.quality_checks import check_finite
from seedless.data.readers.content_ids import digest_in_blocks, name_by_content
from seedless.data.readers.npz_files import load_npz

REQUIRED = ("X", "Y", "folds")
OPTIONAL = ("scale", "ids", "patients", "classes", "leads", "fs", "units")
MAX_CLASSES = 10_000
_BLOCK = 256  # samples converted at a time
_FEWEST_ROWS_OF_AN_IMAGE = 16  # more than an ECG has leads
_NUMBERS = {"train": 1, "val": 2, "test": 3}


def read_arrays(path: str | Path) -> Dataset:
    """Return the dataset in an .npz file with the arrays X, Y and folds.

    X is (n, leads, time) or (n, channels, height, width). Y of (n,) class numbers makes a
    multi-class dataset, Y of (n, K) zeros and ones a multi-label one. ``folds`` (n,) has numbers
    from 1 to 10 (1-8 train, 9 val, 10 test), 1 to 3, or the words train, val and test. Without ids,
    records are named by their content, so that their order in the file does not matter. Python
    objects are refused, never unpickled.

    Example: ``np.savez("mine.npz", X=X, Y=Y, folds=folds)``, then ``read_arrays("mine.npz")``.
    """
    # [Step 1] The required arrays must exist, with one row for each record.
    path = Path(path)
    arrays = load_npz(path)
    missing = [name for name in REQUIRED if name not in arrays]
    if missing:
        remedy = {
            "X": "samples (n, leads, time)",
            "Y": "labels (n, K) of 0 and 1, or class numbers (n,)",
            "folds": "a number from 1 to 10 for each record (1-8 train, 9 val, 10 test), or the "
            "words train, val and test",
        }
        raise DataError(
            f"{path}: expected arrays {', '.join(REQUIRED)}, found {', '.join(arrays) or 'none'}; "
            "add " + "; ".join(f"{name}: {remedy[name]}" for name in missing)
        )
    lengths = {
        name: len(arrays[name]) if arrays[name].ndim else 0
        for name in (*REQUIRED, "ids", "patients")
        if name in arrays
    }
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"{path}: expected the same number of records in each array, found {found}")
    # [Step 2] Check and convert each array.
    samples = _convert(arrays["X"], arrays.get("scale"), path)
    labels, classes, task = _read_labels(arrays["Y"], _text(arrays, "classes", path), path)
    folds, protocol = _read_folds(arrays["folds"], path)
    ids = _text(arrays, "ids", path)
    rows = [f"row {row}" for row in range(len(samples))] if ids is None else ids.tolist()
    check_finite(samples, rows, str(path))
    content = digest_in_blocks(samples)
    leads = _text(arrays, "leads", path)
    units = _read_units(arrays.get("units"), path)
    warnings = _check_axes(samples.shape, leads, path)
    if "classes" not in arrays or task == "multi-label":
        warnings += describe_labels(labels, task)
    if unused := [name for name in arrays if name not in REQUIRED + OPTIONAL]:
        warnings.append(f"arrays that are not used: {', '.join(unused)}")
    return Dataset(
        name=path.stem,
        X=samples,
        Y=labels,
        classes=classes,
        folds=folds,
        ids=_name_records(content, labels, folds) if ids is None else ids,
        protocol=protocol,
        task=task,
        patients=_text(arrays, "patients", path),
        fs=_read_rate(arrays.get("fs"), path),
        leads=None if leads is None else tuple(spell_lead(name) for name in leads.tolist()),
        provenance={
            "source": path.name,
            "file": hash_file(path),
            "ids": ROW_NUMBERS if ids is None else "from the file",
            **({} if units is None else {"units": units}),
        },
        warnings=tuple(warnings),
        content=content,
    )


def _convert(raw: NDArray[Any], scale: NDArray[Any] | None, path: Path) -> NDArray[Any]:
    """Return samples times scale, computed in float64, as float32; uint8 images stay uint8."""
    if raw.ndim not in (3, 4) or raw.dtype.kind not in "iuf" or raw.size == 0:
        raise DataError(
            f"{path}: expected X as numbers (n, leads, time) or (n, channels, height, width), "
            f"found {raw.dtype} {raw.shape}"
        )
    if scale is None:
        if raw.dtype == np.float32 or (raw.ndim == 4 and raw.dtype == np.uint8):
            return np.ascontiguousarray(raw)
        scale = np.ones(())
    if scale.dtype.kind not in "iuf" or scale.shape not in ((), (1,), raw.shape[1:2]):
        raise DataError(
            f"{path}: expected scale as one number, or one for each of {raw.shape[1]} leads, "
            f"found {scale.dtype} {scale.shape}"
        )
    factor = scale.astype(np.float64).reshape(-1, *(1,) * (raw.ndim - 2))
    if not (np.isfinite(factor) & (factor != 0)).all():
        raise DataError(f"{path}: expected a scale that is finite and not 0, found {scale}")
    out = np.empty(raw.shape, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # infinities are refused later, by record
        for start in range(0, len(raw), _BLOCK):
            out[start : start + _BLOCK] = raw[start : start + _BLOCK] * factor
    return out


def _check_axes(shape: tuple[int, ...], leads: NDArray[np.str_] | None, path: Path) -> list[str]:
    """Return a warning where the axes of X look swapped; refuse them where the leads say so."""
    if len(shape) == 4:
        _, channels, height, width = shape
        if channels <= 4 or width > 4:
            return []
        return [
            f"X {shape} is read as {channels} channels of {height} x {width} pixels; if it is "
            "(n, height, width, channels), store X.transpose(0, 3, 1, 2)"
        ]
    _, rows, length = shape
    if leads is not None and len(leads) == length != rows:
        raise DataError(
            f"{path}: expected X as (n, leads, time), found {shape}, and {length} names in leads: "
            "store X.transpose(0, 2, 1)"
        )
    read_as = f"X {shape} is read as {rows:,} leads of {length:,} samples each; if"
    if leads is not None:
        return []
    if rows > length:
        return [f"{read_as} it is (n, time, leads), store X.transpose(0, 2, 1)"]
    if rows >= _FEWEST_ROWS_OF_AN_IMAGE and length <= 2 * rows:
        return [f"{read_as} these are grey images, store X[:, None]"]
    return []


def _describe_labels(raw: NDArray[Any]) -> str:
    """Return what labels are that cannot be read, and what to do where that is known."""
    if raw.dtype.kind in "US":
        return f"text {raw.shape}: classes, Y = np.unique(Y, return_inverse=True) numbers it"
    text = f"{raw.dtype} {raw.shape}"
    fractions = raw[raw != np.floor(raw)] if raw.dtype.kind == "f" else raw[:0]
    return f"{text}, such as {fractions.flat[0]}" if fractions.size else text


def _read_labels(
    raw: NDArray[Any], names: NDArray[np.str_] | None, path: Path
) -> tuple[NDArray[np.uint8], tuple[str, ...], str]:
    """Return labels (n, K), the K class names and the task."""
    if raw.ndim not in (1, 2) or raw.size == 0 or not _is_whole(raw, "biuf"):
        raise DataError(
            f"{path}: expected Y as whole numbers, (n, K) of 0 and 1 or (n,) class numbers, found "
            f"{_describe_labels(raw)}"
        )
    if raw.ndim == 2:
        if not np.isin(raw, (0, 1)).all():
            raise DataError(
                f"{path}: expected 0 and 1 in Y {raw.shape}, found values from {raw.min()} to "
                f"{raw.max()}; class numbers have the shape ({len(raw)},)"
            )
        count, labels = raw.shape[1], raw.astype(np.uint8)
    else:
        numbers = raw.astype(np.int64)
        count = int(numbers.max()) + 1 if names is None else len(names)
        if count > MAX_CLASSES:
            raise DataError(
                f"{path}: expected class numbers below {MAX_CLASSES:,}, found {numbers.max():,}"
            )
        if numbers.min() < 0 or numbers.max() >= count:
            raise DataError(
                f"{path}: expected class numbers from 0 to {count - 1}, found {numbers.min()} to "
                f"{numbers.max()}"
            )
        labels = np.zeros((len(raw), count), dtype=np.uint8)
        labels[np.arange(len(raw)), numbers] = 1
    if names is not None and len(set(names.tolist())) < len(names):
        raise DataError(f"{path}: expected names in classes that differ, found one twice")
    if names is not None and len(names) != count:
        raise DataError(f"{path}: {len(names)} names in classes for {count} classes in Y")
    class_names = map(str, range(count)) if names is None else names.tolist()
    return labels, tuple(class_names), "multi-label" if raw.ndim == 2 else "multi-class"


def _is_whole(raw: NDArray[Any], kinds: str) -> bool:
    return raw.dtype.kind in kinds and bool((np.isfinite(raw) & (raw == np.floor(raw))).all())


def _read_folds(
    raw: NDArray[Any], path: Path
) -> tuple[NDArray[np.int64], dict[str, tuple[int, ...]]]:
    """Return fold numbers (n,), and which folds make up which split."""
    found = np.unique(raw).tolist() if raw.ndim == 1 else [f"shape {raw.shape}"]
    if raw.ndim == 1 and raw.dtype.kind == "U" and set(found) <= set(_NUMBERS):
        return np.array([_NUMBERS[name] for name in raw.tolist()]), THREE_SPLITS
    if raw.ndim == 1 and raw.dtype.kind in "iuf" and set(found) <= set(range(1, 11)):
        return raw.astype(np.int64), choose_protocol(raw)
    raise DataError(
        f"{path}: expected folds (n,) from 1 to 10, from 1 to 3, or train, val and test; found "
        + ", ".join(map(str, found[:12]))
    )


def choose_protocol(folds: NDArray[Any]) -> dict[str, tuple[int, ...]]:
    """Return the splits of arrays with these folds (n,): three splits, or ten folds.

    >>> import numpy as np
    >>> choose_protocol(np.array([1, 3]))
    {'train': (1,), 'val': (2,), 'test': (3,)}
    """
    return THREE_SPLITS if set(np.unique(folds).tolist()) <= {1, 2, 3} else TEN_FOLDS


def _read_rate(raw: NDArray[Any] | None, path: Path) -> float | None:
    if raw is None:
        return None
    if raw.size != 1 or raw.dtype.kind not in "iuf" or not 0 < raw.item() < np.inf:
        raise DataError(f"{path}: expected fs as one number above 0, found {raw}")
    return float(raw.item())


def _read_units(raw: NDArray[Any] | None, path: Path) -> str | None:
    """Return the unit of the samples; "mv" in any case is "mV"."""
    if raw is None:
        return None
    if raw.size != 1 or raw.dtype.kind != "U":
        raise DataError(f'{path}: expected units as one text, such as "mV", found {raw}')
    unit = str(raw.item()).strip()
    return "mV" if unit.lower() == "mv" else unit


def _text(arrays: dict[str, NDArray[Any]], name: str, path: Path) -> NDArray[np.str_] | None:
    """Return an optional array of names as text; 3.0 becomes "3"."""
    raw = arrays.get(name)
    if raw is None:
        return None
    if _is_whole(raw, "f"):
        raw = raw.astype(np.int64)
    if raw.ndim != 1 or raw.dtype.kind not in "iuU":
        raise DataError(
            f"{path}: expected {name} as text or whole numbers, found {raw.dtype} {raw.shape}"
        )
    return raw.astype(np.str_)


def _name_records(
    content: NDArray[np.uint8], labels: NDArray[np.uint8], folds: NDArray[np.int64]
) -> NDArray[np.str_]:
    """Return ids such as "9/0f3a5c...": the fold and 16 hexadecimal digits of the content."""
    names = np.empty(len(folds), dtype="U40")
    for fold in np.unique(folds):
        rows = np.flatnonzero(folds == fold)
        names[rows] = name_by_content(content[rows], labels[rows], f"{fold}/")
    return names
