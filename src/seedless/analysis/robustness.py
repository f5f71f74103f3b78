"""What noise does to a finished run: its test split, noisy, through its selected weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seedless.core.errors import ConfigError
from seedless.core.registry import choose
from seedless.data.loading import find_download
from seedless.data.readers.nstdb import Noise, read_noise
from seedless.evaluate.robustness import SNRS, Row, measure_robustness
from seedless.runs.opening import OpenRun, open_run

SOURCES = ("simulated", "nstdb")
LIMIT = 100  # dB, beyond which neither the signal nor the noise is left in float32


@dataclass(frozen=True, eq=False)
class RunRobustness:
    """The rows of a stress test, and what they were measured on."""

    finished: OpenRun
    source: str
    rows: tuple[Row, ...]


def measure_run_robustness(
    run: str | Path,
    *,
    source: str = "simulated",
    noise_path: str | Path | None = None,
    snrs: Sequence[float] = SNRS,
    entry: str | None = None,
    data: str | None = None,
    watch: Callable[[Row], None] = lambda _: None,
) -> RunRobustness:
    """Measure a run's macro AUC under noise of every kind at every ratio.

    Noise is added to the records as measured; then they are normalized as in training.

    Args:
        run: the run folder.
        source: "simulated", or "nstdb" for the recorded noise.
        noise_path: the folder of the recorded noise; left out, where it was fetched to.
        snrs: signal-to-noise ratios in dB.
        entry: for a run of `fit`, where its model and arrays come from; noise is then added to the
            arrays as they are.
        data: where the data lie now, if not where they lay then.
        watch: called with each row as it is measured.
    """
    choose("noise source", source, dict.fromkeys(SOURCES))
    if source == "simulated" and noise_path is not None:
        raise ConfigError("a noise path belongs to recorded noise: add --noise nstdb, or leave it")
    if not snrs or not all(abs(snr) <= LIMIT for snr in snrs) or len(set(snrs)) < len(snrs):
        raise ConfigError(
            f"expected signal-to-noise ratios from -{LIMIT} to {LIMIT} dB, each once; got "
            f"{', '.join(f'{snr:g}' for snr in snrs) or 'none'}"
        )
    finished = open_run(run, entry=entry, data=data)
    if finished.records.ndim != 3 or finished.records.dtype != np.float32:
        raise ConfigError(
            f"noise is added to recordings (leads, time); {run} has samples of "
            f"{finished.records.dtype} of shape {finished.records.shape[1:]}"
        )
    fs = finished.fs or 100.0
    noise: Noise | None = None
    if source == "nstdb":
        folder = find_download("nstdb") if noise_path is None else Path(noise_path)
        noise = read_noise(folder, fs=round(fs))
    rows = measure_robustness(
        finished.predict,
        finished.records,
        finished.labels,
        snrs=snrs,
        noise=noise,
        leads=finished.leads,
        fs=fs,
        watch=watch,
    )
    return RunRobustness(finished, source, rows)
