"""Random bits as a pure function: Philox-4x32-10 (Salmon et al., SC'11).

There is no state, so nothing can be left out of a checkpoint or drawn in another order. The same
code runs on Python integers, numpy arrays and torch tensors, on any device, and gives the same
integers: every intermediate value stays below 2^49, inside a signed 64-bit integer.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import NumericsError

WORD_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Return four 32-bit words for a counter of four and a key of two, each in [0, 2^32).

    Words may be integers, int64 numpy arrays or int64 torch tensors, and broadcast.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for round_number in range(10):
        high0, low0 = _multiply(c0, _MULTIPLIERS[0])
        high1, low1 = _multiply(c2, _MULTIPLIERS[1])
        bump0 = _WEYL[0] * round_number & WORD_MASK
        bump1 = _WEYL[1] * round_number & WORD_MASK
        c0 = high1 ^ c1 ^ ((k0 + bump0) & WORD_MASK)
        c1 = low1
        c2 = high0 ^ c3 ^ ((k1 + bump1) & WORD_MASK)
        c3 = low0
    return c0, c1, c2, c3


def _multiply(word: Any, constant: int) -> tuple[Any, Any]:
    """Return the high and low 32 bits of a 32 x 32 bit product, in halves that cannot overflow."""
    low = (word & 0xFFFF) * constant
    middle = (word >> 16) * constant + (low >> 16)
    return middle >> 16, ((middle & 0xFFFF) << 16) | (low & 0xFFFF)


def split_uint64(value: int) -> tuple[int, int]:
    """Return the low and high 32-bit words of an integer in [0, 2^64)."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise NumericsError(f"expected an integer from 0 to 2^64 - 1, got {value!r}")
    return value & WORD_MASK, value >> 32


def draw_uniform(seed: int, name: str, count: int) -> NDArray[np.float64]:
    """Return ``count`` numbers in (0, 1), a function of (seed, name, index) alone.

    Each is (b + 1/2) / 2^52 with b of 52 bits: exact in float64, symmetric about 1/2, never 0 or 1.
    """
    label = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
    name_low, name_high = (np.int64(word) for word in split_uint64(label))
    seed_low, seed_high = (np.int64(word) for word in split_uint64(seed))
    blocks = np.arange((count + 1) // 2, dtype=np.int64)
    words = philox((blocks & WORD_MASK, blocks >> 32, name_low, name_high), (seed_low, seed_high))
    pairs = np.stack([words[1] << 20 | words[0] >> 12, words[3] << 20 | words[2] >> 12], axis=1)
    values: NDArray[np.float64] = (pairs.reshape(-1)[:count] + 0.5) / 2.0**52
    return values
