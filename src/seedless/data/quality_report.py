"""The report of a quality check: a record, plain values for JSON, and a table to read."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class SignalQuality:
    """Findings over all signals. Values are in the dataset's own units."""

    missing: int  # samples that are NaN or infinite
    flat: int  # records with a lead, or channel, that is constant
    lowest: float | None  # None if no sample is a number
    highest: float | None
    einthoven: float | None  # median over records of max |II - I - III|; None without limb leads
    duplicates: int | None  # records that repeat another's content; None if samples are missing


@dataclass(frozen=True)
class QualityReport:
    """The result of `check_quality`; ``shape`` and ``signals`` are None for labels alone."""

    name: str
    records: int
    shape: tuple[int, ...] | None
    classes: tuple[str, ...]
    splits: dict[str, int]
    folds: dict[int, int]
    counts: dict[str, dict[str, int]]  # split -> class -> records
    fold_counts: dict[int, dict[str, int]]  # fold -> class -> records
    unlabelled: dict[str, int]  # split -> records without any class
    signals: SignalQuality | None
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: folds become text keys, tuples lists."""
        found = asdict(self)
        for name in ("folds", "fold_counts"):
            found[name] = {str(fold): value for fold, value in found[name].items()}
        for name in ("shape", "classes", "warnings"):
            found[name] = None if found[name] is None else list(found[name])
        return found

    def __str__(self) -> str:
        return _tabulate(self)


def _tabulate(found: QualityReport) -> str:
    """Return the report as text: one row for each class, one column for each fold and split."""
    columns = {"class": [*found.classes, "none of these", "records"]}
    if len(found.folds) > len(found.splits):
        for fold, size in found.folds.items():
            counts = found.fold_counts[fold]
            columns[str(fold)] = [*map(str, counts.values()), "", str(size)]
    for split, size in found.splits.items():
        numbers = [*found.counts[split].values(), found.unlabelled[split], size]
        columns[split] = list(map(str, numbers))
    widths = {head: max(map(len, [head, *cells])) for head, cells in columns.items()}
    rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
    lines = [f"{found.name}: {found.records} records" + _describe(found.shape)]
    for row in rows:
        cells = zip(row, widths.values(), strict=True)
        first, *rest = [cell.rjust(width) for cell, width in cells]
        lines.append("  ".join([first.strip().ljust(widths["class"]), *rest]).rstrip())
    if found.signals is not None:
        lines += _describe_signals(found.signals)
    lines += [f"warning: {text}" for text in found.warnings]
    return "\n".join(lines)


def _describe_signals(found: SignalQuality) -> list[str]:
    lines = [
        f"values from {_number(found.lowest)} to {_number(found.highest)}, {found.missing} missing",
        f"records with a constant lead or channel: {found.flat}",
    ]
    if found.duplicates is not None:
        lines.append(f"records that repeat another's content: {found.duplicates}")
    if found.einthoven is not None:
        lines.append(f"II - I - III: off by {found.einthoven:.2g} at most in the median record")
    return lines


def _describe(shape: tuple[int, ...] | None) -> str:
    return ", labels only" if shape is None else f" of {' x '.join(map(str, shape))}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
