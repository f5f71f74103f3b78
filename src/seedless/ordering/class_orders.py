"""Orders that look at classes: a share of each in every batch, or classes dealt in turn.

A sample of several classes counts for all of them in `class_guaranteed`, and for its rarest in
`class_diverse`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seedless.ordering.labels import class_table
from seedless.ordering.samples import Positions, Samples
from seedless.ordering.sort_keys import content_keys
from seedless.ordering.strategy import EpochInputs, count_batches

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def membership(samples: Samples) -> Bools:
    """Return who belongs to which class, in canonical order: bool (m, K)."""
    return class_table(samples.labels)


def class_diverse(samples: Samples, epoch: EpochInputs) -> Positions:
    """Deal the classes round robin, each in the epoch's content order, until all run out.

    A sample belongs to its rarest class (the lower one if two are as rare). Samples of no class,
    where they are kept, are one class more.
    """
    table = samples.once(membership)
    table = np.concatenate([table, ~table.any(axis=1, keepdims=True)], axis=1)
    sizes = table.sum(axis=0)
    own = np.where(table, sizes, len(table) + 1).argmin(axis=1)
    keys = content_keys(samples, epoch.index)
    by_class = np.lexsort((keys, own))  # stable: equal keys keep canonical order
    grouped = own[by_class]
    turn = np.arange(len(grouped)) - np.searchsorted(grouped, grouped)
    return by_class[np.lexsort((grouped, turn))]


def class_guaranteed(samples: Samples, epoch: EpochInputs) -> Positions:
    """Give every batch a sample of each class, spread what is too rare, and fill up by content.

    Classes are served from the rarest to the commonest. One with at least as many samples as there
    are batches gets one into every batch that has none yet; a rarer one is spread evenly over the
    epoch. Free places are then filled in the epoch's content order, which also orders each batch.
    Where samples of several classes left a batch without a class, samples are swapped between
    batches until no single swap helps. A batch smaller than the number of classes (often the last)
    may still lack some; so may, rarely, one that only a chain of swaps could have mended.
    """
    keys = content_keys(samples, epoch.index)
    sequence = np.argsort(keys, kind="stable")
    table = samples.once(membership)[sequence]
    batches = _Batches(table, epoch.batch_size)
    sizes = table.sum(axis=0)
    for label in np.argsort(sizes, kind="stable").tolist():
        if batches.common[label]:
            batches.cover(label)
        elif sizes[label]:
            chance = int(keys[sequence[table[:, label]]].sum())  # 64 bits, wrapping: from content
            batches.scatter(label, phase=chance * batches.count >> 64)
    batches.fill()
    batches.mend()
    return sequence[np.argsort(batches.home, kind="stable")]


class _Batches:
    """An assignment of samples (numbered in content order) to batches, while it is being made.

    Attributes:
        table: bool (m, K), the classes of each sample.
        common: bool (K,), whether a class has a sample for every batch.
        home: (m,), the batch of each sample, -1 for none yet.
        held: (B, K), how many samples of each class each batch holds.
        room: (B,), free places.
    """

    def __init__(self, table: Bools, batch_size: int) -> None:
        self.table = table
        self.count = count_batches(len(table), batch_size)
        self.common = table.sum(axis=0) >= self.count
        self.home = np.full(len(table), -1, dtype=np.int64)
        self.held = np.zeros((self.count, table.shape[1]), dtype=np.int64)
        self.room = np.full(self.count, batch_size, dtype=np.int64)
        self.room[-1] -= self.count * batch_size - len(table)

    def place(self, samples: Ints, batches: Ints) -> None:
        """Put each sample, none of them placed before, into its batch."""
        self.home[samples] = batches
        self.room -= np.bincount(batches, minlength=self.count)
        sample, label = np.nonzero(self.table[samples])
        cells = batches[sample] * self.held.shape[1] + label
        self.held += np.bincount(cells, minlength=self.held.size).reshape(self.held.shape)

    def waiting(self, label: int) -> Ints:
        """Return the samples of a class that have no batch yet, in content order."""
        return np.flatnonzero(self.table[:, label] & (self.home < 0))

    def cover(self, label: int) -> None:
        """Put one sample of a common class into every batch that lacks it and has room."""
        lacking = np.flatnonzero((self.held[:, label] == 0) & (self.room > 0))
        chosen = self.waiting(label)[: len(lacking)]
        self.place(chosen, lacking[: len(chosen)])

    def scatter(self, label: int, phase: int) -> None:
        """Spread the p < B samples of a rare class: one at each (j B + phase) // p, j = 0 .. p-1.

        Samples that came along with a rarer class already take the nearest of these slots. A batch
        that is full, or already holds one of the sample's rare classes, gives way to the nearest
        that does not.
        """
        total = int(self.table[:, label].sum())
        slots = [(turn * self.count + phase) // total for turn in range(total)]
        for batch in np.repeat(np.arange(self.count), self.held[:, label]).tolist():
            slots.remove(min(slots, key=lambda slot: abs(slot - batch)))
        for sample, slot in zip(self.waiting(label).tolist(), slots, strict=True):
            crowd = self.held @ (self.table[sample] & ~self.common)
            distance = np.abs(np.arange(self.count) - slot)
            cost = np.where(self.room > 0, crowd * self.count + distance, np.iinfo(np.int64).max)
            self.place(np.array([sample]), np.array([cost.argmin()]))

    def fill(self) -> None:
        """Put all other samples into the free places, in content order."""
        rest = np.flatnonzero(self.home < 0)
        self.place(rest, np.repeat(np.arange(self.count), self.room))

    def mend(self) -> None:
        """Swap samples until no swap gives a batch a common class it lacks."""
        mended = True
        while mended:
            gaps = np.argwhere((self.held == 0) & self.common).tolist()
            mended = sum(self._mend_gap(batch, label) for batch, label in gaps) > 0

    def _mend_gap(self, batch: int, label: int) -> bool:
        """Swap a sample of the class into the batch, if that takes no other class from anyone.

        A swap of g (of the class, from a batch that holds two or more) against t (of this batch)
        is allowed when g has every common class of which t is its batch's only sample, and t every
        one of which g is. Samples of rare classes stay where they were spread; one may only be g,
        when no other will do, from the nearest batch, and not to join another of its class.
        """
        if self.held[batch, label]:
            return False
        givers = np.flatnonzero(self.table[:, label])
        givers = givers[self.held[self.home[givers], label] > 1]
        givers = givers[~self._in_any(givers, ~self.common & (self.held[batch] > 0))]
        far = np.abs(self.home[givers] - batch)
        givers = givers[np.lexsort((far, self._in_any(givers, ~self.common)))]
        takers = np.flatnonzero(self.home == batch)
        takers = takers[~self._in_any(takers, ~self.common)]
        lost_here = ~self.table[givers] @ self._indispensable(takers).T
        lost_there = self._indispensable(givers) @ ~self.table[takers].T
        allowed = np.argwhere(lost_here + lost_there == 0)
        if not len(allowed):
            return False
        giver, taker = givers[allowed[0, 0]], takers[allowed[0, 1]]
        change = self.table[giver].astype(np.int64) - self.table[taker]
        self.held[batch] += change
        self.held[self.home[giver]] -= change
        self.home[[taker, giver]] = self.home[[giver, taker]]
        return True

    def _in_any(self, samples: Ints, classes: Bools) -> Bools:
        """Tell which samples belong to any of the classes marked in a bool (K,)."""
        return np.asarray((self.table[samples] & classes).any(axis=1))

    def _indispensable(self, samples: Ints) -> NDArray[np.float32]:
        """Mark the common classes that a sample alone brings to its batch: 0 or 1, (s, K)."""
        alone = self.held[self.home[samples]] == 1
        return np.asarray(self.table[samples] & self.common & alone, dtype=np.float32)
