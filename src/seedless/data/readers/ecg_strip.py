"""Cut a strip of 10 s from an ECG record: leads by name, no missing samples, one rate and unit."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError
from seedless.data.leads import get_lead_set, select_leads
from seedless.data.quality_checks import check_signal
from seedless.data.readers.wfdb_records import Header
from seedless.data.resample import fit_length, resample

SECONDS = 10
LEAST_SECONDS = 5  # with less, most of a strip would be padding
_SEX = {"f": "F", "female": "F", "m": "M", "male": "M"}


def cut_strip(
    signal: NDArray[np.float32],
    names: Sequence[str],
    *,
    rate: float,
    fs: int,
    leads: str,
    where: str,
    short: str = "pad",
) -> NDArray[np.float32]:
    """Return the first 10 s of (channels, time) at ``fs``: float32 (leads, 10 fs).

    The whole record is resampled before it is cut, so that the filter sees what follows the strip.
    A shorter record is padded with zeros (``short="pad"``) or refused (``"refuse"``); one under 5 s
    is always refused.
    """
    wanted = get_lead_set(leads)
    picked = select_leads(signal, names, wanted, where)
    check_signal(picked, wanted, where)
    return fit_length(
        resample(picked, rate, fs), SECONDS * fs, where, short=short, least=LEAST_SECONDS * fs
    )


def check_millivolts(header: Header) -> None:
    """Refuse a record in another unit than mV."""
    for signal in header.signals:
        if signal.units.lower() != "mv":
            raise DataError(
                f"{header.where}: lead {signal.lead} is in {signal.units}, expected mV; convert "
                "the record"
            )


def parse_sex(text: str) -> str:
    """Return "F", "M", or "" for any other text."""
    return _SEX.get(text.strip().lower(), "")


def parse_age(text: str) -> float:
    """Return years, or NaN if the text is not a number of 0 or more."""
    try:
        years = float(text)
    except ValueError:
        return math.nan
    return years if 0 <= years < math.inf else math.nan
