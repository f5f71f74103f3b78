"""Which batch a torch data loader has delivered, and not only read ahead.

A loader with worker processes takes numbers from its batch sampler long before their batch is
delivered. It delivers batches in the order in which it took their numbers. So the iterator that a
`Sampler` gives to the loader remembers what was taken, and a wrapper of the loader's ``__next__``
tells it of each delivery. The wrapper acts only where the batch sampler is ours.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data.dataloader import _BaseDataLoaderIter

from seedless.core.errors import OrderError
from seedless.core.sample_index import SampleIndex

_WRAPPED = "_seedless_delivery"
# Libraries whose loaders take a batch before the one in use is done with.
_READING_AHEAD = ("accelerate",)


class EpochBatches(Iterator[list[SampleIndex]]):
    """The batches of one pass over a sampler: what was taken, and what was delivered.

    Args:
        begin: called once, when the first batch is taken; returns the batches of the epoch.
        deliver: called with each batch, when it was delivered.
        finish: called when the last one was.
    """

    def __init__(
        self,
        begin: Callable[[], Iterator[list[SampleIndex]]],
        deliver: Callable[[list[SampleIndex]], None],
        finish: Callable[[], None],
    ) -> None:
        self._begin, self.deliver_batch, self.finish = begin, deliver, finish
        self._batches: Iterator[list[SampleIndex]] | None = None
        self._taken: deque[list[SampleIndex]] = deque()
        self._by_loader = False

    def __next__(self) -> list[SampleIndex]:
        """Return the next batch of numbers. Without a loader, it is delivered by that."""
        if self._batches is None:
            self._by_loader = _is_called_by_loader()
            self._batches = self._begin()
        batch = next(self._batches, None)
        if batch is None:
            if not self._by_loader:
                self.finish()
            raise StopIteration
        if self._by_loader:
            self._taken.append(batch)
        else:
            self.deliver_batch(batch)
        return batch

    def deliver(self) -> None:
        """Note that the loader has delivered the first batch that it has not delivered yet."""
        self.deliver_batch(self._taken.popleft())


def watch_loaders() -> None:
    """Wrap the ``__next__`` of torch's data loaders, once in a process."""
    original = _BaseDataLoaderIter.__next__
    if hasattr(original, _WRAPPED):
        return

    @functools.wraps(original)
    def deliver_next(self: Any) -> Any:
        if not isinstance(self._sampler_iter, EpochBatches):
            return original(self)
        _check_loader(self, sys._getframe(1).f_globals.get("__name__", ""))
        try:
            data = original(self)
        except StopIteration:
            self._sampler_iter.finish()
            raise
        self._sampler_iter.deliver()
        return data

    setattr(deliver_next, _WRAPPED, True)
    _BaseDataLoaderIter.__next__ = deliver_next  # type: ignore[method-assign]  # on purpose


def _check_loader(loader: Any, caller: str) -> None:
    if not getattr(loader, "_in_order", True):
        raise OrderError(
            "a data loader with in_order=False delivers batches in the order in which its workers "
            "happen to finish; leave in_order out"
        )
    if caller.partition(".")[0] in _READING_AHEAD:
        raise OrderError(
            f"the data loader of {caller.partition('.')[0]} takes a batch before the one in use is "
            "done with, so that dropout would get the keys of another batch: iterate over torch's "
            "DataLoader itself (seedless.Sampler takes rank and world_size), or train with "
            "seedless.fit"
        )


def _is_called_by_loader() -> bool:
    """Whether torch's loader itself takes a batch; refuse one that does so through a wrapper."""
    take = _BaseDataLoaderIter._next_index.__code__
    frame = sys._getframe(2)
    if frame.f_code is take:
        return True
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code is take:
            raise OrderError(
                "something between the DataLoader and seedless.Sampler takes its batches, so that "
                "it is not known which one was delivered: pass DataLoader(dataset, "
                "batch_sampler=seedless.Sampler(...)) itself, with rank and world_size where "
                "several processes train"
            )
    return False
