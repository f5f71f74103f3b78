"""Sort keys of 64 bits: from a sample's content, from the golden ratio, from a seed.

All keys are computed with integers, without floating-point rounding, so they are the same on every
machine.
"""

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seedless.core.digests import as_rows
from seedless.numerics.counter_random import WORD_MASK, philox, split_uint64
from seedless.numerics.exact_sums import exact_row_sums
from seedless.ordering.samples import Samples

Keys = NDArray[np.uint64]

# phi = (sqrt 5 - 1)/2, truncated to 512 binary digits: PHI / 2^512. A sum of float32 values stays
# below 2^200, which leaves more than 300 digits after the point; a key is the first 64 of them.
_PHI_BITS = 512
PHI = (math.isqrt(5 << 2 * _PHI_BITS) - (1 << _PHI_BITS)) >> 1


def content_keys(samples: Samples, epoch: int) -> Keys:
    """Return 8 bytes of BLAKE2b of each content digest, keyed by a prefix and the epoch: (m,)."""
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
    blocks = range(0, len(flat), 1024)  # in parts: |x| of all records would double the memory
    return np.concatenate([exact_row_sums(np.abs(flat[start : start + 1024])) for start in blocks])


def golden_hash(value: float | int) -> int:
    """Return floor(2^64 frac(phi * value)), exactly, for any finite value."""
    numerator, denominator = value.as_integer_ratio()
    shift = _PHI_BITS + denominator.bit_length() - 1 - 64  # the denominator is a power of two
    return (PHI * numerator >> shift) & 0xFFFF_FFFF_FFFF_FFFF


def golden_hashes(values: NDArray[Any]) -> Keys:
    """Return the golden hash of each value of a vector of floats or integers."""
    return np.array([golden_hash(value) for value in values.tolist()], dtype=np.uint64)


def sum_hashes(samples: Samples) -> Keys:
    """Return h_i = frac(phi * sum|X_i|) in units of 2^-64: (m,)."""
    return golden_hashes(absolute_sums(samples.source)[samples.rows])


def index_hashes(samples: Samples) -> Keys:
    """Return h_i = frac(i phi) in units of 2^-64, i the row of the record: (m,)."""
    return golden_hashes(samples.rows)


def seeded_keys(samples: Samples, epoch: int, seed: int) -> Keys:
    """Return 64 bits of Philox for (seed, epoch, canonical position): (m,).

    The seed is Philox's key, and the counter holds position and epoch. Under one key, Philox maps
    distinct counters to distinct blocks, so no two (seed, epoch) pairs share their random numbers.
    Adding the seed to the epoch, as published, makes (0, 1) and (1, 0) the same.
    """
    position = np.arange(len(samples), dtype=np.int64)
    epoch_low, epoch_high = (np.asarray(word) for word in split_uint64(epoch))
    seed_low, seed_high = (np.asarray(word) for word in split_uint64(seed))
    counter = (position & WORD_MASK, position >> 32, epoch_low, epoch_high)
    low, high, _, _ = philox(counter, (seed_low, seed_high))
    keys: Keys = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    return keys
