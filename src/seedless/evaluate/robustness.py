"""Robustness: the scores of a model for records with added noise.

Noise is added to the records as they were measured, before normalization: the model gets noisy
records scaled by the statistics of its clean training data, as it would in use.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.core.digests import sample_keys
from seedless.core.errors import DataError
from seedless.core.registry import choose
from seedless.data.readers.nstdb import (
    KINDS,
    Noise,
    check_keys,
    cut_noise_sections,
    name_leads,
    scale_noise,
)
from seedless.data.simulators.stress_noise import simulate_stress
from seedless.evaluate.auc import macro_auc

Float64 = NDArray[np.float64]
SNRS = (24.0, 12.0, 6.0, 0.0)

# Records (n, leads, time) as measured -> probabilities (n, K).
Predict = Callable[[NDArray[np.generic]], Float64]


@dataclass(frozen=True)
class Row:
    """A score under noise. The clean row has kind "clean" and no ratio.

    ``drop`` is the clean score minus this one; None where a score is undefined.
    """

    kind: str
    snr_db: float | None
    macro_auc: float | None
    drop: float | None


def perturb(
    samples: NDArray[np.float32],
    kind: str,
    snr_db: float,
    keys: NDArray[np.int64] | None = None,
    noise: Noise | None = None,
    *,
    leads: Sequence[str] | None = None,
    fs: float = 100.0,
) -> Float64:
    """Return records (n, leads, time) with noise added at exactly this signal-to-noise ratio.

    For each record 10 log10(P_signal / P_noise) = snr_db. P is the mean square about each lead's
    mean, over the whole record and all its leads. There is one factor for each record, so a quiet
    lead gets relatively more noise than a loud one, and an offset has no effect. A flat record
    stays as it is. The result is float64: rounding it would change the ratio.

    Args:
        samples: float32, before normalization.
        kind: "bw" (baseline wander), "ma" (muscle) or "em" (electrode motion).
        snr_db: in dB; 0 means that noise is as strong as the signal.
        keys: (n,) int64, which noise each record gets; by default keys of their content, so that a
            record gets the same noise at any position.
        noise: recorded noise, of `read_noise`: the key of a record chooses its stretch. Without it
            noise is simulated, from key and kind alone.
        leads: names of the leads; 12 or 6 are taken to be in the standard order.
        fs: samples per second.
    """
    return _add(samples, _make_noise(samples, kind, keys, noise, leads, fs), snr_db)


def measure_robustness(
    predict: Predict,
    samples: NDArray[np.float32],
    labels: NDArray[np.uint8],
    *,
    kinds: Sequence[str] = tuple(KINDS),
    snrs: Sequence[float] = SNRS,
    keys: NDArray[np.int64] | None = None,
    noise: Noise | None = None,
    leads: Sequence[str] | None = None,
    fs: float = 100.0,
    watch: Callable[[Row], None] = lambda _: None,
) -> tuple[Row, ...]:
    """Return the macro AUC without noise, then for each kind of noise and each ratio.

    Args:
        predict: records as measured -> probabilities (n, K); it normalizes them itself.
        samples: (n, leads, time) float32, before normalization.
        labels: (n, K) of 0 and 1.
        watch: called with each row as it is measured.
    """
    clean = macro_auc(predict(samples), labels)
    rows = [Row("clean", None, clean, None if clean is None else 0.0)]
    watch(rows[0])
    for kind in kinds:
        stretches = list(_make_noise(samples, kind, keys, noise, leads, fs))
        for snr in snrs:
            score = macro_auc(predict(_add(samples, stretches, snr)), labels)
            drop = None if clean is None or score is None else clean - score
            rows.append(Row(kind, float(snr), score, drop))
            watch(rows[-1])
    return tuple(rows)


def _make_noise(
    samples: NDArray[np.float32],
    kind: str,
    keys: NDArray[np.int64] | None,
    noise: Noise | None,
    leads: Sequence[str] | None,
    fs: float,
) -> Iterator[Float64]:
    """Return each record's noise in its own unit: (leads, time)."""
    choose("noise", kind, KINDS)
    names, length = name_leads(samples, leads), samples.shape[2]
    if keys is None:
        keys = sample_keys(samples)
    check_keys(keys, len(samples))
    if noise is None:
        return (simulate_stress(kind, key, names, length, fs) for key in keys.tolist())
    if noise.fs != fs:
        raise DataError(
            f"the noise has {noise.fs:g} Hz and the records {fs:g} Hz; read the noise at {fs:g} Hz"
        )
    return cut_noise_sections(noise, kind, keys, names, length)


def _add(samples: NDArray[np.float32], stretches: Iterable[Float64], snr_db: float) -> Float64:
    out = samples.astype(np.float64)
    for row, stretch in enumerate(stretches):
        out[row] += scale_noise(samples[row], stretch, snr_db)
    return out
