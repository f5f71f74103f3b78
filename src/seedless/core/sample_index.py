"""The number of a sample in its dataset, which also carries the sample's key and the epoch.

A batch sampler gives these numbers to the dataset, also in worker processes. To the dataset they
are plain integers; `seedless.augment` reads the key and the epoch from them.
"""

from __future__ import annotations

from typing import Any, Self


class SampleIndex(int):
    """An integer with two attributes: ``key``, the sample's int64 key, and ``epoch``.

    >>> number = SampleIndex(3, key=-17, epoch=2)
    >>> ["a", "b", "c", "d"][number], number.key, number.epoch
    ('d', -17, 2)
    """

    key: int
    epoch: int

    def __new__(cls, index: int, *, key: int, epoch: int) -> Self:
        """Return the integer ``index`` with its attributes."""
        made = super().__new__(cls, index)
        made.key, made.epoch = key, epoch
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (int(self), self.key, self.epoch)


def _make(index: int, key: int, epoch: int) -> SampleIndex:
    """Return a number that was sent to another process."""
    return SampleIndex(index, key=key, epoch=epoch)
