"""The scores of a finished run for its test records with added noise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seedless.core.errors import ConfigError
from seedless.core.files import AnyPath
from seedless.core.registry import choose
from seedless.data.loading import find_download
from seedless.data.readers.nstdb import Noise, read_noise
from seedless.evaluate.robustness import SNRS, Row, measure_robustness
from seedless.numerics.saved_flags import run_by_itself
from seedless.runs.opened_run import OpenRun, open_run

SOURCES = ("simulated", "nstdb")
MAX_SNR_DB = 100  # beyond it, float32 cannot hold the smaller of signal and noise


@dataclass(frozen=True, eq=False)
class RunRobustness:
    """The scores of a run under noise, and the noise's source."""

    opened: OpenRun
    source: str
    rows: tuple[Row, ...]


@run_by_itself()
def measure_run_robustness(
    run: AnyPath,
    *,
    source: str = "simulated",
    noise_path: str | Path | None = None,
    snrs: Sequence[float] = SNRS,
    entry: str | None = None,
    data: str | None = None,
    watch: Callable[[Row], None] = lambda _: None,
) -> RunRobustness:
    """Return the macro AUC of a run under noise of every kind and signal-to-noise ratio.

    Noise is added to the records as measured; then they are normalized as in training.

    Args:
        run: the run folder.
        source: "simulated", or "nstdb" for the recorded noise.
        noise_path: the folder of the recorded noise; by default where it was downloaded to.
        snrs: signal-to-noise ratios in dB.
        entry: for a run of `fit`, "package.module:function" that returns its model and arrays;
            noise is then added to the arrays as they are.
        data: the path of the data, if they were moved.
        watch: called with each row as it is measured.
    """
    choose("noise source", source, dict.fromkeys(SOURCES))
    if source == "simulated" and noise_path is not None:
        raise ConfigError("a noise path belongs to recorded noise: add --noise nstdb, or leave it")
    if not snrs or not all(abs(snr) <= MAX_SNR_DB for snr in snrs) or len(set(snrs)) < len(snrs):
        raise ConfigError(
            f"expected signal-to-noise ratios from -{MAX_SNR_DB} to {MAX_SNR_DB} dB, each once; "
            f"got {', '.join(f'{snr:g}' for snr in snrs) or 'none'}"
        )
    opened = open_run(run, entry=entry, data=data)
    if opened.records.ndim != 3 or opened.records.dtype != np.float32:
        raise ConfigError(
            f"noise is added to recordings (leads, time); {run} has samples of "
            f"{opened.records.dtype} of shape {opened.records.shape[1:]}"
        )
    fs = opened.fs or 100.0
    noise: Noise | None = None
    if source == "nstdb":
        folder = find_download("nstdb") if noise_path is None else Path(noise_path)
        noise = read_noise(folder, fs=round(fs))
    rows = measure_robustness(
        opened.predict,
        opened.records,
        opened.labels,
        snrs=snrs,
        noise=noise,
        leads=opened.leads,
        fs=fs,
        watch=watch,
    )
    return RunRobustness(opened, source, rows)
