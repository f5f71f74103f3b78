"""How many samples `golden` cannot tell apart.

Samples whose sums |x| agree have one key, and golden then falls back on the content digest. Two
sums are compared: the exact one, which is what we sort by, and the published one in float32. That
one is taken here as the exact sum rounded to float32, so that the numbers are the same on every
machine; the float32 additions of the released code depend on the library's order of summation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seedless.ordering.sort_keys import absolute_sums, golden_hashes


@dataclass(frozen=True)
class SharedKeys:
    """Records that share a key with another.

    Attributes:
        records: how many do.
        groups: how many keys they share.
        largest: records in the largest group; 0 if there is none.
        entropy_lost: sum(log2 g!) / log2 n! over the groups' sizes g, to 6 digits: the part of a
            free permutation's entropy that the keys leave undecided.
    """

    records: int
    groups: int
    largest: int
    entropy_lost: float


@dataclass(frozen=True)
class Collisions:
    """Key collisions of `golden` among ``samples`` records, by exact and by float32 sums."""

    samples: int
    exact: SharedKeys
    float32: SharedKeys


def count_collisions(X: ArrayLike) -> Collisions:  # noqa: N803
    """Count the collisions of golden keys among the records of ``X``, shape (n, ...)."""
    sums = absolute_sums(X)
    with np.errstate(over="ignore"):  # sums beyond float32 are all one infinity there
        rounded = sums.astype(np.float32)
    return Collisions(
        samples=len(sums),
        exact=_count_sharing(golden_hashes(sums)),
        float32=_count_sharing(rounded),
    )


def _count_sharing(keys: NDArray[Any]) -> SharedKeys:
    sizes = np.unique(keys, return_counts=True)[1]
    shared = sizes[sizes > 1].tolist()
    lost = math.fsum(_log2_factorial(size) for size in shared)
    return SharedKeys(
        records=sum(shared),
        groups=len(shared),
        largest=max(shared, default=0),
        entropy_lost=round(lost / _log2_factorial(len(keys)), 6) if shared else 0.0,
    )


def _log2_factorial(number: int) -> float:
    return math.fsum(math.log2(factor) for factor in range(2, number + 1))
