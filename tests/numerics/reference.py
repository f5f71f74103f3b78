"""Reference implementations of the deterministic ops: plain loops over numpy arrays in float64.

They share no code with the fast ops. Each follows the op's definition, one output element at a
time, so that it can be checked by reading; the tests compare the fast ops with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def conv1d(x: Array, weight: Array, bias: Array | None, stride: int, padding: int) -> Array:
    """(batch, time, in), (out, in, kernel) -> (batch, windows, out)."""
    (batch, length, inputs), (outputs, _, kernel) = x.shape, weight.shape
    windows = (length + 2 * padding - kernel) // stride + 1
    y = np.zeros((batch, windows, outputs))
    for b, t, o in np.ndindex(y.shape):
        total = 0.0 if bias is None else bias[o]
        for j in range(kernel):
            source = t * stride + j - padding
            if 0 <= source < length:
                for i in range(inputs):
                    total += weight[o, i, j] * x[b, source, i]
        y[b, t, o] = total
    return y


def depthwise_conv1d(x: Array, weight: Array, bias: Array | None, padding: int) -> Array:
    """(batch, time, channel), (channel, 1, kernel) -> (batch, windows, channel)."""
    (batch, length, channels), kernel = x.shape, weight.shape[2]
    y = np.zeros((batch, length + 2 * padding - kernel + 1, channels))
    for b, t, c in np.ndindex(y.shape):
        total = 0.0 if bias is None else bias[c]
        for j in range(kernel):
            source = t + j - padding
            if 0 <= source < length:
                total += weight[c, 0, j] * x[b, source, c]
        y[b, t, c] = total
    return y


def adaptive_avg_pool1d(x: Array, size: int) -> Array:
    """(batch, time, channel) -> (batch, size, channel)."""
    batch, length, channels = x.shape
    y = np.zeros((batch, size, channels))
    for b, i, c in np.ndindex(y.shape):
        start, end = _bin(i, length, size)
        y[b, i, c] = sum(x[b, t, c] for t in range(start, end)) / (end - start)
    return y


def adaptive_avg_pool2d(x: Array, size: tuple[int, int]) -> Array:
    """(batch, channel, height, width) -> (batch, channel, *size): each rectangle at once."""
    batch, channels, height, width = x.shape
    y = np.zeros((batch, channels, *size))
    for b, c, i, j in np.ndindex(y.shape):
        top, bottom = _bin(i, height, size[0])
        left, right = _bin(j, width, size[1])
        values = [x[b, c, h, w] for h in range(top, bottom) for w in range(left, right)]
        y[b, c, i, j] = sum(values) / len(values)
    return y


def max_pool1d(x: Array, kernel: int, stride: int, padding: int) -> Array:
    """(batch, time, channel) -> (batch, windows, channel); a NaN in the window is the maximum."""
    batch, length, channels = x.shape
    y = np.zeros((batch, (length + 2 * padding - kernel) // stride + 1, channels))
    for b, t, c in np.ndindex(y.shape):
        values = [float(x[b, s, c]) for s in _window(t, length, kernel, stride, padding)]
        y[b, t, c] = math.nan if any(map(math.isnan, values)) else max(values)
    return y


def avg_pool1d(x: Array, kernel: int, stride: int, padding: int) -> Array:
    """(batch, time, channel) -> (batch, windows, channel); padding counts as zeros."""
    batch, length, channels = x.shape
    y = np.zeros((batch, (length + 2 * padding - kernel) // stride + 1, channels))
    for b, t, c in np.ndindex(y.shape):
        y[b, t, c] = sum(x[b, s, c] for s in _window(t, length, kernel, stride, padding)) / kernel
    return y


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Philox-4x32-10 in Python's integers: four words from a counter of four and a key of two."""
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c  # exact: these integers have no size
        a, b, c, d = second >> 32 ^ b ^ k, second % 2**32, first >> 32 ^ d ^ m, first % 2**32
        k, m = (k + 0x9E3779B9) % 2**32, (m + 0xBB67AE85) % 2**32
    return [a, b, c, d]


def dropout(
    x: Array, p: float, *, samples: Sequence[int], epoch: int, layer: int
) -> NDArray[np.float32]:
    """Drop element e of sample s where word e % 4 of philox((e // 4, layer, epoch, 0), s) is high.

    (batch, ...) -> the same shape; what stays is divided by 1 - p, in float32.
    """
    y = np.zeros(x.shape, dtype=np.float32)
    for sample, row, out in zip(samples, x, y, strict=True):
        key = (sample % 2**32, (sample >> 32) % 2**32)
        for element, value in enumerate(row.flat):
            word = philox((element // 4, layer, epoch, 0), key)[element % 4]
            if word < round((1 - p) * 2**32):
                out.flat[element] = np.float32(value) * np.float32(1 / (1 - p))
    return y


def _bin(index: int, length: int, size: int) -> tuple[int, int]:
    """Return where bin `index` of `size` starts, and where it has ended."""
    return index * length // size, -(-(index + 1) * length // size)


def _window(index: int, length: int, kernel: int, stride: int, padding: int) -> list[int]:
    """Return the samples of window `index` that are not padding."""
    start = index * stride - padding
    return [source for source in range(start, start + kernel) if 0 <= source < length]
