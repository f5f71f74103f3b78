"""Check the quality of a dataset: counts by split and class, signal checks, warnings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import Dataset
from seedless.core.errors import DataError
from seedless.data.quality_report import QualityReport, SignalQuality

if TYPE_CHECKING:
    from seedless.data.readers.ptbxl_labels import Labels

_BLOCK = 64  # samples read at a time: a memory-mapped set is never in memory as a whole
_LIMB = ("I", "II", "III")
_TOLERANCE = 0.1  # of a record's largest value: far above rounding, far below a swapped lead


def check_quality(data: Dataset) -> QualityReport:
    """Return counts of records and classes by split and fold, signal checks, and warnings.

    Example: ``print(check_quality(load(DataConfig())))``.
    """
    signals, warnings = _check_signals(data)
    return _count(data, tuple(data.X.shape[1:]), signals, warnings)


def check_label_quality(labels: Dataset | Labels) -> QualityReport:
    """Return the counts and warnings of labels that were read without signals."""
    return _count(labels, None, None, [])


def check_signal(signal: NDArray[np.float32], leads: Sequence[str], where: str) -> None:
    """Refuse a signal (leads, time) with missing samples; the error names lead and sample."""
    finite = np.isfinite(signal)
    if finite.all():
        return
    row = int(np.flatnonzero(~finite.all(axis=1))[0])
    bad = np.flatnonzero(~finite[row])
    if len(bad) == signal.shape[1]:
        raise DataError(f"{where}: lead {leads[row]} holds no valid sample; remove the record")
    raise DataError(
        f"{where}: lead {leads[row]} misses {len(bad)} of {signal.shape[1]} samples, the first at "
        f"{bad[0]} (NaN or infinite); repair or remove the record"
    )


def check_finite(samples: NDArray[Any], ids: Sequence[str], where: str) -> None:
    """Refuse samples (n, ...) with NaN or infinity; the error names the first such record."""
    if samples.dtype.kind != "f":
        return
    bad = [
        start + int(row)
        for start in range(0, len(samples), _BLOCK)
        for row in _not_finite(samples[start : start + _BLOCK])
    ]
    if bad:
        raise DataError(
            f"{where}: record {ids[bad[0]]} holds NaN or infinity ({len(bad)} of {len(samples)} "
            "records do); repair or remove them"
        )


def _not_finite(block: NDArray[Any]) -> NDArray[np.int64]:
    return np.flatnonzero(~np.isfinite(block.reshape(len(block), -1)).all(axis=1))


def _check_signals(data: Dataset) -> tuple[SignalQuality, list[str]]:
    """Return the findings about the samples and warnings, from one pass over them in blocks."""
    names = list(data.leads or ())
    limb = [names.index(lead) for lead in _LIMB] if set(_LIMB) <= set(names) else None
    parts = [
        _measure(data.X[start : start + _BLOCK], limb) for start in range(0, len(data), _BLOCK)
    ]
    missing, flat, lowest, highest, residual, amplitude = np.concatenate(parts).T
    warnings = []
    if missing.any():
        warnings.append(f"records with NaN or infinity: {np.count_nonzero(missing)}")
    if flat.any():
        warnings.append(f"records with a constant lead or channel: {np.count_nonzero(flat)}")
    broken = np.count_nonzero(residual > _TOLERANCE * amplitude)
    if broken:
        warnings.append(
            f"records whose limb leads break Einthoven's law, III = II - I: {broken} "
            "(leads misnamed, or each scaled by itself)"
        )
    repeated = None if missing.any() else _find_repeats(data, warnings)
    return SignalQuality(
        missing=int(missing.sum()),
        flat=int(flat.sum()),
        lowest=_number(lowest.min()),
        highest=_number(highest.max()),
        einthoven=_number(np.median(residual)) if limb is not None else None,
        duplicates=repeated,
    ), warnings


def _measure(samples: NDArray[Any], limb: list[int] | None) -> NDArray[np.float64]:
    """Return a row a record: missing, flat, lowest, highest, Einthoven residual, amplitude."""
    block = samples.reshape(*samples.shape[:2], -1).astype(np.float64)
    finite = np.isfinite(block)
    lowest = np.where(finite, block, np.inf).min(axis=2)
    highest = np.where(finite, block, -np.inf).max(axis=2)
    residual = amplitude = np.full(len(block), np.nan)
    if limb is not None:
        one, two, three = np.moveaxis(block[:, limb], 1, 0)
        with np.errstate(invalid="ignore"):  # infinities are counted above
            residual = np.abs(two - one - three).max(axis=1)
        amplitude = np.abs(block[:, limb]).max(axis=(1, 2))
    columns = [
        (~finite).sum(axis=(1, 2)),
        (lowest == highest).any(axis=1),
        lowest.min(axis=1),
        highest.max(axis=1),
        residual,
        amplitude,
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def _number(value: np.float64) -> float | None:
    return float(value) if np.isfinite(value) else None


def _find_repeats(data: Dataset, warnings: list[str]) -> int:
    """Return how many records repeat another's content; warn, also of those in two splits."""
    _, group = np.unique(data.digests, axis=0, return_inverse=True)
    group = group.ravel()
    repeated = len(data) - 1 - int(group.max())
    if repeated:
        warnings.append(
            f"records that repeat another's content: {repeated} ({_describe_shared(data, group)})"
        )
    return repeated


def _describe_shared(data: Dataset, group: NDArray[np.int64]) -> str:
    """Return how many contents are in two splits, with the names of two such records."""
    splits = _split_numbers(data)
    across = _count_shared(group, splits)
    if across == 0:
        return "none of these contents is in two splits"
    ordered = np.lexsort((splits, group))
    first, second = next(
        (int(one), int(two))
        for one, two in pairwise(ordered[splits[ordered] >= 0])
        if group[one] == group[two] and splits[one] != splits[two]
    )
    roles = list(data.protocol)
    names = " and ".join(
        f"{data.name_record(row)} ({roles[splits[row]]})" for row in (first, second)
    )
    number = "1 content is" if across == 1 else f"{across:,} contents are"
    return f"{number} in two splits, for example {names}"


def _split_numbers(labels: Dataset | Labels) -> NDArray[np.int64]:
    """Return each record's split as a number, -1 for a fold that no split claims."""
    numbers = np.full(len(labels.folds), -1, dtype=np.int64)
    for number, folds in enumerate(labels.protocol.values()):
        numbers[np.isin(labels.folds, folds)] = number
    return numbers


def _count_shared(group: NDArray[np.int64], splits: NDArray[np.int64]) -> int:
    """Return how many groups have records in more than one split."""
    claimed = splits >= 0
    pairs = np.unique(np.stack([group[claimed], splits[claimed]]), axis=1)
    return int((np.unique(pairs[0], return_counts=True)[1] > 1).sum())


def _count(
    labels: Dataset | Labels,
    shape: tuple[int, ...] | None,
    signals: SignalQuality | None,
    warnings: list[str],
) -> QualityReport:
    splits = {
        name: np.flatnonzero(np.isin(labels.folds, folds))
        for name, folds in labels.protocol.items()
    }
    folds = {int(fold): np.flatnonzero(labels.folds == fold) for fold in np.unique(labels.folds)}
    counts = {name: _count_classes(labels, rows) for name, rows in splits.items()}
    return QualityReport(
        name=labels.name,
        records=len(labels.Y),
        shape=shape,
        classes=labels.classes,
        splits={name: len(rows) for name, rows in splits.items()},
        folds={fold: len(rows) for fold, rows in folds.items()},
        counts=counts,
        fold_counts={fold: _count_classes(labels, rows) for fold, rows in folds.items()},
        unlabelled={
            name: int((labels.Y[rows].sum(axis=1) == 0).sum()) for name, rows in splits.items()
        },
        signals=signals,
        warnings=(*labels.warnings, *_warn_about_labels(labels, counts, splits), *warnings),
    )


def _count_classes(labels: Dataset | Labels, rows: NDArray[np.int64]) -> dict[str, int]:
    totals = labels.Y[rows].sum(axis=0, dtype=np.int64)
    return dict(zip(labels.classes, totals.tolist(), strict=True))


def _warn_about_labels(
    labels: Dataset | Labels,
    counts: dict[str, dict[str, int]],
    splits: dict[str, NDArray[np.int64]],
) -> list[str]:
    warnings = []
    for split, records in counts.items():
        absent = [name for name, count in records.items() if count == 0]
        if len(splits[split]) == 0:
            warnings.append(f"{split} has no records")
        elif absent:
            weight = "weight 1, " if split == "train" else ""
            left = len(records) - len(absent)
            over = f"the {left} others" if left > 1 else "the other" if left else "none"
            warnings.append(
                f"classes absent from {split}: {len(absent)} ({', '.join(absent)}): {weight}AUC "
                f"undefined, macro averages over {over}"
            )
    stray = int((_split_numbers(labels) < 0).sum())
    if stray:
        warnings.append(f"records in folds that belong to no split: {stray}")
    if labels.patients is not None:
        known = np.flatnonzero(labels.patients != "")
        _, group = np.unique(labels.patients[known], return_inverse=True)
        shared = _count_shared(group, _split_numbers(labels)[known])
        if shared:
            warnings.append(f"patients with records in two splits: {shared}")
    return warnings
