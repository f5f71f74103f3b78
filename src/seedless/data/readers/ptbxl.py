"""PTB-XL (Wagner et al., Scientific Data 2020): its WFDB records, labelled by its tables.

Folder layout: ``ptbxl_database.csv``, ``scp_statements.csv``, ``records100/`` and ``records500/``.
"""

from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import Dataset
from seedless.core.errors import DataError
from seedless.core.files import hash_file
from seedless.core.registry import choose
from seedless.data.leads import get_lead_set, select_leads
from seedless.data.quality_checks import check_signal
from seedless.data.readers.ecg_strip import SECONDS
from seedless.data.readers.ptbxl_labels import FILES, STATEMENTS, TABLE, read_labels
from seedless.data.readers.wfdb_records import read_header, read_signal
from seedless.data.resample import SHORT_RECORD_TREATMENTS, fit_length


def read_ptbxl(
    folder: str | Path,
    *,
    fs: int = 100,
    task: str = "rhythm",
    leads: str = "12",
    short: str = "refuse",
) -> Dataset:
    """Read PTB-XL as samples (n, leads, 10 fs) in the records' own units, folds as `strat_fold`.

    ``fs`` is 100 or 500 Hz, ``task`` "rhythm" or "superclass", ``leads`` "12" or "6". A record
    under 10 s is refused (``short="refuse"``) or padded with zeros (``"pad"``). Records without a
    label are kept.
    """
    folder, wanted = Path(folder), get_lead_set(leads)
    choose("treatment of short records", short, SHORT_RECORD_TREATMENTS)
    *tables, records = list_sources(folder, fs)
    table = tables[0]
    labels = read_labels(table, task=task)
    if fs not in labels.files:
        raise DataError(f"{table}: the column {FILES[fs]}, needed at {fs} Hz, is missing")
    if not records.is_dir():
        raise DataError(f"{records}: no such folder; fetch it, or read at the other rate")
    paths = [
        _resolve(folder, name, f"{table}: ecg_id {record}")
        for name, record in zip(labels.files[fs], labels.ids, strict=True)
    ]
    _refuse_missing(folder, paths)
    samples, lengths, unit = _read_signals(folder, paths, wanted, fs, short)
    warnings, length = list(labels.warnings), SECONDS * fs
    if (lengths < length).any():
        warnings.append(f"records under 10 s, filled up with zeros: {(lengths < length).sum()}")
    if (lengths > length).any():
        warnings.append(f"records over 10 s, cut after 10 s: {(lengths > length).sum()}")
    return Dataset(
        name=labels.name,
        X=samples,
        Y=labels.Y,
        classes=labels.classes,
        folds=labels.folds,
        ids=labels.ids,
        protocol=labels.protocol,
        patients=labels.patients,
        sex=labels.sex,
        age=labels.age,
        fs=float(fs),
        leads=wanted,
        provenance={
            "source": "PTB-XL",
            "licence": "CC BY 4.0",
            "tables": {path.name: hash_file(path) for path in tables if path.exists()},
            "task": task,
            "label rule": "a code counts when present, whatever its likelihood",
            "age": "over 89 (300 in the source) is kept as 90",
            "short": short,
            "units": unit,
        },
        warnings=tuple(warnings),
    )


def _read_signals(
    folder: Path, paths: list[Path], leads: tuple[str, ...], fs: int, short: str
) -> tuple[NDArray[np.float32], NDArray[np.int64], str]:
    """Return the samples (n, leads, 10 fs), each record's length in its file, and the one unit."""
    samples = np.empty((len(paths), len(leads), SECONDS * fs), dtype=np.float32)
    lengths = np.empty(len(paths), dtype=np.int64)
    units: dict[str, str] = {}  # unit -> the first record in it
    for row, path in enumerate(paths):
        header = read_header(path)
        if header.fs != fs:
            raise DataError(f"{header.where}: expected a rate of {fs} Hz, found {header.fs:g}")
        signal = select_leads(read_signal(header), header.leads, leads, header.where)
        check_signal(signal, leads, header.where)
        samples[row] = fit_length(signal, SECONDS * fs, header.where, short)
        lengths[row] = signal.shape[1]
        for item in header.signals:
            if not item.calibrated:
                raise DataError(f"{header.where}: lead {item.lead} has a gain of 0: not calibrated")
            units.setdefault("mV" if item.units.lower() == "mv" else item.units, header.where)
    if len(units) > 1:
        found = ", ".join(f"{unit} in {where}" for unit, where in units.items())
        raise DataError(f"{folder}: records in different units: {found}")
    return samples, lengths, next(iter(units))


def list_sources(folder: str | Path, fs: int = 100) -> list[Path]:
    """Return the files that the dataset is read from: the two tables and the folder of records."""
    if fs not in FILES:
        raise DataError(f"PTB-XL comes at 100 and 500 Hz; got fs={fs}")
    return [Path(folder) / name for name in (TABLE, STATEMENTS, f"records{fs}")]


def _resolve(folder: Path, name: str, where: str) -> Path:
    """Return a record's path, which must stay inside the folder."""
    inside = PurePosixPath(name)
    if not name or "\0" in name or inside.is_absolute() or ".." in inside.parts:
        raise DataError(f"{where}: expected a path inside {folder}, found {name!r}")
    return folder / inside


def _refuse_missing(folder: Path, paths: list[Path]) -> None:
    """Refuse a folder without some record files, before any is read; the error counts them."""
    files = [Path(f"{path}{suffix}") for path in paths for suffix in (".hea", ".dat")]
    missing = [file for file in files if not file.is_file()]
    if missing:
        shown = ", ".join(str(file.relative_to(folder)) for file in missing[:5])
        more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
        raise DataError(
            f"{folder}: {len(missing):,} of {len(files):,} record files are missing: {shown}{more}"
            "; `seedless data fetch ptb-xl` gets what is missing"
        )
