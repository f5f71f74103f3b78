"""The positions of windows: the references of convolutions, pools and folds share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Sizes = Sequence[int]


def at(place: Sizes) -> Any:
    """Return an index of the last axes."""
    return (..., *place)


class Frame:
    """Windows over the last axes: the index of each tap of each window, None outside the input."""

    def __init__(
        self, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, gaps: Sizes, ceil: bool
    ) -> None:
        self.sizes, self.kernel = tuple(sizes), tuple(kernel)
        self.stride, self.padding, self.gaps = tuple(stride), tuple(padding), tuple(gaps)
        self.counts = []
        for n, k, s, p, g in zip(sizes, kernel, stride, padding, gaps, strict=True):
            room = n + 2 * p - g * (k - 1) - 1
            count = math.ceil(room / s) + 1 if ceil else room // s + 1
            self.counts.append(count - 1 if ceil and (count - 1) * s >= n + p else count)

    def windows(self) -> Iterator[tuple[int, ...]]:
        """Return every window, as its place among the windows."""
        return np.ndindex(*self.counts)

    def taps(self) -> Iterator[tuple[int, ...]]:
        """Return every tap of a window, the last axis fastest."""
        return itertools.product(*map(range, self.kernel))

    def place(self, window: Sizes, tap: Sizes) -> tuple[int, ...] | None:
        """Return the index of a tap."""
        here = tuple(
            w * s + t * g - p
            for w, t, s, g, p in zip(window, tap, self.stride, self.gaps, self.padding, strict=True)
        )
        return here if all(0 <= h < n for h, n in zip(here, self.sizes, strict=True)) else None

    def counted(self, window: Sizes, tap: Sizes) -> bool:
        """Return whether a tap reads the input or its padding: not beyond both."""
        return all(
            w * s + t * g < n + 2 * p
            for w, t, s, g, n, p in zip(
                window, tap, self.stride, self.gaps, self.sizes, self.padding, strict=True
            )
        )
