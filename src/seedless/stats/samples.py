"""Samples of scores: checked once, summed exactly, failed runs set aside.

Sums are those of `math.fsum`, which are correctly rounded: neither the order of the values nor the
processor changes a result.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, format_number

LARGEST = 1e150  # squares of larger values overflow in float64
_EPSILON = 2.0**-52

Values = Iterable[float]


@dataclass(frozen=True)
class Moments:
    """Number, mean and variance (ddof 1) of a sample; variance 0 where all values are equal."""

    n: int
    mean: float
    variance: float

    @property
    def sd(self) -> float:
        """The sample standard deviation."""
        return math.sqrt(self.variance)


def read_sample(values: Values, name: str = "sample", least: int = 2) -> NDArray[np.float64]:
    """Return values as float64 (n,); refuse fewer than ``least``, and NaN and infinity."""
    try:
        array = np.asarray(values if isinstance(values, np.ndarray) else list(values))
        array = array.astype(np.float64, casting="safe" if array.dtype.kind != "O" else "unsafe")
    except (TypeError, ValueError):
        raise StatsError(f"{name}: expected a sequence of real numbers, got {values!r}") from None
    if array.ndim != 1:
        raise StatsError(f"{name}: expected one row of numbers, got the shape {array.shape}")
    if len(array) < least:
        needed = f"at least {least} value{'s' * (least > 1)}"
        raise StatsError(f"{name}: expected {needed}, got {len(array)}")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise StatsError(
            f"{name}: value {bad[0] + 1} of {len(array)} is {array[bad[0]]}; set failed runs aside "
            "and count them, or find out why they have no score"
        )
    if np.abs(array).max() > LARGEST:
        raise StatsError(f"{name}: values beyond {LARGEST:g} cannot be squared; scale them first")
    return array


def read_two(a: Values, b: Values) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two samples, each of at least two values."""
    return read_sample(a, "first sample"), read_sample(b, "second sample")


def read_pairs(a: Values, b: Values) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two samples of equal length."""
    first, second = read_two(a, b)
    if len(first) != len(second):
        raise StatsError(
            f"pairs need samples of equal length, got {len(first)} and {len(second)} values; match "
            "them by seed first"
        )
    return first, second


def find_moments(values: NDArray[np.float64], scale: float | None = None) -> Moments:
    """Return the number, mean and variance of a sample.

    Values that differ by no more than rounding (4 ulp of ``scale``, by default of the largest) are
    taken as equal: their variance is 0.
    """
    n = len(values)
    low, high = float(values.min()), float(values.max())
    if scale is None:
        scale = max(abs(low), abs(high))
    mean = low if low == high else math.fsum(values) / n
    if n < 2 or high - low <= 4 * _EPSILON * scale:
        return Moments(n, mean, 0.0)
    return Moments(n, mean, math.fsum((values - mean) ** 2) / (n - 1))


def check_share(value: float, name: str) -> float:
    """Return a level or significance that lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise StatsError(f"{name}: expected a number between 0 and 1, got {value!r}")
    return float(value)


@dataclass(frozen=True, kw_only=True)
class Converged(Answer):
    """The scores above a limit with their indices, and the scores at or below it."""

    above: float
    kept: tuple[float, ...]
    places: tuple[int, ...]
    set_aside: tuple[float, ...]


def split_converged(values: Values, above: float) -> Converged:
    """Separate the runs that score ``above`` or less, which did not learn, from the others."""
    if not math.isfinite(above):
        raise StatsError(f"above: expected a finite score, got {above!r}")
    array = read_sample(values, least=1)
    good = array > above
    kept, failed = array[good], array[~good]
    return Converged(
        above=float(above),
        kept=tuple(map(float, kept)),
        places=tuple(map(int, np.flatnonzero(good))),
        set_aside=tuple(map(float, failed)),
        n=(len(array),),
        assumption=f"that a score of {format_number(above)} or less means a run that did not learn",
        sentence=f"{len(kept)} of {len(array)} runs converged (above {format_number(above)})"
        + (
            f"; set aside: {', '.join(map(format_number, sorted(failed)))}." if len(failed) else "."
        ),
    )
