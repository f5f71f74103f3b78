"""Random numbers, a cosine and a bump for the simulators, with the same bits on every machine.

Nothing here depends on a math library. Random numbers are integers of a counter-based generator,
scaled by powers of two; the cosine is a table of correctly rounded values with an integer phase as
its index; everything else is +, -, *, / in float64.
"""

import hashlib
from functools import cache

import numpy as np
from numpy.typing import NDArray

from seedless.numerics.correct_rounding import rounded_cosines
from seedless.numerics.counter_random import WORD_MASK, philox

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
TURN = 1 << 32  # phase units in a full turn
_TABLE_BITS = 10


def draw_rows(keys: Int64, name: str, count: int) -> Float64:
    """Return uniforms in (0, 1), (n, count): row r is `draw_uniform(keys[r], name, count)`."""
    words = _words(keys, name, (count + 1) // 2)
    pairs = np.stack([words[1] << 20 | words[0] >> 12, words[3] << 20 | words[2] >> 12], axis=-1)
    values: Float64 = (pairs.reshape(len(keys), -1)[:, :count] + 0.5) / 2.0**52
    return values


def draw_noise(keys: Int64, name: str, count: int) -> Float64:
    """Return (n, count) whole numbers of mean 0 and deviation 104.5: each is a sum of two bytes.

    The distribution is a triangle from -255 to 255.
    """
    words = np.stack(_words(keys, name, (count + 7) // 8), axis=-1)
    low, high = words & 0xFFFF, words >> 16
    halves = np.stack([low, high], axis=-1).reshape(len(keys), -1)[:, :count]
    values: Float64 = ((halves & 0xFF) + (halves >> 8) - 255).astype(np.float64)
    return values


def _words(keys: Int64, name: str, blocks: int) -> tuple[Int64, Int64, Int64, Int64]:
    """Return four Philox words for each key and block, each (n, blocks)."""
    label = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
    block = np.arange(blocks, dtype=np.int64)[None, :]
    key = keys.astype(np.int64)[:, None]
    counter = (block, np.int64(0), np.int64(label & WORD_MASK), np.int64(label >> 32))
    return philox(counter, (key & WORD_MASK, key >> 32))


def near_normal(uniforms: Float64) -> Float64:
    """Return nearly normal numbers (mean 0, deviation 1, from -3 to 3) from (..., 3) uniforms."""
    first, second, third = uniforms[..., 0], uniforms[..., 1], uniforms[..., 2]
    spread: Float64 = 2.0 * (first + second + third - 1.5)
    return spread


def cosine(phase: Int64) -> Float64:
    """Return cos(2 pi phase / 2^32), rounded to the nearest of 1,024 angles."""
    half = 1 << 31 - _TABLE_BITS
    index = (phase + half) >> (32 - _TABLE_BITS) & ((1 << _TABLE_BITS) - 1)
    values: Float64 = _cosine_table()[index]
    return values


def to_phase(turns: Float64) -> Int64:
    """Return an angle in turns as an integer phase: 2^32 is a full turn."""
    return np.rint(turns * TURN).astype(np.int64)


def bump(distance: Float64, width: Float64) -> Float64:
    """Return a smooth hump of height 1 and half-width ``width``: (1 - (d/w)^2)^3, 0 outside.

    At half its height it is 0.91 widths wide, and it looks like a Gaussian of deviation 0.39 w.
    """
    ratio = distance / width
    inside = np.maximum(1.0 - ratio * ratio, 0.0)
    value: Float64 = inside * inside * inside
    return value


@cache
def _cosine_table() -> Float64:
    size = 1 << _TABLE_BITS
    table = rounded_cosines(np.arange(size, dtype=np.int64), size // 2)
    table.flags.writeable = False
    return table
