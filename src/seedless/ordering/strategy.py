"""The interface between an order and its strategy, the function that arranges an epoch."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.ordering.samples import Positions, Samples


@dataclass(frozen=True, eq=False)
class EpochInputs:
    """What a strategy may use besides the samples.

    Attributes:
        index: the epoch, offset included.
        batch_size: samples in a batch.
        seed: for the control `seeded` alone.
        losses: (m,) the last epoch's loss of each sample, in canonical order; None before it.
    """

    index: int
    batch_size: int
    seed: int = 0
    losses: NDArray[np.float64] | None = None


ArrangeFunction = Callable[[Samples, EpochInputs], Positions]


@dataclass(frozen=True)
class Strategy:
    """A function that returns a permutation of 0 .. m-1 for an epoch, and what it depends on.

    ``needs_values``: on the values of the samples, and not on their digests alone.
    """

    arrange: ArrangeFunction
    needs_labels: bool = False
    needs_losses: bool = False
    takes_seed: bool = False
    needs_values: bool = False
