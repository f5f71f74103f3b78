"""AFDB, and other long two-lead records with rhythm annotations, cut into windows of 10 s.

All six limb leads are computed from leads I and II (Einthoven, Goldberger). Channels named I and II
are found by name. If a source has no names (AFDB: ECG1, ECG2) or other leads (MIT-BIH: MLII and V1
or V5), an explicit ``lead_map`` must say which channel is used as which lead; the dataset's
provenance and warnings repeat it.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import TEST_ONLY, Dataset
from seedless.core.errors import DataError
from seedless.data.leads import SIX, TWELVE, derive_limb_leads, get_lead_set, spell_lead
from seedless.data.quality_checks import check_signal
from seedless.data.readers.ecg_strip import SECONDS, check_millivolts, parse_age, parse_sex
from seedless.data.readers.rhythm_annotations import label_windows, read_spans
from seedless.data.readers.wfdb_records import Header, read_header, read_signal
from seedless.data.resample import resample

CLASSES = ("AFIB", "AFLT")
RHYTHMS = (("AFIB",), ("AFL", "AFLT"))  # the annotations of each class
WITHOUT_SIGNALS = ("00735", "03665")  # AFDB's: annotations were published, signals never
_UNNAMED = re.compile(r"(ECG|EKG|CH|CHANNEL|SIGNAL)?[ _-]*\d*", re.IGNORECASE)


def read_rhythms(
    folder: str | Path,
    *,
    lead_map: Mapping[str, str] | None = None,
    fs: int = 100,
    leads: str = "6",
    annotator: str = "atr",
    records: Sequence[str] | None = None,
    rate: float | None = None,
    name: str | None = None,
) -> Dataset:
    """Return the records of a folder, without its sub-folders, as a test set of 10 s windows.

    Each record is resampled as a whole to ``fs`` and cut into windows that do not overlap; the
    remainder at its end is dropped. The classes are AFIB and AFLT, multi-label: a window has a
    class if that rhythm fills more than half of it. A window with neither has another rhythm, or is
    not annotated (a warning counts those).

    ``lead_map`` says which channel is used as which lead; ``records`` selects records; ``rate`` is
    the rate that every record must have; ``name`` is the dataset's name, by default the folder's.
    Records that were published without signals are skipped with a warning. Ids are "RECORD/00012".
    The patient is P for records named data_P_R, else the record.
    """
    # [Step 1] List the records, and read their headers.
    folder, lead_map = Path(folder), lead_map or {}
    names, passed = list_records(folder, annotator=annotator, records=records)
    headers = [_check_header(folder, record, rate) for record in names]
    if get_lead_set(leads) != SIX:
        raise DataError(f"two leads determine the six limb leads, not {leads} leads")
    strange = [lead for lead in lead_map.values() if lead not in TWELVE]
    if strange:
        raise DataError(f"lead_map: expected leads such as I and II, found {', '.join(strange)}")
    # [Step 2] Read the records one by one into the final arrays, to save memory.
    counts = [count_windows(header.length, header.fs) for header in headers]
    samples = np.empty((sum(counts), len(SIX), SECONDS * fs), dtype=np.float32)
    labels = np.empty((sum(counts), len(CLASSES)), dtype=np.uint8)
    channels: Counter[tuple[str, str]] = Counter()
    unlabelled = start = 0
    for header, count in zip(headers, counts, strict=True):
        check_millivolts(header)
        pair = _find_leads(header, lead_map)
        spans = read_spans(header, annotator)
        windows = slice(start, start + count)
        samples[windows] = _cut_windows(header, pair, fs, count)
        labels[windows], unknown = label_windows(spans, RHYTHMS, SECONDS * header.fs, count)
        unlabelled += int(unknown.sum())
        channels[header.leads[pair[0]], header.leads[pair[1]]] += 1
        start += count
    # [Step 3] Describe the records, and warn about what a user should know.
    people = [_person(header) for header in headers]
    uncalibrated = [
        header.record
        for header in headers
        if not all(signal.calibrated for signal in header.signals)
    ]
    return Dataset(
        name=folder.name if name is None else name,
        X=samples,
        Y=labels,
        classes=CLASSES,
        folds=np.ones(len(samples), dtype=np.int64),
        ids=np.array(
            [f"{r}/{i:05d}" for r, n in zip(names, counts, strict=True) for i in range(n)]
        ),
        protocol=TEST_ONLY,
        patients=np.repeat([_patient(record) for record in names], counts),
        sex=np.repeat([sex for sex, _ in people], counts),
        age=np.repeat(np.array([age for _, age in people], dtype=np.float32), counts),
        fs=float(fs),
        leads=SIX,
        provenance={
            "units": "mV",
            "source": "WFDB records with rhythm annotations",
            "records": names,
            "passed_over": passed,
            "annotator": annotator,
            "source_rates": sorted({header.fs for header in headers}),
            "window": f"{SECONDS} s, no overlap, remainder dropped",
            "label_rule": "the rhythm that holds for more than half of the window",
            "unlabelled_windows": unlabelled,
            "lead_map": dict(lead_map),
            "channels_taken_as_I_and_II": {" and ".join(k): n for k, n in channels.items()},
            "approximate": any(_rate_leads(pair) == "approximate" for pair in channels),
            "derived_leads": "III, aVR, aVL, aVF by Einthoven and Goldberger",
            "uncalibrated": uncalibrated,
        },
        warnings=_warn(passed, channels, unlabelled, len(samples), uncalibrated),
    )


def _cut_windows(
    header: Header, channels: tuple[int, int], fs: int, count: int
) -> NDArray[np.float32]:
    """Return a record's windows: (count, 6, 10 fs) in mV, from the channels of leads I and II."""
    pair = read_signal(header)[[*channels]]
    check_signal(pair, [header.leads[channel] for channel in channels], header.where)
    limb = derive_limb_leads(*resample(pair, header.fs, fs))[:, : count * SECONDS * fs]
    return limb.reshape(len(SIX), count, -1).transpose(1, 0, 2)


def list_records(
    folder: str | Path, *, annotator: str = "atr", records: Sequence[str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """Return the records to read, in order, and the skipped ones, each with the reason."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; expected WFDB records with annotations in it")
    available = {path.stem for suffix in ("hea", annotator) for path in folder.glob(f"*.{suffix}")}
    absent = sorted(set(records or ()) - available)
    if absent:
        raise DataError(f"{folder}: record {', '.join(absent)} is not there")
    with_signals, passed = [], {}
    for record in sorted(available if records is None else set(records)):
        bare = record in WITHOUT_SIGNALS and not (folder / f"{record}.dat").exists()
        if bare or not read_header(folder / record).signals:
            passed[record] = "annotations without signals"
        else:
            with_signals.append(record)
    if not with_signals:
        reason = f"; skipped: {', '.join(passed)} (no signals)" if passed else ""
        raise DataError(f"{folder}: no records with signals (.hea) and annotations{reason}")
    return with_signals, passed


def _check_header(folder: Path, record: str, rate: float | None) -> Header:
    header = read_header(folder / record)
    if rate is not None and header.fs != rate:
        raise DataError(f"{header.where}: expected {rate:g} Hz, found {header.fs:g} Hz")
    if header.length < SECONDS * header.fs:
        raise DataError(
            f"{header.where}: {header.length / header.fs:g} s of signal, at least one window of "
            f"{SECONDS} s expected; remove the record"
        )
    return header


def count_windows(length: int, rate: float) -> int:
    """Return the number of whole windows in a record of ``length`` samples."""
    return int(length // (SECONDS * rate))


def _find_leads(header: Header, lead_map: Mapping[str, str]) -> tuple[int, int]:
    """Return the numbers of the channels that are leads I and II."""
    names = [lead_map.get(name, spell_lead(name)) for name in header.leads]
    for lead in ("I", "II"):
        if names.count(lead) != 1:
            raise DataError(
                f"{header.where}: {names.count(lead) or 'no'} channels for lead {lead}, one "
                f"expected; the record has {', '.join(header.leads)}: say which channel is "
                'used as which lead with lead_map, such as {"ECG1": "I", "ECG2": "II"}'
            )
    return names.index("I"), names.index("II")


def _rate_leads(channels: tuple[str, str]) -> str:
    """Return how certain the leads are: "named", "assumed" (unnamed channels) or "approximate"."""
    pairs = list(zip(channels, ("I", "II"), strict=True))
    if all(spell_lead(name) == lead for name, lead in pairs):
        return "named"
    plain = all(spell_lead(name) == lead or _UNNAMED.fullmatch(name) for name, lead in pairs)
    return "assumed" if plain else "approximate"


def _warn(
    passed: Mapping[str, str],
    channels: Mapping[tuple[str, str], int],
    unlabelled: int,
    total: int,
    uncalibrated: Sequence[str],
) -> tuple[str, ...]:
    """Return the warnings that a user of the dataset should read."""
    out = []
    if passed:
        out.append(f"skipped, annotations without signals: {', '.join(passed)}")
    for pair, count in channels.items():
        taken = f"{' and '.join(pair)} taken as leads I and II in {count} records"
        if _rate_leads(pair) == "assumed":
            out.append(f"channels the source does not name: {taken}, by lead_map")
        elif _rate_leads(pair) == "approximate":
            out.append(f"approximate: {taken}, by lead_map; they are other leads")
    if unlabelled:
        out.append(
            f"{unlabelled} of {total} windows are unlabelled (mostly before the first rhythm "
            f"annotation) and count as neither {' nor '.join(CLASSES)}"
        )
    if uncalibrated:
        out.append(f"{len(uncalibrated)} records state no gain; 200 units a mV are assumed")
    return tuple(out)


def _patient(record: str) -> str:
    match = re.fullmatch(r"data_(\d+)_\d+", record)
    return match[1] if match else record


def _person(header: Header) -> tuple[str, float]:
    """Return sex and age from MIT-BIH's first comment, such as "69 M 1085 1629 x1"."""
    match = re.match(r"(-?\d+)\s+([MF])\s", header.comments[0]) if header.comments else None
    return (parse_sex(match[2]), parse_age(match[1])) if match else ("", math.nan)
