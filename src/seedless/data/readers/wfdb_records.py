"""WFDB records: the text header (.hea), and the samples that it describes (.dat or .mat).

Format 16 (that of PTB-XL, and after a 24-byte preamble of the PhysioNet Challenge) is read here;
every other format is read with the wfdb package. Both give the same bits:
(digital - baseline) / gain in float64, rounded to float32 once.
"""

import math
import os
import re
import warnings
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError
from seedless.data.readers.wfdb_package import import_wfdb

MISSING = -32768  # how format 16 writes a missing sample
_BITS = {"8": 8, "16": 16, "24": 24, "32": 32, "61": 16, "80": 8, "160": 16, "212": 12}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RECORD = re.compile(
    rf"([^\s/]+)(/\d+)?\s+(\d+)(?:\s+({_NUMBER})(?:/\S*)?(?:\s+(\d+)(?:\s.*)?)?)?\s*", re.ASCII
)
_FORMAT = re.compile(r"(\d+)(?:x(\d+))?(?::(\d+))?(?:\+(\d+))?", re.ASCII)
_GAIN = re.compile(rf"({_NUMBER})(?:\((-?\d+)\))?(?:/(\S+))?", re.ASCII)


class Signal(NamedTuple):
    """One signal line of a header: a lead, where its samples are and what they mean."""

    lead: str
    file: str
    format: str
    frame: int  # samples per frame
    skew: int
    offset: int  # bytes before the first sample
    gain: float  # digital units per physical unit
    baseline: int  # digital value of physical zero
    units: str
    initial: int | None  # first digital value; informative
    checksum: int | None  # sum of the digital values, modulo 2^16
    calibrated: bool  # False if the header states no gain, or 0: then 200 is assumed


class Header(NamedTuple):
    """A record's header. ``length`` is in samples, 0 if the file does not state it."""

    path: Path
    record: str
    fs: float
    length: int
    signals: tuple[Signal, ...]
    comments: tuple[str, ...]

    @property
    def leads(self) -> tuple[str, ...]:
        """The names of the signals, in the spelling of the file."""
        return tuple(signal.lead for signal in self.signals)

    @property
    def where(self) -> str:
        """The file and the record, for error messages."""
        return f"{self.path} (record {self.record})"


def read_header(path: str | Path) -> Header:
    """Return the header in the .hea file ``path`` (suffix optional), by header(5) of WFDB.

    A record of several segments and a line that does not parse are refused. Defaults are WFDB's:
    250 Hz, a gain of 200 per mV if none or 0 is stated, a baseline at the ADC zero.
    """
    # [Step 1] Read the text; comments start with "#".
    path = Path(path) if str(path).endswith(".hea") else Path(f"{path}.hea")
    try:
        with open(path, "rb", buffering=0) as file:
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        raise DataError(f"{path}: no such header file") from None
    except OSError as error:
        raise DataError(f"{path}: the header cannot be read: {error.strerror}") from error
    lines = [line.strip() for line in text.splitlines()]
    fields = [line for line in lines if line and line[0] != "#"]
    # [Step 2] The first line names the record, the number of signals, the rate and the length.
    match = _RECORD.fullmatch(fields[0]) if fields else None
    if match is None:
        raise DataError(
            f"{path}: not a WFDB header: expected a line such as '00001_lr 12 100 1000', "
            f"found {fields[0][:60]!r}"
            if fields
            else f"{path}: not a WFDB header: the file holds no record line"
        )
    if text[-1] != "\n":
        raise DataError(
            f"{path}: cut short: its last line does not end; fetch the file again, or, if it is "
            "complete, end it with a line feed"
        )
    if "\0" in text:
        raise DataError(f"{path}: damaged: it holds zero bytes; fetch the file again")
    record, segments, count, fs, length = match.groups()
    if segments:
        raise DataError(f"{path} (record {record}): records of several segments are not supported")
    if len(fields) - 1 != int(count):
        raise DataError(
            f"{path} (record {record}): the header announces {count} signals and describes "
            f"{len(fields) - 1}; fetch the file again"
        )
    if fs is not None and not 0.01 <= float(fs) <= 1e6:
        raise DataError(
            f"{path} (record {record}): expected a sampling rate from 0.01 to 1,000,000 Hz, "
            f"found {fs[:40]}"
        )
    if length is not None and len(length) > 12:
        raise DataError(f"{path} (record {record}): a length of {len(length)} digits is a mistake")
    # [Step 3] One line follows for each signal.
    where = f"{path} (record {record})"
    return Header(
        path=path,
        record=record,
        fs=250.0 if fs is None else float(fs),
        length=int(length or 0),
        signals=tuple([_parse_signal(line, where) for line in fields[1:]]),
        comments=tuple([line[1:].strip() for line in lines if line[:1] == "#"]),
    )


def _parse_signal(line: str, where: str) -> Signal:
    """Parse "file format gain resolution zero initial checksum block name"; two are required."""
    fields: list[str | None] = [*line.split(None, 8)]
    fields += [None] * (9 - len(fields))
    file, form, gain, _, zero, initial, checksum, _, lead = fields
    try:
        layout = _parse_format(form or "")
        scale, baseline, units, calibrated = _parse_gain(gain or "0")
        signal = Signal(
            lead or "",
            file or "",
            *layout,
            scale,
            int(zero or 0) if baseline is None else baseline,
            units,
            None if initial is None else int(initial),
            None if checksum is None else int(checksum),
            calibrated,
        )
    except ValueError:
        raise DataError(f"{where}: not a signal line: {line[:80]!r}") from None
    if "/" in signal.file or os.sep in signal.file:
        raise DataError(
            f"{where}: expected a signal file in the folder of its header; found {signal.file!r}"
        )
    return signal


@lru_cache(maxsize=256)  # nearly all leads of all records have the same text
def _parse_format(text: str) -> tuple[str, int, int, int]:
    """Return format, samples per frame, skew and offset from a text such as "16x1+24"."""
    match = _FORMAT.fullmatch(text)
    if match is None:
        raise ValueError(text)
    form, frame, skew, offset = match.groups()
    return form, int(frame or 1), int(skew or 0), int(offset or 0)


@lru_cache(maxsize=256)
def _parse_gain(text: str) -> tuple[float, int | None, str, bool]:
    """Return gain, baseline, units, and whether a gain is stated, from "1000.0(0)/mV"."""
    match = _GAIN.fullmatch(text)
    if match is None:
        raise ValueError(text)
    gain, baseline, units = match.groups()
    stated = float(gain)
    if not math.isfinite(stated):
        raise ValueError(text)
    return stated or 200.0, None if baseline is None else int(baseline), units or "mV", stated != 0


def read_signal(header: Header) -> NDArray[np.float32]:
    """Return the record's samples in physical units: (leads, time) float32, missing ones as NaN.

    Files that are shorter or longer than the header says, and samples whose sums differ from its
    checksums, are refused.
    """
    if not header.signals:
        raise DataError(f"{header.where}: the record has annotations only, no signals")
    files = [list(group) for _, group in groupby(header.signals, key=itemgetter(1))]
    if any(signals[0].format != "16" for signals in files):
        return _read_by_wfdb(header, files)
    parts = [_read_file(header, signals) for signals in files]
    if len({part.shape[1] for part in parts}) > 1:
        raise DataError(f"{header.where}: its signal files hold different numbers of samples")
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _read_file(header: Header, signals: list[Signal]) -> NDArray[np.float32]:
    """Return (signals, time) of one format-16 file: little-endian, interleaved by sample."""
    # [Step 1] Read the bytes and compare their number with the header.
    try:
        with open(
            _locate(header, signals[0]), "rb", buffering=0
        ) as file:  # several times faster than np.fromfile
            data = file.read()
    except OSError as error:
        name = _name(header, signals[0])
        raise DataError(f"{name}: the signal file cannot be read: {error.strerror}") from error
    length = _check_layout(header, signals, len(data))
    # [Step 2] De-interleave, and compare the sum of each signal with its checksum.
    flat = np.frombuffer(data, dtype="<i2", offset=signals[0].offset)
    digital = np.ascontiguousarray(flat.reshape(length, len(signals)).T)
    _check_sums(header, signals, digital.sum(axis=1, dtype=np.int16))
    # [Step 3] Convert to physical units.
    columns = [(signal.baseline, signal.gain) for signal in signals]
    baseline, gain = np.array(columns, dtype=np.float64).T[:, :, None]
    values = digital.astype(np.float64)
    values -= baseline
    values /= gain
    out = values.astype(np.float32)
    if length and digital.min() == MISSING:
        out[digital == MISSING] = np.nan
    return out


def _read_by_wfdb(header: Header, files: list[list[Signal]]) -> NDArray[np.float32]:
    """Return (signals, time) of a record in another format, with the same checks."""
    for signals in files:
        try:
            _check_layout(header, signals, os.stat(_locate(header, signals[0])).st_size)
        except OSError as error:
            name = _name(header, signals[0])
            raise DataError(f"{name}: the signal file cannot be read: {error.strerror}") from error
    try:
        with warnings.catch_warnings():  # wfdb 4.3 uses what pandas 3 is about to drop
            warnings.simplefilter("ignore")
            record = import_wfdb().rdrecord(str(header.path.with_suffix("")), physical=False)
            values = record.dac()
    except DataError:
        raise
    except Exception as error:  # wfdb raises errors of many types
        raise DataError(f"{header.where}: wfdb cannot read it: {error}") from error
    if values.shape[1] != len(header.signals) or header.length not in (0, len(values)):
        raise DataError(
            f"{header.where}: expected {len(header.signals)} signals of {header.length} samples, "
            f"found {values.shape[1]} of {len(values)}"
        )
    _check_sums(header, list(header.signals), record.d_signal.sum(axis=0, dtype=np.int64))
    return np.ascontiguousarray(values.T.astype(np.float32))


def _locate(header: Header, signal: Signal) -> str:
    return os.path.join(os.path.dirname(header.path), signal.file)


def _name(header: Header, signal: Signal) -> str:
    return f"{_locate(header, signal)} (record {header.record})"


def _check_layout(header: Header, signals: list[Signal], size: int) -> int:
    """Return how many samples of each signal a file of ``size`` bytes holds, by its header."""
    first = signals[0]
    if len({signal[2:6] for signal in signals}) > 1:
        raise DataError(
            f"{_name(header, first)}: signals of one file must have the same format and offset"
        )
    if first.frame != 1 or first.skew != 0:
        raise DataError(
            f"{_name(header, first)}: {first.frame} samples per frame and a skew of {first.skew}; "
            "only 1 and 0 are supported: convert the record with WFDB's xform"
        )
    bits = _BITS.get(first.format, 0) * len(signals)
    length = header.length
    if length == 0 and bits:
        length = max(size - first.offset, 0) * 8 // bits
    expected = first.offset - (-bits * length // 8)
    if size < expected or (size > expected and first.format == "16"):
        state = "truncated" if size < expected else "longer than its header says"
        raise DataError(
            f"{_name(header, first)}: {state}: {len(signals)} signals of {length} samples in "
            f"format {first.format} take {expected} bytes, found {size}; fetch the record again"
        )
    return length


def _check_sums(header: Header, signals: list[Signal], sums: NDArray[np.signedinteger]) -> None:
    """Refuse signals whose sums of digital values, modulo 2^16, differ from the checksums."""
    for signal, found in zip(signals, sums.tolist(), strict=True):
        if signal.checksum is not None and (found - signal.checksum) % 65536:
            raise DataError(
                f"{_name(header, signal)}: lead {signal.lead}: the header's checksum is "
                f"{signal.checksum % 65536}, the samples sum to {found % 65536}; header or data is "
                "damaged: fetch the record again"
            )
