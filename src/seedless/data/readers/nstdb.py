"""Noise of the MIT-BIH Noise Stress Test Database, and how it is added to clean records.

Baseline wander (bw), muscle artifact (ma) and electrode motion (em), each two channels at 360 Hz.
No random generator is used: which section of the noise a sample gets is a function of its key.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.digests import digest_samples, sample_keys
from seedless.core.errors import DataError
from seedless.core.registry import choose
from seedless.data.leads import SIX, TWELVE, derive_limb_leads, select_leads
from seedless.data.quality_checks import check_signal
from seedless.data.readers.wfdb_records import read_header, read_signal
from seedless.data.resample import resample
from seedless.numerics.counter_random import WORD_MASK, philox

RATE = 360
KINDS = {"bw": "baseline wander", "ma": "muscle artifact", "em": "electrode motion"}
_CHANNELS = ("1", "2")
_COUNTER_WORD = 0x6E737431  # differs from augmentation's and dropout's, so that draws do too


@dataclass(frozen=True, eq=False)
class Noise:
    """Noise by kind: (2, time) float32 at ``fs``, each channel of mean 0. The unit is arbitrary."""

    kinds: Mapping[str, NDArray[np.float32]] = field(repr=False)
    fs: float
    provenance: Mapping[str, Any]


def read_noise(folder: str | Path, *, fs: int = 100) -> Noise:
    """Return the noise records bw, ma and em of a folder at ``fs``, each channel with mean 0.

    The folder holds WFDB records (bw.hea and bw.dat, and so on) or MATLAB excerpts (BW.mat and so
    on: one array of three columns, a running index and the two channels). The database states no
    gain, so the unit is arbitrary; `add_noise` scales by power.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; expected noise records {', '.join(KINDS)}")
    kinds: dict[str, NDArray[np.float32]] = {}
    files = {}
    for kind in KINDS:
        path, raw = _read_kind(folder, kind)
        where = f"{path} (record {kind})"
        check_signal(raw, _CHANNELS, where)
        if raw.shape[0] != 2 or not raw.std(axis=1).all():
            raise DataError(f"{where}: expected two channels that vary, found shape {raw.shape}")
        centred = raw.astype(np.float64) - raw.mean(axis=1, keepdims=True, dtype=np.float64)
        kinds[kind] = resample(centred.astype(np.float32), RATE, fs)
        files[kind] = path.name
    return Noise(
        kinds=kinds,
        fs=float(fs),
        provenance={"source": "NSTDB", "files": files, "source_rate": RATE, "mean": "removed"},
    )


def add_noise(
    samples: NDArray[np.float32],
    noise: Noise,
    kind: str,
    snr_db: float,
    *,
    leads: Sequence[str] | None = None,
    keys: NDArray[np.int64] | None = None,
) -> NDArray[np.float32]:
    """Return (n, leads, time) with noise of a kind added at a signal-to-noise ratio in dB.

    For each sample, 10 log10(P_signal / P_noise) = snr_db, where P is the mean square about each
    lead's mean, over all leads of the sample. All leads have one factor, so that the noise keeps
    its shape across them; no offset is added; a flat sample is not changed.

    The two channels of noise are used as leads I and II; the other limb leads are computed from
    them (Einthoven, Goldberger), so the noise obeys the same laws as the signal. V1, V3, V5 get
    channel 1 and V2, V4, V6 channel 2. ``leads`` are the names of the leads; if left out, 12 or 6
    leads are assumed to be in standard order. The section of noise starts at
    floor(word (N - time + 1) / 2^32) for a Philox word of the sample's key (``keys``, int64; if
    left out, made from the content).

    Example: ``noisy = add_noise(data.X, read_noise("nstdb"), "em", snr_db=6)``.
    """
    wave = choose("noise", kind, noise.kinds)
    names = name_leads(samples, leads)
    length = samples.shape[2]
    if wave.shape[1] < length:
        raise DataError(
            f"noise {kind} has {wave.shape[1]} samples at {noise.fs:g} Hz, fewer than the "
            f"{length} of a record"
        )
    if keys is None:
        keys = sample_keys(digest_samples(samples))
    check_keys(keys, len(samples))
    out = np.empty_like(samples)
    for row, stretch in enumerate(cut_noise_sections(noise, kind, keys, names, length)):
        out[row] = samples[row] + scale_noise(samples[row], stretch, snr_db)
    return out


def cut_noise_sections(
    noise: Noise, kind: str, keys: NDArray[np.int64], names: tuple[str, ...], length: int
) -> Iterator[NDArray[np.float64]]:
    """Yield the section of noise for each key, on all leads: (leads, time) float64.

    Noise shorter than ``length`` is repeated end to end, and a section may start anywhere in it.
    """
    spread = _spread(choose("noise", kind, noise.kinds), names)
    available = spread.shape[1]
    span = available - length + 1 if available >= length else available
    for start in draw_starts(keys, kind, span).tolist():
        stretch = spread.take(range(start, start + length), axis=1, mode="wrap")
        if not np.ptp(stretch, axis=1).any():
            raise DataError(f"noise {kind} is flat from sample {start} on, for {length} samples")
        yield stretch


def scale_noise(
    signal: NDArray[Any], stretch: NDArray[np.float64], snr_db: float
) -> NDArray[np.float64]:
    """Return the noise (leads, time) to add to a record for a signal-to-noise ratio in dB.

    Powers are mean squares about each lead's mean, over all leads of the whole record. The mean of
    the noise is subtracted, so that no offset is added. A flat record gets no noise.
    """
    if not math.isfinite(snr_db):
        raise DataError(f"expected a signal-to-noise ratio in dB, got {snr_db}")
    centred = _centre(stretch)
    power = float(np.mean(_centre(signal) ** 2)) / float(np.mean(centred**2))
    return math.sqrt(power / 10 ** (snr_db / 10)) * centred


def check_keys(keys: NDArray[np.int64], count: int) -> None:
    """Refuse anything but one int64 key for each sample."""
    if keys.shape != (count,) or keys.dtype != np.int64:
        raise DataError(
            f"expected one int64 key for each of {count} samples; got {keys.dtype} of {keys.shape}"
        )


def draw_starts(keys: NDArray[np.int64], kind: str, span: int) -> NDArray[np.int64]:
    """Return where each sample's section of noise starts: an integer in [0, span) for each key."""
    zero = np.zeros_like(keys)
    counter = (zero, zero + _COUNTER_WORD, zero + list(KINDS).index(kind), zero)
    word = philox(counter, (keys & WORD_MASK, (keys >> 32) & WORD_MASK))[0]
    starts: NDArray[np.int64] = word * span >> 32  # below 2^32 * 2^31: no overflow
    return starts


def name_leads(samples: NDArray[np.float32], leads: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names along the second axis of (n, leads, time) float32."""
    if samples.ndim != 3 or samples.dtype != np.float32:
        raise DataError(
            f"expected samples of (n, leads, time), float32; got {samples.dtype} of {samples.shape}"
        )
    standard = {12: TWELVE, 6: SIX}
    names = standard.get(samples.shape[1]) if leads is None else tuple(leads)
    if names is None or len(names) != samples.shape[1]:
        raise DataError(f"{samples.shape[1]} leads: name them with leads=(...); got {leads}")
    return names


def _spread(wave: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the noise of each lead: (2, time) -> (leads, time)."""
    limb = derive_limb_leads(wave[0], wave[1])
    chest = np.concatenate([wave, wave, wave])
    return select_leads(np.concatenate([limb, chest]), TWELVE, names, "noise").astype(np.float64)


def _centre(signal: NDArray[Any]) -> NDArray[np.float64]:
    """Return (leads, time) with the mean of each lead subtracted."""
    wide: NDArray[np.float64] = signal.astype(np.float64)
    wide -= wide.mean(axis=1, keepdims=True)
    return wide


def _read_kind(folder: Path, kind: str) -> tuple[Path, NDArray[np.float32]]:
    """Return the file and the samples (2, time) of one kind of noise, from WFDB or MATLAB."""
    header_path = folder / f"{kind}.hea"
    if header_path.is_file():
        header = read_header(header_path)
        if header.fs != RATE:
            raise DataError(f"{header.where}: expected {RATE} Hz, found {header.fs:g} Hz")
        return header_path, read_signal(header)
    for path in (folder / f"{kind.upper()}.mat", folder / f"{kind}.mat"):
        if path.is_file():
            return path, _read_excerpt(path, f"{path} (record {kind})")
    raise DataError(
        f"{folder}: noise {kind} ({KINDS[kind]}) is missing: expected {kind}.hea or "
        f"{kind.upper()}.mat"
    )


def _read_excerpt(path: Path, where: str) -> NDArray[np.float32]:
    """Return (2, time) from a MATLAB excerpt with the columns index, channel 1, channel 2."""
    from scipy.io import loadmat

    try:
        content = loadmat(path)
    except Exception as error:  # scipy raises errors of many types on a damaged file
        raise DataError(f"{where}: not a readable MATLAB file: {error}; fetch it again") from error
    arrays = [value for name, value in content.items() if not name.startswith("__")]
    if len(arrays) != 1 or arrays[0].ndim != 2 or arrays[0].shape[1] != 3:
        shapes = ", ".join(str(np.shape(value)) for value in arrays) or "none"
        raise DataError(f"{where}: expected one array of time by 3 columns, found {shapes}")
    index, *channels = arrays[0].T
    if not np.array_equal(index, np.arange(len(index))):
        raise DataError(f"{where}: expected a running index in the first column")
    return np.stack(channels).astype(np.float32)
