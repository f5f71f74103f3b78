"""What one epoch asks of a strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.ordering.samples import Positions, Samples


@dataclass(frozen=True, eq=False)
class EpochInputs:
    """The epoch's index (offset included) and what strategies may look at besides the samples.

    `losses` holds one loss a sample, in canonical order, or None before the first pass.
    """

    index: int
    batch_size: int
    seed: int = 0
    losses: NDArray[np.float64] | None = None


ArrangeFunction = Callable[[Samples, EpochInputs], Positions]


@dataclass(frozen=True)
class Strategy:
    """A function from samples and epoch to a permutation of 0 .. m-1, and what it depends on."""

    arrange: ArrangeFunction
    needs_labels: bool = False
    needs_losses: bool = False
    takes_seed: bool = False


def count_batches(samples: int, batch_size: int) -> int:
    """Return ceil(samples / batch_size)."""
    return -(-samples // batch_size)
