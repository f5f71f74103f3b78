"""Collisions of `golden`'s sort keys: samples that it cannot distinguish.

Samples of equal sum |x| have one key, and the order then falls back on their content digests. Two
kinds of sums are counted: exact ones, by which we sort, and those in float32, as published. The
latter are exact sums rounded to float32, so that the counts are the same on every machine; in the
published code the float32 sums depend on the library's order of summation.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seedless.ordering.sort_keys import absolute_sums, golden_hashes


@dataclass(frozen=True)
class SharedKeys:
    """The records that share their key with another record.

    Attributes:
        records: number of such records.
        groups: number of keys that they share.
        largest: records in the largest group; 0 if there is none.
        entropy_lost: sum(log2 g!) / log2 n! over the group sizes g, to 6 digits: the fraction of a
            random permutation's entropy that the keys do not determine.
    """

    records: int
    groups: int
    largest: int
    entropy_lost: float


@dataclass(frozen=True)
class Collisions:
    """Collisions of `golden`'s keys among ``samples`` records, for exact and for float32 sums."""

    samples: int
    exact: SharedKeys
    float32: SharedKeys


def count_collisions(X: ArrayLike) -> Collisions:  # noqa: N803
    """Return the collisions of `golden`'s keys among the records of ``X``, shape (n, ...)."""
    sums = absolute_sums(X)
    with np.errstate(over="ignore"):  # sums too large for float32 become one infinity
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
