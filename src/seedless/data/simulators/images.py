"""Simulated images, so that the imaging protocols run without a download and without a seed.

Image i is a pure function of i and the arguments. A class is a shape with a texture and a tone;
position, size, angle, contrast, light, clutter and noise differ from image to image. As for the
simulated ECG, no math library is used: every machine makes the same bytes.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from seedless.core.checks import check_integer, check_memory
from seedless.core.dataset import TASKS, THREE_SPLITS, Dataset
from seedless.core.errors import DataError
from seedless.core.registry import choose
from seedless.data.simulators.exact_math import (
    TURN,
    Float64,
    Int64,
    bump,
    cosine,
    draw_noise,
    draw_rows,
    to_phase,
)

VERSION = 1  # raised whenever any image changes
SIZES = (28, 32)
CHANNELS = (1, 3)
MAX_CLASSES = 100  # five shapes, five textures, four tones
_BLOCK = 256  # images at a time
_SPLITS = np.array([1, 1, 1, 1, 1, 1, 1, 2, 3, 3])  # of every ten images in a row
_STEEPNESS = 8  # the first class is this many times as frequent as the last


def simulate_images(
    count: int | None = None,
    *,
    size: int = 28,
    channels: int = 1,
    classes: int = 8,
    task: str = "multi-class",
    start: int = 0,
) -> Dataset:
    """Return simulated images: uint8 (n, channels, size, size), split 7 : 1 : 2.

    Classes are imbalanced, 8 to 1 from the first to the last. A multi-label image may hold several
    shapes, or none.

    Args:
        count: number of images, from ``start`` on; by default `least_count`, but at least 1,000.
        size: 28 or 32 pixels.
        channels: 1 or 3.
        classes: 2 to 100.
        task: "multi-class" or "multi-label".
        start: number of the first image.

    Example: ``simulate_images(1000, size=32, channels=3, classes=10)``.
    """
    for name, value, known in (("size", size, SIZES), ("channels", channels, CHANNELS)):
        if value not in known:
            raise DataError(f"expected {name} to be one of {known}, got {value!r}")
    choose("task", task, dict.fromkeys(TASKS))
    classes = check_integer("classes", classes, 2, MAX_CLASSES, error=DataError)
    count = max(1000, least_count(classes, task)) if count is None else count
    count = check_integer("count", count, 1, 1 << 31, error=DataError)
    start = check_integer("start", start, 0, (1 << 31) - count, error=DataError)
    needed = count * (channels * size * size + classes + 16)
    check_memory(f"{count:,} simulated images", needed, error=DataError)
    images = np.arange(start, start + count, dtype=np.int64)
    folds, labels = label_images(images, classes, task)
    pixels = np.empty((count, channels, size, size), np.uint8)
    for first in range(0, count, _BLOCK):
        block = slice(first, first + _BLOCK)
        pixels[block] = draw_images(images[block], labels[block], size, channels)
    return Dataset(
        name="simulated-images",
        X=pixels,
        Y=labels,
        classes=tuple(f"class {k}" for k in range(classes)),
        folds=folds,
        ids=np.array([f"image-{image + 1:06d}" for image in images.tolist()]),
        protocol=THREE_SPLITS,
        task=task,
        provenance={
            "source": "seedless.data.simulated_images",
            "version": VERSION,
            "first_image": start,
        },
    )


def least_count(classes: int, task: str) -> int:
    """Return a number of images with which every class is in every split.

    Of 2^m images of a split, one falls into each of the 2^m equal parts of the unit interval. A
    class whose share is at least twice as long as such a part contains a whole part. Validation,
    the smallest split, has a tenth of the images.
    """
    weights = _weights(classes, task)
    parts = -(-2 * int(weights.sum()) // int(weights[:classes].min()))
    return 10 * (1 << (parts - 1).bit_length())


def label_images(images: Int64, classes: int, task: str) -> tuple[Int64, NDArray[np.uint8]]:
    """Return folds (n,) and labels (n, classes) of these images, without drawing them.

    The j-th image of a split has the class whose share of the unit interval contains the radical
    inverse of j (van der Corput's sequence), so classes have their shares exactly, not on average.
    """
    digit, group = images % 10, images // 10
    folds = _SPLITS[digit]
    within = np.where(
        digit < 7, 7 * group + digit, np.where(digit == 7, group, 2 * group + digit - 8)
    )
    inverse = np.zeros_like(within)
    for _ in range(32):
        inverse, within = inverse << 1 | within & 1, within >> 1
    weights = _weights(classes, task)
    chosen = np.searchsorted(np.cumsum(weights), inverse * weights.sum() >> 32, side="right")
    labels = np.zeros((len(images), len(weights)), np.uint8)
    labels[np.arange(len(images)), chosen] = 1
    if task == "multi-label":
        own = weights[:classes]
        more = draw_rows(images, "simulated labels", classes) * own.sum() < 0.6 * own
        labels[:, :classes] |= more & (chosen < classes)[:, None]
    return folds, labels[:, :classes].copy()


def _weights(classes: int, task: str) -> Int64:
    """Return whole-number weights of the classes, and of "none of them" for multi-label."""
    weights = 10_000 * (classes - 1) // (classes - 1 + (_STEEPNESS - 1) * np.arange(classes))
    return np.append(weights, weights.sum() // 3) if task == "multi-label" else weights


def draw_images(
    images: Int64, labels: NDArray[np.uint8], size: int, channels: int
) -> NDArray[np.uint8]:
    """Return the pixels of these images: (n, channels, size, size)."""
    # [Step 1] The background: a gradient, two waves, and clutter.
    n = len(images)
    u = draw_rows(images, "simulated image", 24)[:, :, None, None]
    y, x = np.mgrid[0:size, 0:size].astype(np.float64) / size
    ground = 70 + 60 * u[:, 0] + 50 * (u[:, 1] - 0.5) * x + 50 * (u[:, 2] - 0.5) * y
    for k in range(2):
        turns = u[:, 3 + k] + (1 + 2 * u[:, 5 + k]) * x + (4 * u[:, 7 + k] - 2) * y
        ground = ground + 8 * cosine(to_phase(turns))
    for k in range(3):  # clutter: small blobs that belong to no class
        away = np.sqrt(_square(x - u[:, 9 + k]) + _square(y - u[:, 12 + k]))
        ground = ground + 90 * (u[:, 15 + k] - 0.5) * bump(away, 0.06 + 0.07 * u[:, 18 + k])
    # [Step 2] Add the shape of each class that an image has.
    colours = np.repeat(ground[:, None], channels, axis=1)
    for k in range(labels.shape[1]):
        rows = np.flatnonzero(labels[:, k])
        if len(rows):
            mark = _draw_class(k, draw_rows(images[rows], f"simulated class {k}", 6), x, y)
            for channel in range(channels):
                tint = 0.75 + 0.25 * float(cosine(_tint(k, channel))) if channels > 1 else 1.0
                colours[rows, channel] += tint * mark
    # [Step 3] Add noise, change the contrast, and round to bytes.
    noise = draw_noise(images, "simulated grain", channels * size * size)
    loud = (6 + 16 * u[:, 21, :, :, None]) / 104.5
    noisy = colours * (0.8 + 0.4 * u[:, 22:23]) + loud * noise.reshape(n, channels, size, size)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


def _draw_class(k: int, draws: Float64, x: Float64, y: Float64) -> Float64:
    """Return the brightness that class k adds: (n, size, size)."""
    u = draws[:, :, None, None]
    shape, texture, tone = k % 5, k // 5 % 5, k // 25
    radius = (0.16 + 0.12 * u[:, 0]) * (0.7 if tone >= 2 else 1.0)
    right, down = (x - 0.28 - 0.44 * u[:, 1]) / radius, (y - 0.28 - 0.44 * u[:, 2]) / radius
    angle = to_phase(0.12 * u[:, 3] - 0.06)
    c, s = cosine(angle), cosine(angle - TURN // 4)
    along, across = right * c + down * s, down * c - right * s
    inside = np.clip(_SHAPES[shape](along, across) * 4 + 0.5, 0.0, 1.0)
    height = (30 + 50 * u[:, 4]) * (-1 if tone % 2 else 1)
    value: Float64 = height * inside * _TEXTURES[texture](along, across)
    return value


def _tint(k: int, channel: int) -> Int64:
    """Return the hue of a class in a channel, as a phase; channels are a third of a turn apart."""
    return np.array((k * TURN // 7 + channel * TURN // 3) % TURN, dtype=np.int64)


def _square(values: Float64) -> Float64:
    return values * values


def _wave(turns: Float64) -> Float64:
    """Return a cosine wave from 0 to 1."""
    return 0.5 + 0.5 * cosine(to_phase(turns))


def _bar(u: Float64, v: Float64) -> Float64:
    return np.minimum(1.1 - np.abs(u), 0.28 - np.abs(v))


# Positive inside the shape, in units of its radius.
_SHAPES: tuple[Callable[[Float64, Float64], Float64], ...] = (
    lambda u, v: 0.9 - np.sqrt(u * u + v * v),
    lambda u, v: 0.25 - np.abs(np.sqrt(u * u + v * v) - 0.8),
    lambda u, v: 0.85 - np.maximum(np.abs(u), np.abs(v)),
    lambda u, v: _bar(u, v),
    lambda u, v: np.maximum(_bar(u, v), _bar(v, u)),
)
_TEXTURES: tuple[Callable[[Float64, Float64], Float64], ...] = (
    lambda u, v: np.ones_like(u),
    lambda u, v: _wave(1.6 * u),
    lambda u, v: _wave(1.6 * v),
    lambda u, v: _wave(1.3 * u + 1.3 * v),
    lambda u, v: _wave(1.5 * np.sqrt(u * u + v * v)),
)
