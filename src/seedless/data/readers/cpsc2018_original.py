"""CPSC2018 as first published: one MATLAB struct per record, labels in REFERENCE.csv.

The struct ``ECG`` has ``sex``, ``age`` and ``data``, 12 leads by time in mV. It states neither its
leads nor its rate: both come from the challenge's description (I, II, III, aVR, aVL, aVF, V1-V6;
500 Hz), and the dataset's provenance says so.
"""

import csv
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import TEST_ONLY, Dataset
from seedless.core.errors import DataError
from seedless.data.catalog import find_entry
from seedless.data.leads import TWELVE, get_lead_set
from seedless.data.readers.ecg_strip import SECONDS, cut_strip, parse_age, parse_sex

RATE = 500
# Label 1 is the first. The names are PTB-XL's, so that classes of a model trained there match;
# the challenge's own are Normal, AF, I-AVB, LBBB, RBBB, PAC, PVC, STD, STE.
CLASSES = find_entry("cpsc2018-original").classes
_COLUMNS = ("Recording", "First_label", "Second_label", "Third_label")


def read_cpsc2018_original(
    folder: str | Path,
    *,
    fs: int = 100,
    leads: str = "12",
    short: str = "pad",
    skip: Collection[str] = (),
) -> Dataset:
    """Return every A record below ``folder``: its first 10 s, resampled from 500 Hz to ``fs``.

    Records shorter than 10 s are padded with zeros (``short="pad"``) or refused (``"refuse"``);
    under 5 s they are always refused. Q records belong to CPSC-Extra, another collection: they are
    left out and counted in the provenance, as are the records named in ``skip``. Without a
    REFERENCE.csv the records have no label, and a warning says so.
    """
    # [Step 1] Find the records and their labels.
    folder = Path(folder)
    files, extra, skipped = _find(folder, skip)
    labels, missing = _labels(folder, list(files))
    # [Step 2] Read the first 10 s of each record.
    wanted = get_lead_set(leads)
    strips = np.empty((len(files), len(wanted), SECONDS * fs), dtype=np.float32)
    sex, age = [], []
    for row, (record, path) in enumerate(files.items()):
        where = f"{path} (record {record})"
        signal, record_sex, record_age = read_struct(path, where)
        strips[row] = cut_strip(
            signal, TWELVE, rate=RATE, fs=fs, leads=leads, where=where, short=short
        )
        sex.append(record_sex)
        age.append(record_age)
    warnings = []
    if labels is None:
        warnings.append(f"no REFERENCE.csv under {folder.name}: the records carry no label")
    if missing:
        warnings.append(f"REFERENCE.csv lists {missing} records that are not in {folder.name}")
    return Dataset(
        name="cpsc2018-original",
        X=strips,
        Y=np.zeros((len(files), len(CLASSES)), dtype=np.uint8) if labels is None else labels,
        classes=CLASSES,
        folds=np.ones(len(files), dtype=np.int64),
        ids=np.array(list(files)),
        protocol=TEST_ONLY,
        sex=np.array(sex),
        age=np.array(age, dtype=np.float32),
        fs=float(fs),
        leads=wanted,
        provenance={
            "units": "mV",
            "source": "CPSC2018, MATLAB structs",
            "licence": find_entry("cpsc2018-original").licence,
            "source_rate": RATE,
            "source_rate_from": "the challenge's description; the files state none",
            "leads_from": "the challenge's documented order; the files name none",
            "window": f"the first {SECONDS} s; short records: {short}",
            "excluded": {"CPSC-Extra (Q records)": extra, "asked for (skip)": skipped},
            "labelled": labels is not None,
        },
        warnings=tuple(warnings),
    )


def read_struct(path: Path, where: str) -> tuple[NDArray[np.float32], str, float]:
    """Return (12, time) in mV, sex and age of one MATLAB struct."""
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=["ECG", "val"])
    except Exception as error:  # scipy raises errors of many types on a damaged file
        raise DataError(f"{where}: not a readable MATLAB file: {error}; fetch it again") from error
    if "ECG" not in content:
        hint = (
            "; this is the PhysioNet-Challenge form: read its folder with read_challenge"
            if "val" in content
            else ""
        )
        raise DataError(f"{where}: expected a struct named ECG, found none{hint}")
    struct = content["ECG"]
    fields = struct.dtype.names or ()
    absent = [name for name in ("sex", "age", "data") if name not in fields]
    if absent or struct.size != 1:
        raise DataError(
            f"{where}: expected one struct with sex, age and data, found {struct.size} with "
            f"{', '.join(fields) or 'no fields'}"
        )
    data = np.asarray(struct["data"].item())
    if data.ndim != 2 or len(data) != len(TWELVE) or data.dtype.kind not in "fiu":
        raise DataError(
            f"{where}: expected data of 12 leads by time, found {data.dtype} of shape {data.shape}"
        )
    sex, age = (_text(struct[name].item()) for name in ("sex", "age"))
    return data.astype(np.float32), parse_sex(sex), parse_age(age)


def _text(value: Any) -> str:
    """Return the one value of a MATLAB cell as text; "" where it is empty."""
    flat = np.asarray(value).ravel()
    return str(flat[0]) if flat.size == 1 else ""


def _find(folder: Path, skip: Collection[str]) -> tuple[dict[str, Path], int, int]:
    """Return the A records by name, in order, and how many Q and skipped ones were left out."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; expected CPSC2018's .mat files in it")
    files: dict[str, Path] = {}
    extra = skipped = 0
    for path in sorted(folder.rglob("[AQ][0-9]*.mat"), key=lambda path: (path.stem, str(path))):
        record = path.stem
        if record in skip:
            skipped += 1
        elif record.startswith("Q"):
            extra += 1
        elif record in files:
            raise DataError(f"record {record} is there twice: {files[record]} and {path}")
        else:
            files[record] = path
    if not files:
        raise DataError(
            f"{folder}: no CPSC2018 records: expected A0001.mat and so on, found {extra} Q records "
            f"(CPSC-Extra) and {skipped} to be skipped"
        )
    return files, extra, skipped


def _labels(folder: Path, records: list[str]) -> tuple[NDArray[np.uint8] | None, int]:
    """Return multi-hot labels of the records, and the number of listed records without a file."""
    tables = sorted(folder.rglob("REFERENCE.csv"))
    if not tables:
        return None, 0
    known: dict[str, list[int]] = {}
    for table in tables:
        for record, labels in _read_reference(table).items():
            if known.setdefault(record, labels) != labels:
                raise DataError(f"{table}: record {record} has other labels in another table")
    hot = np.zeros((len(records), len(CLASSES)), dtype=np.uint8)
    for row, record in enumerate(records):
        if record not in known:
            raise DataError(
                f"{tables[0]}: record {record} has a file and no row here; complete the table or "
                "leave the record out (skip)"
            )
        hot[row, [label - 1 for label in known[record]]] = 1
    return hot, len(set(known) - set(records))


def _read_reference(path: Path) -> dict[str, list[int]]:
    """Return the labels, 1 to 9, of each record in a REFERENCE.csv."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.DictReader(file)
        absent = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
        if absent:
            raise DataError(f"{path}: column {', '.join(absent)} is missing")
        rows = list(reader)
    known: dict[str, list[int]] = {}
    for row in rows:
        record = (row["Recording"] or "").strip()
        texts = [text for name in _COLUMNS[1:] if (text := (row[name] or "").strip())]
        valid = [text for text in texts if text in {str(n) for n in range(1, len(CLASSES) + 1)}]
        if not record or not texts or valid != texts or record in known:
            raise DataError(
                f"{path}: record {record or '(no name)'}: expected one row with one to three "
                f"labels from 1 to {len(CLASSES)}, found {texts}"
                + (" in a second row" if record in known else "")
            )
        known[record] = [int(text) for text in texts]
    return known
