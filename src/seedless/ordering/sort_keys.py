"""Sort keys of 64 bits: from a sample's content, from the golden ratio, from a seed.

Every key is an integer, made of integers: no floating-point rounding, hence none that could differ.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seedless.core.digest import as_rows
from seedless.numerics.counter_random import WORD_MASK, philox, split_uint64
from seedless.numerics.exact_sums import exact_row_sums
from seedless.ordering.samples import Samples

Keys = NDArray[np.uint64]

# phi = (sqrt 5 - 1)/2, cut to 512 binary digits: PHI / 2^512. A sum of float32 values stays below
# 2^200, which leaves more than 300 digits after the point, of which a key takes the first 64.
_PHI_BITS = 512
PHI = (math.isqrt(5 << 2 * _PHI_BITS) - (1 << _PHI_BITS)) >> 1


def content_keys(samples: Samples, epoch: int) -> Keys:
    """Return BLAKE2b of each content digest, 8 bytes, keyed by a prefix and the epoch: (m,)."""
    key = b"seedless order content " + epoch.to_bytes(8, "little")
    packed = samples.digests.tobytes()
    hashed = b"".join(
        hashlib.blake2b(packed[start : start + 32], digest_size=8, key=key).digest()
        for start in range(0, len(packed), 32)
    )
    return np.frombuffer(hashed, dtype="<u8").astype(np.uint64)


def absolute_sums(records: ArrayLike) -> NDArray[np.float64]:
    """Return the exactly rounded sum of |x| over each record: (n, ...) -> float64 (n,)."""
    rows = as_rows(records)
    flat = rows.reshape(len(rows), -1)
    blocks = range(0, len(flat), 1024)  # so that |x| never doubles the memory of the whole set
    return np.concatenate([exact_row_sums(np.abs(flat[start : start + 1024])) for start in blocks])


def golden_hash(value: float | int) -> int:
    """Return floor(2^64 frac(phi * value)), exactly, for any finite value."""
    numerator, denominator = value.as_integer_ratio()
    shift = _PHI_BITS + denominator.bit_length() - 1 - 64  # the denominator is a power of two
    return (PHI * numerator >> shift) & 0xFFFF_FFFF_FFFF_FFFF


def golden_hashes(values: NDArray[Any]) -> Keys:
    """Return the golden hash of each of a vector of floats or integers."""
    return np.array([golden_hash(value) for value in values.tolist()], dtype=np.uint64)


def sum_hashes(samples: Samples) -> Keys:
    """Return h_i = frac(phi * sum|X_i|) in units of 2^-64: (m,)."""
    return golden_hashes(absolute_sums(samples.source)[samples.rows])


def index_hashes(samples: Samples) -> Keys:
    """Return h_i = frac(i phi) in units of 2^-64, i the record's place in storage: (m,)."""
    return golden_hashes(samples.rows)


def seeded_keys(samples: Samples, epoch: int, seed: int) -> Keys:
    """Return 64 bits of Philox for (seed, epoch, canonical position): (m,).

    The key is the seed and the counter holds position and epoch, so no two (seed, epoch) pairs ever
    read the same block: under one seed, Philox maps distinct counters to distinct blocks, and
    another seed is another map. A seed added to the epoch, as published, repeats (0, 1) as (1, 0).
    """
    position = np.arange(len(samples), dtype=np.int64)
    epoch_low, epoch_high = (np.asarray(word) for word in split_uint64(epoch))
    seed_low, seed_high = (np.asarray(word) for word in split_uint64(seed))
    counter = (position & WORD_MASK, position >> 32, epoch_low, epoch_high)
    low, high, _, _ = philox(counter, (seed_low, seed_high))
    keys: Keys = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    return keys
