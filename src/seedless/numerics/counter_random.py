"""Random bits as a pure function of a counter and a key: Philox-4x32-10.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.

There is no generator state, so none can be missing from a checkpoint, and numbers can be computed
in any order. The same code runs on Python integers, numpy arrays and torch tensors on any device
and returns the same integers, because every intermediate value is below 2^49 and therefore fits
into a signed 64-bit integer.
"""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.checks import check_integer
from seedless.core.errors import NumericsError

WORD_MASK = 0xFFFFFFFF  # the 32 bits of a word
_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_INCREMENTS = (0x9E3779B9, 0xBB67AE85)  # golden ratio and sqrt(3) - 1, as 32-bit fractions


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Return four random 32-bit words for a counter of four words and a key of two words.

    Words are in [0, 2^32). They may be Python integers, int64 numpy arrays or int64 torch tensors
    of shapes that broadcast.

    Example:
        >>> [hex(word) for word in philox((0, 0, 0, 0), (0, 0))]
        ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for round_number in range(_ROUNDS):
        # [Step 1] The key of this round: both words grow by a constant, modulo 2^32.
        round_k0 = (k0 + (_KEY_INCREMENTS[0] * round_number & WORD_MASK)) & WORD_MASK
        round_k1 = (k1 + (_KEY_INCREMENTS[1] * round_number & WORD_MASK)) & WORD_MASK
        # [Step 2] Multiply words 0 and 2 by their constants, to 64 bits each.
        high0, low0 = _multiply(c0, _MULTIPLIERS[0])
        high1, low1 = _multiply(c2, _MULTIPLIERS[1])
        # [Step 3] Mix the halves with the other words and the key, and exchange places.
        c0, c1, c2, c3 = high1 ^ c1 ^ round_k0, low1, high0 ^ c3 ^ round_k1, low0
    return c0, c1, c2, c3


def _multiply(word: Any, constant: int) -> tuple[Any, Any]:
    """Return the high and low 32 bits of a 32 x 32 bit product, in halves that cannot overflow."""
    low = (word & 0xFFFF) * constant
    middle = (word >> 16) * constant + (low >> 16)
    return middle >> 16, ((middle & 0xFFFF) << 16) | (low & 0xFFFF)


def philox_array(
    counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]
) -> tuple[Any, Any, Any, Any]:
    """Return the words of `philox` for numpy arrays of uint64, in half the operations.

    A product of two words fits into an unsigned 64-bit integer, with which torch does not compute.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    mask, shift = np.uint64(WORD_MASK), np.uint64(32)
    m0, m1 = map(np.uint64, _MULTIPLIERS)
    for round_number in range(_ROUNDS):
        round_k0 = (k0 + np.uint64(_KEY_INCREMENTS[0] * round_number & WORD_MASK)) & mask
        round_k1 = (k1 + np.uint64(_KEY_INCREMENTS[1] * round_number & WORD_MASK)) & mask
        product0, product1 = c0 * m0, c2 * m1
        c0, c2 = (product1 >> shift) ^ c1 ^ round_k0, (product0 >> shift) ^ c3 ^ round_k1
        c1, c3 = product1 & mask, product0 & mask
    return c0, c1, c2, c3


def split_uint64(value: int) -> tuple[int, int]:
    """Return the low and high 32-bit words of an integer in [0, 2^64)."""
    number = check_integer("a 64-bit number", value, 0, (1 << 64) - 1, error=NumericsError)
    return number & WORD_MASK, number >> 32


def draw_uniform(seed: int, name: str, count: int) -> NDArray[np.float64]:
    """Return ``count`` uniform numbers in (0, 1), float64, a function of (seed, name, index) alone.

    Number i is (b + 1/2) / 2^52, where b is 52 bits of Philox: exact in float64, symmetric about
    1/2, never 0 or 1. The counter holds i // 2 and a hash of ``name``; the key is the seed.

    Example:
        >>> weights = draw_uniform(0, "head.weight", 12)
    """
    name_hash = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
    name_low, name_high = (np.int64(word) for word in split_uint64(name_hash))
    seed_low, seed_high = (np.int64(word) for word in split_uint64(seed))
    blocks = np.arange((count + 1) // 2, dtype=np.int64)
    counter = (blocks & WORD_MASK, blocks >> 32, name_low, name_high)
    w0, w1, w2, w3 = philox(counter, (seed_low, seed_high))
    pairs = np.stack([w1 << 20 | w0 >> 12, w3 << 20 | w2 >> 12], axis=1)  # 32 + 20 bits each
    values: NDArray[np.float64] = (pairs.reshape(-1)[:count] + 0.5) / 2.0**52
    return values
