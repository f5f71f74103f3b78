"""An order: one permutation of the labelled samples for every epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seedless.core.checks import check_integer
from seedless.core.digests import to_numpy
from seedless.core.errors import DataError, OrderError
from seedless.core.registry import choose
from seedless.ordering.batch_schedule import Schedule, make_schedule
from seedless.ordering.loss_orders import canonical_losses
from seedless.ordering.registry import ORDERS
from seedless.ordering.samples import Positions, Samples, read_digests, read_samples
from seedless.ordering.strategy import EpochInputs, Strategy

MAX_EPOCH = (1 << 63) - 1  # offset included
MAX_OFFSET = MAX_BATCH_SIZE = (1 << 62) - 1


@dataclass(eq=False, repr=False)
class Order:
    """A batch order over fixed samples, made by `make_order`. Only its losses ever change."""

    name: str
    strategy: Strategy
    samples: Samples
    batch_size: int
    seed: int
    offset: int
    losses: NDArray[np.float64] | None = None  # in canonical order

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        return f"Order({self.name!r}, {len(self)} of {self.samples.stored} samples)"

    @property
    def needs_losses(self) -> bool:
        """Whether the order uses losses: call `observe` after each epoch."""
        return self.strategy.needs_losses

    def epoch(self, epoch: int) -> NDArray[np.int64]:
        """Return the epoch's permutation of the labelled rows of the data: int64 (m,)."""
        return self.samples.rows[self._arrange(self._index(epoch), self.batch_size)]

    def schedule(self, epoch: int, batch_size: int | None = None) -> Schedule:
        """Return the epoch's batches and their digest; the order's batch size is the default."""
        index = self._index(epoch)
        size = self.batch_size if batch_size is None else batch_size
        size = check_integer("batch_size", size, 1, MAX_BATCH_SIZE, error=OrderError)
        return make_schedule(self.samples, self._arrange(index, size), index, size)

    def observe(self, losses: ArrayLike) -> Order:
        """Use the last epoch's losses: (n,), one for each row of the data, unlabelled rows ignored.

        Equal samples may have unequal losses; which of them has which has no effect.
        """
        if not self.needs_losses:
            raise OrderError(f"order {self.name!r} takes no losses; leave `observe` out")
        values = to_numpy(losses, "losses")
        if values.shape != (self.samples.stored,):
            raise DataError(
                f"expected one loss for each row of the data, shape ({self.samples.stored},), got "
                f"{values.dtype} of shape {values.shape}"
            )
        own = values.astype(np.float64)
        bad = np.sort(self.samples.rows[~np.isfinite(own[self.samples.rows])])
        if len(bad):
            raise DataError(
                f"expected finite losses to rank samples by, but the loss of row {bad[0]} is "
                f"{own[bad[0]]} ({len(bad)} of {len(self)} are not finite): stop the run, it has "
                "diverged"
            )
        self.losses = canonical_losses(self.samples, own)
        return self

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state for a checkpoint: {"losses": float64 (m,)}, or {} before the first ones.

        The losses are in canonical order, so the state does not depend on the storage order.
        """
        return {} if self.losses is None else {"losses": self.losses.copy()}

    def restore(self, state: Mapping[str, ArrayLike]) -> Order:
        """Restore the `state` of an order over the same samples."""
        if not state:
            self.losses = None
            return self
        known = {"losses"} if self.needs_losses else set()
        if set(state) != known:
            raise OrderError(
                f"expected the state of order {self.name!r} to hold {sorted(known) or 'nothing'}, "
                f"got {sorted(state)}; restore the state of the same order"
            )
        losses = to_numpy(state["losses"], "losses").astype(np.float64)
        if losses.shape != (len(self),) or not np.isfinite(losses).all():
            raise OrderError(
                f"expected {len(self)} finite losses, got shape {losses.shape}; restore the state "
                "of an order over the same samples"
            )
        self.losses = losses
        return self

    def _index(self, epoch: int) -> int:
        most = MAX_EPOCH - self.offset
        return check_integer("epoch", epoch, 0, most, error=OrderError) + self.offset

    def _arrange(self, index: int, batch_size: int) -> Positions:
        return self.strategy.arrange(
            self.samples, EpochInputs(index, batch_size, self.seed, self.losses)
        )


def make_order(
    name: str,
    X: ArrayLike,  # noqa: N803
    labels: ArrayLike | None = None,
    *,
    batch_size: int = 128,
    seed: int | None = None,
    offset: int = 0,
    keep_unlabelled: bool = False,
) -> Order:
    """Return the batch order ``name`` over the labelled samples of ``X``.

    Hashes, sums and features, which all epochs share, are computed here, once.

    Args:
        name: one of `ORDERS`; "content" is the default everywhere else.
        X: the samples as the model receives them, (n, ...): normalized, not augmented.
        labels: None (all samples are labelled), class numbers (n,) where a negative one means
            unlabelled, or zeros and ones (n, K) where a row without a one means unlabelled.
        batch_size: samples in a batch; `class_guaranteed` and `feature_diverse` depend on it.
        seed: for the control `seeded` alone, 0 to 2^64 - 1; 0 by default.
        offset: added to the epoch index, to get replicates of a seed-free order.
        keep_unlabelled: train on rows without a one as well, for multi-label datasets such as
            ChestMNIST in which "no finding" is an answer.

    Example:
        >>> order = seedless.order("content", X, labels=Y)
        >>> for epoch in range(85):
        ...     for batch in order.schedule(epoch).batches: ...
    """
    strategy = choose("order", name, ORDERS)
    if strategy.needs_labels and labels is None:
        raise OrderError(f"order {name!r} composes batches by class; pass labels")
    samples = read_samples(X, labels, keep_unlabelled)
    return _make(name, strategy, samples, batch_size, seed, offset)


def make_digest_order(
    name: str,
    digests: NDArray[np.uint8],
    labels: ArrayLike | None = None,
    *,
    batch_size: int = 128,
    seed: int | None = None,
    offset: int = 0,
    keep_unlabelled: bool = False,
) -> Order:
    """Return the batch order ``name`` over samples that are known by their digests (n, 32) alone.

    Orders that look at values are refused, and those that look at labels where none are given.

    Example:
        >>> make_digest_order("content", digests, batch_size=32).schedule(0).batches
    """
    strategy = choose("order", name, ORDERS)
    if strategy.needs_values or (strategy.needs_labels and labels is None):
        possible = [
            other for other, one in ORDERS.items() if not one.needs_values and not one.needs_labels
        ]
        what = "the values" if strategy.needs_values else "the labels"
        can_be_given = (
            "" if strategy.needs_values else "give them as labels= where there is one, or "
        )
        raise OrderError(
            f"order {name!r} needs {what} of all samples, and samples that are read batch by "
            f"batch are known by their digests alone; {can_be_given}use one of "
            f"{', '.join(possible)}"
        )
    samples = read_digests(digests, labels, keep_unlabelled)
    return _make(name, strategy, samples, batch_size, seed, offset)


def _make(
    name: str, strategy: Strategy, samples: Samples, batch_size: int, seed: int | None, offset: int
) -> Order:
    if seed is not None and not strategy.takes_seed:
        raise OrderError(
            f"order {name!r} is seed-free; leave the seed out, or use order 'seeded' "
            "(`offset` gives replicates)"
        )
    order = Order(
        name=name,
        strategy=strategy,
        batch_size=check_integer("batch_size", batch_size, 1, MAX_BATCH_SIZE, error=OrderError),
        seed=check_integer("seed", 0 if seed is None else seed, 0, (1 << 64) - 1, error=OrderError),
        offset=check_integer("offset", offset, 0, MAX_OFFSET, error=OrderError),
        samples=samples,
    )
    order.epoch(0)  # reads the data now, so that a later change of X in place has no effect
    return order
