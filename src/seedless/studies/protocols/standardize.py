"""Recordings brought into the form of a model's training records, where those are standardized.

Arrays of one's own may hold records that were filtered and z-scored, lead by lead. Millivolts of
another set would be nothing such a model has seen, so they are filtered and z-scored as well.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from seedless.core.config import Config, DataConfig
from seedless.data.loading import load

BAND = (0.5, 40.0)  # Hz
ORDER = 3
TOLERANCE = 0.05  # of a lead's mean from 0 and of its deviation from 1, in all but a hundredth
FLAT = 1e-6  # a lead that varies less is left at 0

NOTE = (
    "The training records are z-scored lead by lead. Those of the other sets are brought into that "
    f"form: each lead of 10 s filtered to {BAND[0]:g}-{BAND[1]:g} Hz (Butterworth, order {ORDER}, "
    "forwards and backwards) and z-scored."
)


def is_standardized(config: Config) -> bool:
    """Say whether the leads of the records a run is trained on have mean 0 and deviation 1."""
    return _look(config.data.model_dump_json())


@lru_cache(maxsize=4)
def _look(text: str) -> bool:
    records = load(DataConfig.model_validate_json(text)).X
    if records.ndim != 3:
        return False
    means, deviations = records.mean(axis=2), records.std(axis=2)
    far = (np.abs(means) > TOLERANCE) | (np.abs(deviations - 1) > TOLERANCE)
    return bool(far.mean() < 0.01)


def standardize(records: NDArray[np.float32], fs: float) -> NDArray[np.float32]:
    """Return (n, leads, time) filtered and z-scored, each lead of each record by itself."""
    from scipy.signal import butter, sosfiltfilt

    high = min(BAND[1], 0.45 * fs)
    sections = butter(ORDER, (BAND[0], high), btype="bandpass", fs=fs, output="sos")
    plain = sosfiltfilt(sections, records.astype(np.float64), axis=2)
    plain -= plain.mean(axis=2, keepdims=True)
    spread = plain.std(axis=2, keepdims=True)
    scaled = np.divide(plain, spread, out=np.zeros_like(plain), where=spread > FLAT)
    return np.asarray(scaled, dtype=np.float32)
