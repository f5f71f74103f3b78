"""Change the sampling rate and the length of a signal."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError
from seedless.core.registry import choose

SHORT_RECORD_TREATMENTS = {"pad": None, "refuse": None}


def resample(signal: NDArray[np.float32], rate: float, wanted: float) -> NDArray[np.float32]:
    """Return (leads, time) at another rate, by a polyphase filter: ceil(time * wanted / rate)."""
    if rate == wanted:
        return signal
    from scipy.signal import resample_poly

    ratio = Fraction(wanted).limit_denominator(10_000) / Fraction(rate).limit_denominator(10_000)
    out = resample_poly(signal.astype(np.float64), ratio.numerator, ratio.denominator, axis=-1)
    resampled: NDArray[np.float32] = out.astype(np.float32)
    return resampled


def fit_length(
    signal: NDArray[np.float32], length: int, where: str, short: str = "pad", least: int = 1
) -> NDArray[np.float32]:
    """Return the first ``length`` samples of (leads, time), zero-padded at the end or refused.

    A signal of fewer than ``least`` samples is refused whatever ``short`` says.
    """
    choose("treatment of short records", short, SHORT_RECORD_TREATMENTS)
    samples = signal.shape[-1]
    if samples < least or (samples < length and short == "refuse"):
        needed = least if samples < least else length
        raise DataError(
            f"{where}: {samples} samples of signal, at least {needed} expected"
            + ('; short="pad" fills up with zeros' if samples >= least else "")
        )
    if samples >= length:
        return np.ascontiguousarray(signal[..., :length])
    return np.pad(signal, ((0, 0), (0, length - samples)))
