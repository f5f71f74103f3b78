"""Scale samples for training: mean and deviation come from the training split alone."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import Dataset
from seedless.core.errors import DataError
from seedless.core.registry import choose
from seedless.core.threads import limit_block, run_in_blocks
from seedless.numerics.exact_sums import exact_row_sums, exact_sum

_BLOCK = 256  # samples read at a time: a memory-mapped set is never in memory as a whole


@dataclass(frozen=True)
class Scale:
    """x -> (x - mean) / deviation, with one pair for all leads or one for each lead."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def apply(self, samples: NDArray[np.generic]) -> NDArray[np.float32]:
        """Return scaled samples (n, leads, ...): float64 arithmetic, rounded to float32 once."""
        shape = (1, -1) + (1,) * (samples.ndim - 2)
        mean, deviation = (np.reshape(v, shape) for v in (self.mean, self.deviation))
        out = np.empty(samples.shape, dtype=np.float32)

        def scale(block: slice) -> None:
            out[block] = (samples[block].astype(np.float64) - mean) / deviation

        run_in_blocks(scale, len(samples), limit_block(_BLOCK, samples[0].size))
        return out

    def tabulate(self, channels: int) -> NDArray[np.float32]:
        """Return what each of the 256 values of a byte is scaled to: (channels, 256).

        The numbers are those of `apply`, and so are the bits of images that are looked up in it.
        """
        every = np.arange(256, dtype=np.uint8).reshape(256, 1, 1)
        scaled = self.apply(np.broadcast_to(every, (256, channels, 1)))
        return np.ascontiguousarray(scaled[:, :, 0].T)


def fit_scale(data: Dataset, method: str = "global", split: str = "train") -> Scale:
    """Return the scale that gives a split mean 0 and deviation 1.

    ``method``: "global" has one mean and deviation over all leads, "lead" one for each lead,
    "pixels" maps 0..255 to [-1, 1] whatever the data are, "none" leaves them as they are. Sums are
    correctly rounded, so the result depends neither on the order of the records nor on the machine.

    Example: ``samples = fit_scale(data).apply(data.X)``.
    """
    fixed = choose("normalization", method, METHODS)
    if fixed is not None:
        return fixed
    rows = data.rows(split)
    if len(rows) == 0:
        raise DataError(f"{data.name}: the {split} split is empty, so there is no scale to fit")
    leads = data.X.shape[1]
    groups = leads if method == "lead" else 1
    count = len(rows) * data.X[0].size // groups
    sums = _sum_by_sample(data, rows, np.zeros(leads))
    mean = _combine(sums, groups) / count
    squares = _sum_by_sample(data, rows, np.resize(mean, leads), power=2)
    deviation = np.sqrt(_combine(squares, groups) / count)
    if not deviation.all():
        raise DataError(f"{data.name}: the {split} split is constant; it cannot be scaled")
    return Scale(tuple(mean.tolist()), tuple(deviation.tolist()))


METHODS: dict[str, Scale | None] = {
    "global": None,
    "lead": None,
    "pixels": Scale((127.5,), (127.5,)),
    "none": Scale((0.0,), (1.0,)),
}


def _sum_by_sample(
    data: Dataset, rows: NDArray[np.int64], centre: NDArray[np.float64], power: int = 1
) -> NDArray[np.float64]:
    """Return the sums of (x - centre)^power over time, correctly rounded: (n, leads)."""
    sums = np.empty((len(rows), data.X.shape[1]))
    shape = (1, -1) + (1,) * (data.X.ndim - 2)

    def add(block: slice) -> None:
        values = data.X[rows[block]].astype(np.float64) - centre.reshape(shape)
        values = values if power == 1 else values * values
        flat = values.reshape(len(values) * values.shape[1], -1)
        sums[block] = exact_row_sums(flat).reshape(len(values), -1)

    run_in_blocks(add, len(rows), limit_block(_BLOCK, data.X[0].size))
    if not math.isfinite(exact_sum(sums)):
        raise DataError(f"{data.name}: samples hold NaN or infinity")
    return sums


def _combine(sums: NDArray[np.float64], groups: int) -> NDArray[np.float64]:
    """Add up samples, and leads that share one scale: (n, leads) -> (groups,)."""
    return exact_row_sums(np.ascontiguousarray(sums.T).reshape(groups, -1))
