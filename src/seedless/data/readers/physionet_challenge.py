"""Chapman-Shaoxing, CPSC2018 and others in the PhysioNet-Challenge form: WFDB with SNOMED codes.

Chapman-Shaoxing. PhysioNet's ecg-arrhythmia 1.0.0 numbers the records of two hospitals in sequence:
JS00001-JS10646 are Chapman-Shaoxing's (10,646 published, Zheng et al., Scientific Data 7:48, 2020),
JS10647-JS45551 Ningbo's. The counts confirm it: the release holds 45,152 records, all of Ningbo's
34,905 numbers are in use, and the remaining 10,247 are those of the 2021 Challenge's own Chapman
folder. Ningbo's records have no fibrillation code at all (its fibrillation is coded as flutter), so
they would distort an AFIB evaluation.

CPSC2018. A records are the challenge's; Q records belong to CPSC-Extra, another collection.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import TEST_ONLY, Dataset
from seedless.core.errors import DataError
from seedless.core.registry import choose
from seedless.data.class_names import RHYTHMS
from seedless.data.leads import get_lead_set
from seedless.data.readers.ecg_strip import (
    SECONDS,
    check_millivolts,
    cut_strip,
    parse_age,
    parse_sex,
)
from seedless.data.readers.wfdb_records import Header, read_header, read_signal

RATE = 500
CHAPMAN_LAST = 10_646
# The Challenge's codes for PTB-XL's rhythm statements, so that PTB-XL's records get the same labels
# here as there (and SR in addition to SBRAD and STACH, where the Challenge adds it). SVARR is the
# Challenge's "supraventricular premature beats": its table counts 157 in PTB-XL, as many as PTB-XL
# has of SVARR. Other codes, also of rhythms that are no class of PTB-XL (atrial tachycardia,
# wandering pacemaker), give no label.
SNOMED = {
    "426783006": "SR",
    "164889003": "AFIB",
    "427084000": "STACH",
    "427393009": "SARRH",
    "426177001": "SBRAD",
    "10370003": "PACE",
    "63593006": "SVARR",
    "11157007": "BIGU",
    "164890007": "AFLT",
    "426761007": "SVTAC",
    "67198005": "PSVT",
    "251180001": "TRIGU",
}
# In ecg-arrhythmia 1.0.0 the first two lines of these headers run into one another.
DAMAGED = ("JS01052", "JS23074")


def read_challenge(
    folder: str | Path,
    *,
    source: str = "any",
    fs: int = 100,
    leads: str = "12",
    short: str = "pad",
    skip: Collection[str] = (),
) -> Dataset:
    """Return the records of a source below ``folder``: their first 10 s, resampled to ``fs``.

    ``source`` is "chapman" (JS00001-JS10646), "cpsc2018" (A records) or "any". The labels are the
    twelve rhythm classes of PTB-XL, by SNOMED code; a record with none of them has a row of zeros.
    Records shorter than 10 s are padded with zeros (``short="pad"``) or refused (``"refuse"``);
    under 5 s they are always refused. Records of other sources, and those named in ``skip``, are
    left out and counted in the provenance. Records that were published damaged are skipped with a
    warning.
    """
    # [Step 1] Find the records of the source and read their headers.
    folder = Path(folder)
    name, belongs = choose("source", source, SOURCES)
    paths, excluded = _find(folder, source, belongs, skip)
    headers, warnings = [], []
    for path in paths:
        try:
            headers.append(read_header(path))
        except DataError as error:
            if path.stem not in DAMAGED:
                raise
            warnings.append(f"{path.stem} is damaged as published, skipped: {error}")
    if not headers:
        raise DataError(f"{folder}: every record of source {source!r} is damaged")
    # [Step 2] Read the first 10 s of each record.
    wanted = get_lead_set(leads)
    strips = np.empty((len(headers), len(wanted), SECONDS * fs), dtype=np.float32)
    for row, header in enumerate(headers):
        if source != "any" and header.fs != RATE:
            raise DataError(
                f"{header.where}: expected {RATE} Hz, as all of {name} has, found {header.fs:g} Hz"
            )
        check_millivolts(header)
        strips[row] = cut_strip(
            read_signal(header),
            header.leads,
            rate=header.fs,
            fs=fs,
            leads=leads,
            where=header.where,
            short=short,
        )
    # [Step 3] Labels, sex and age come from the headers' comments.
    ids = np.array([header.path.stem for header in headers])
    return Dataset(
        name=name,
        X=strips,
        Y=np.stack([label_codes(read_codes(header)) for header in headers]),
        classes=RHYTHMS,
        folds=np.ones(len(ids), dtype=np.int64),
        ids=ids,
        protocol=TEST_ONLY,
        patients=ids if source == "chapman" else None,  # one record a patient
        sex=np.array([parse_sex(_comment(header, "Sex") or "") for header in headers]),
        age=np.array([parse_age(_comment(header, "Age") or "") for header in headers], np.float32),
        fs=float(fs),
        leads=wanted,
        provenance={
            "units": "mV",
            "source": f"PhysioNet-Challenge form, {source}",
            "licence": "CC BY 4.0",
            "source_rates": sorted({header.fs for header in headers}),
            "labels_from": "SNOMED codes",
            "window": f"the first {SECONDS} s; short records: {short}",
            "excluded": excluded,
            "passed_over": [text.split()[0] for text in warnings],
        },
        warnings=tuple(warnings),
    )


def read_codes(header: Header) -> tuple[str, ...]:
    """Return the SNOMED codes in a header's Dx line; () if it says they are unknown."""
    text = _comment(header, "Dx")
    if text is None:
        raise DataError(f"{header.where}: no '#Dx:' line, so its diagnosis is not known")
    codes = tuple(code.strip() for code in text.split(",") if code.strip())
    if len(codes) == 1 and codes[0].lower() in ("unknown", "nan"):
        return ()
    if not all(code.isdecimal() for code in codes):
        raise DataError(f"{header.where}: expected SNOMED codes after '#Dx:', found {text[:60]!r}")
    return codes


def label_codes(codes: Collection[str]) -> NDArray[np.uint8]:
    """Return the multi-hot row of the twelve rhythm classes for SNOMED codes."""
    present = {SNOMED[code] for code in codes if code in SNOMED}
    return np.array([name in present for name in RHYTHMS], dtype=np.uint8)


def _comment(header: Header, key: str) -> str | None:
    """Return the text after ``key:`` in the comments; both "#Age: 79" and "# Age: 84" occur."""
    for line in header.comments:
        name, colon, value = line.strip(" #").partition(":")
        if colon and name.strip().lower() == key.lower():
            return value.strip()
    return None


def _number(record: str) -> int:
    """Return n of JSn, or 0 for another name."""
    match = re.fullmatch(r"JS(\d{5})", record)
    return int(match[1]) if match else 0


SOURCES: dict[str, tuple[str, Callable[[str], bool]]] = {
    "chapman": ("chapman", lambda record: 1 <= _number(record) <= CHAPMAN_LAST),
    "cpsc2018": ("cpsc2018", lambda record: re.fullmatch(r"A\d{4}", record) is not None),
    "any": ("challenge", lambda record: True),
}


def _origin(record: str) -> str:
    """Return the collection that a record belongs to, for the count of those left out."""
    if _number(record) > CHAPMAN_LAST:
        return f"Ningbo (above JS{CHAPMAN_LAST})"
    origins = {"JS": "Chapman-Shaoxing", "A": "CPSC2018", "Q": "CPSC-Extra", "HR": "PTB-XL"}
    prefix = re.match(r"[A-Za-z]*", record)
    return origins.get(prefix[0] if prefix else "", "other")


def _find(
    folder: Path, source: str, belongs: Callable[[str], bool], skip: Collection[str]
) -> tuple[list[Path], dict[str, int]]:
    """Return the headers of a source's records in order, and how many others were left out."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; expected Challenge records (.hea, .mat) in it")
    paths = sorted(folder.rglob("*.hea"), key=lambda path: (path.stem, str(path)))
    if not paths:
        raise DataError(f"{folder}: no WFDB headers (.hea) here or in its sub-folders")
    chosen = [path for path in paths if belongs(path.stem) and path.stem not in skip]
    chosen_set = set(chosen)
    left = Counter(
        "asked for (skip)" if path.stem in skip else _origin(path.stem)
        for path in paths
        if path not in chosen_set
    )
    if not chosen:
        found = ", ".join(f"{count} of {origin}" for origin, count in sorted(left.items()))
        raise DataError(f"{folder}: no records of source {source!r}; found {found}")
    for first, second in pairwise(chosen):
        if first.stem == second.stem:
            raise DataError(f"record {first.stem} is there twice: {first} and {second}")
    return chosen, dict(sorted(left.items()))
