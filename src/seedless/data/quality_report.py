"""The report of a quality check: a record, plain values for JSON, and a table to read."""

from dataclasses import asdict, dataclass
from typing import Any

from seedless.core.display import escape_text


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
        values = asdict(self)
        for name in ("folds", "fold_counts"):
            values[name] = {str(fold): value for fold, value in values[name].items()}
        for name in ("shape", "classes", "warnings"):
            values[name] = None if values[name] is None else list(values[name])
        return values

    def __str__(self) -> str:
        return _tabulate(self)


def _tabulate(report: QualityReport) -> str:
    """Return the report as text: one row for each class, one column for each fold and split."""
    columns = {"class": [*map(escape_text, report.classes), "none of these", "records"]}
    if len(report.folds) > len(report.splits):
        for fold, size in report.folds.items():
            counts = report.fold_counts[fold]
            columns[str(fold)] = [*map(str, counts.values()), "", str(size)]
    for split, size in report.splits.items():
        numbers = [*report.counts[split].values(), report.unlabelled[split], size]
        columns[split] = list(map(str, numbers))
    widths = {head: max(map(len, [head, *cells])) for head, cells in columns.items()}
    rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
    lines = [f"{escape_text(report.name)}: {report.records} records" + _describe(report.shape)]
    for row in rows:
        cells = zip(row, widths.values(), strict=True)
        first, *rest = [cell.rjust(width) for cell, width in cells]
        lines.append("  ".join([first.strip().ljust(widths["class"]), *rest]).rstrip())
    if report.signals is not None:
        lines += _describe_signals(report.signals)
    lines += [f"warning: {escape_text(text)}" for text in report.warnings]
    return "\n".join(lines)


def _describe_signals(signals: SignalQuality) -> list[str]:
    lines = [
        f"values from {_number(signals.lowest)} to {_number(signals.highest)}, "
        f"{signals.missing} missing",
        f"records with a constant lead or channel: {signals.flat}",
    ]
    if signals.duplicates is not None:
        lines.append(f"records that repeat another's content: {signals.duplicates}")
    if signals.einthoven is not None:
        lines.append(f"II - I - III: off by {signals.einthoven:.2g} at most in the median record")
    return lines


def _describe(shape: tuple[int, ...] | None) -> str:
    return ", labels only" if shape is None else f" of {' x '.join(map(str, shape))}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
