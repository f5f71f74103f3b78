"""Orders by class: every class in every batch, or the classes in turn.

A sample of several classes counts for all of them in `class_guaranteed`, and only for its rarest in
`class_diverse`.
"""

import numpy as np
from numpy.typing import NDArray

from seedless.ordering.labels import class_table
from seedless.ordering.samples import Positions, Samples
from seedless.ordering.sort_keys import content_keys
from seedless.ordering.strategy import EpochInputs

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def class_membership(samples: Samples) -> Bools:
    """Return which sample, in canonical order, belongs to which class: bool (m, K)."""
    return class_table(samples.labels)


def class_diverse(samples: Samples, epoch: EpochInputs) -> Positions:
    """Return an order that takes one sample of each class in turn, until all classes are used up.

    Within a class, samples are in the epoch's content order. A sample belongs to its rarest class
    (of two equally rare ones, to the lower number). Samples without a class form one more class.
    """
    table = samples.compute_once(class_membership)
    table = np.concatenate([table, ~table.any(axis=1, keepdims=True)], axis=1)
    sizes = table.sum(axis=0)
    own = np.where(table, sizes, len(table) + 1).argmin(axis=1)
    keys = content_keys(samples, epoch.index)
    by_class = np.lexsort((keys, own))  # stable: equal keys keep canonical order
    grouped = own[by_class]
    turn = np.arange(len(grouped)) - np.searchsorted(grouped, grouped)
    return by_class[np.lexsort((grouped, turn))]


def class_guaranteed(samples: Samples, epoch: EpochInputs) -> Positions:
    """Return an order in which every batch has a sample of each class that has enough samples.

    A class is common if it has at least as many samples as there are batches, else rare. A batch
    smaller than the number of classes (often the last) may still lack some; so may, rarely, a batch
    that only a chain of several swaps could complete.
    """
    keys = content_keys(samples, epoch.index)
    sequence = np.argsort(keys, kind="stable")
    table = samples.compute_once(class_membership)[sequence]
    assignment = _Assignment(table, epoch.batch_size)
    # [Step 1] From the rarest class to the commonest: put one sample of a common class into every
    # batch that has none, and spread a rare class evenly over the epoch.
    sizes = table.sum(axis=0)
    for label in np.argsort(sizes, kind="stable").tolist():
        if assignment.is_common[label]:
            assignment.put_one_in_every_batch(label)
        elif sizes[label]:
            key = int(keys[sequence[table[:, label]]].sum())  # uint64 that wraps, from the contents
            assignment.spread(label, phase=key * assignment.batch_count >> 64)
    # [Step 2] Fill the free places in content order.
    assignment.fill_free_places()
    # [Step 3] Samples of several classes may have left a batch without a class: swap samples.
    assignment.swap_in_missing_classes()
    # [Step 4] Within a batch, samples are in content order.
    return sequence[np.argsort(assignment.batch_of, kind="stable")]


class _Assignment:
    """A partial assignment of samples, numbered in content order, to B batches.

    Attributes:
        table: bool (m, K), the classes of each sample.
        is_common: bool (K,), whether a class has a sample for every batch.
        batch_of: (m,), the batch of each sample, -1 for none yet.
        class_counts: (B, K), the number of samples of each class in each batch.
        free_places: (B,).
    """

    def __init__(self, table: Bools, batch_size: int) -> None:
        self.table = table
        self.batch_count = -(-len(table) // batch_size)  # rounded up
        self.is_common = table.sum(axis=0) >= self.batch_count
        self.batch_of = np.full(len(table), -1, dtype=np.int64)
        self.class_counts = np.zeros((self.batch_count, table.shape[1]), dtype=np.int64)
        self.free_places = np.full(self.batch_count, batch_size, dtype=np.int64)
        self.free_places[-1] -= self.batch_count * batch_size - len(table)

    def assign(self, samples: Ints, batches: Ints) -> None:
        """Assign each sample to its batch; none of them may have a batch yet."""
        self.batch_of[samples] = batches
        self.free_places -= np.bincount(batches, minlength=self.batch_count)
        sample, label = np.nonzero(self.table[samples])
        cells = batches[sample] * self.class_counts.shape[1] + label
        added = np.bincount(cells, minlength=self.class_counts.size)
        self.class_counts += added.reshape(self.class_counts.shape)

    def list_unassigned(self, label: int) -> Ints:
        """Return the samples of a class that have no batch yet, in content order."""
        return np.flatnonzero(self.table[:, label] & (self.batch_of < 0))

    def put_one_in_every_batch(self, label: int) -> None:
        """Put one sample of a common class into every batch that lacks it and has a free place."""
        lacking = np.flatnonzero((self.class_counts[:, label] == 0) & (self.free_places > 0))
        chosen = self.list_unassigned(label)[: len(lacking)]
        self.assign(chosen, lacking[: len(chosen)])

    def spread(self, label: int, phase: int) -> None:
        """Spread the p < B samples of a rare class, aiming at the batches (j B + phase) // p."""
        # [Step 1] Samples assigned earlier, with a rarer class of theirs, use up the nearest slots.
        total = int(self.table[:, label].sum())
        slots = [(turn * self.batch_count + phase) // total for turn in range(total)]
        for batch in np.repeat(np.arange(self.batch_count), self.class_counts[:, label]).tolist():
            slots.remove(min(slots, key=lambda slot: abs(slot - batch)))
        # [Step 2] Each other sample goes to a batch with a free place and the fewest samples of its
        # rare classes; of those, to the nearest to its slot.
        for sample, slot in zip(self.list_unassigned(label).tolist(), slots, strict=True):
            same_class = self.class_counts @ (self.table[sample] & ~self.is_common)
            cost = same_class * self.batch_count + np.abs(np.arange(self.batch_count) - slot)
            cost[self.free_places == 0] = np.iinfo(np.int64).max
            self.assign(np.array([sample]), np.array([cost.argmin()]))

    def fill_free_places(self) -> None:
        """Assign all other samples to the free places, in content order."""
        rest = np.flatnonzero(self.batch_of < 0)
        self.assign(rest, np.repeat(np.arange(self.batch_count), self.free_places))

    def swap_in_missing_classes(self) -> None:
        """Swap samples until no single swap gives a batch a common class that it lacks."""
        swapped = True
        while swapped:
            missing = np.argwhere((self.class_counts == 0) & self.is_common).tolist()
            swapped = sum(self._swap_in(batch, label) for batch, label in missing) > 0

    def _swap_in(self, batch: int, label: int) -> bool:
        """Swap a sample of the class into the batch, if no batch loses a common class by that.

        Returns whether a swap was made.
        """
        if self.class_counts[batch, label]:
            return False
        is_rare = ~self.is_common
        # [Step 1] Incoming candidates: samples of the class, from batches that have two or more of
        # it, that bring no rare class which this batch has already. Samples of rare classes come
        # last, because they are better left where they were spread; nearer batches come first.
        incoming = np.flatnonzero(self.table[:, label])
        incoming = incoming[self.class_counts[self.batch_of[incoming], label] > 1]
        rare_here = is_rare & (self.class_counts[batch] > 0)
        incoming = incoming[~self._belong_to_any(incoming, rare_here)]
        distance = np.abs(self.batch_of[incoming] - batch)
        incoming = incoming[np.lexsort((distance, self._belong_to_any(incoming, is_rare)))]
        # [Step 2] Outgoing candidates: samples of this batch without a rare class.
        outgoing = np.flatnonzero(self.batch_of == batch)
        outgoing = outgoing[~self._belong_to_any(outgoing, is_rare)]
        # [Step 3] A pair is allowed if neither batch loses the only sample of a common class.
        lost_here = ~self.table[incoming] @ self._mark_irreplaceable(outgoing).T
        lost_there = self._mark_irreplaceable(incoming) @ ~self.table[outgoing].T
        allowed = np.argwhere(lost_here + lost_there == 0)
        if not len(allowed):
            return False
        # [Step 4] Swap the first allowed pair.
        sample_in, sample_out = incoming[allowed[0, 0]], outgoing[allowed[0, 1]]
        change = self.table[sample_in].astype(np.int64) - self.table[sample_out]
        self.class_counts[batch] += change
        self.class_counts[self.batch_of[sample_in]] -= change
        self.batch_of[[sample_out, sample_in]] = self.batch_of[[sample_in, sample_out]]
        return True

    def _belong_to_any(self, samples: Ints, classes: Bools) -> Bools:
        """Return which samples belong to any of the classes marked in a bool (K,): bool (s,)."""
        return np.asarray((self.table[samples] & classes).any(axis=1))

    def _mark_irreplaceable(self, samples: Ints) -> NDArray[np.float32]:
        """Mark a sample's common classes that no other sample of its batch has: 0 or 1, (s, K)."""
        alone = self.class_counts[self.batch_of[samples]] == 1
        return np.asarray(self.table[samples] & self.is_common & alone, dtype=np.float32)
