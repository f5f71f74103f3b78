"""Calibration: does a class occur in 8 of 10 records with a predicted probability of 0.8?

The expected calibration error of a class, with 10 bins of equal width, is the mean over the records
of |mean probability - observed rate| in the bin of each (Guo et al., 2017). Bins are open below and
closed above, except for the first, which includes 0.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.evaluate.intervals import LEVEL, Interval, wilson_interval

BINS = 10


@dataclass(frozen=True)
class Bin:
    """Records whose probability is above ``low`` and at most ``high``.

    ``mean`` of their probabilities, observed ``rate`` and its Wilson ``interval`` are None where
    there is no record.
    """

    low: float
    high: float
    count: int
    mean: float | None
    rate: float | None
    interval: Interval | None


def bin_reliability(
    probabilities: NDArray[np.float64],
    truth: NDArray[np.uint8],
    bins: int = BINS,
    level: float = LEVEL,
) -> tuple[Bin, ...]:
    """Return the bins of a reliability diagram for one class: (n,), (n,)."""
    filled = []
    for place, (values, hits) in enumerate(_group(probabilities, truth, bins)):
        count = len(values)
        mean = math.fsum(values) / count if count else None
        rate = hits / count if count else None
        interval = wilson_interval(hits, count, level)
        filled.append(Bin(place / bins, (place + 1) / bins, count, mean, rate, interval))
    return tuple(filled)


def calibration_error(
    probabilities: NDArray[np.float64], truth: NDArray[np.uint8], bins: int = BINS
) -> float | None:
    """Return the expected calibration error of one class; None without positives or negatives."""
    if not 0 < int(truth.sum()) < len(truth):
        return None
    groups = _group(probabilities, truth, bins)
    gaps = (abs(math.fsum([*values, -hits])) for values, hits in groups)
    return math.fsum(gaps) / len(truth)


def mean_calibration_error(
    probabilities: NDArray[np.float64], labels: NDArray[np.uint8]
) -> float | None:
    """Return the mean over the classes that have both positives and negatives."""
    columns = range(labels.shape[1])
    errors = [calibration_error(probabilities[:, k], labels[:, k]) for k in columns]
    defined = [error for error in errors if error is not None]
    return math.fsum(defined) / len(defined) if defined else None


def _group(
    probabilities: NDArray[np.float64], truth: NDArray[np.uint8], bins: int
) -> list[tuple[list[float], int]]:
    """Return the probabilities and the number of positives of each bin."""
    edges = np.arange(1, bins) / bins
    place = np.searchsorted(edges, probabilities, side="left")
    rows = (place == number for number in range(bins))
    return [(probabilities[row].tolist(), int(truth[row].sum())) for row in rows]
