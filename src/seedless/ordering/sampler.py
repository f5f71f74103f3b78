"""A batch sampler for torch's DataLoader: seed-free, resumable, aware of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
import torch.distributed
import torch.utils.data
from numpy.typing import ArrayLike

from seedless.core.checks import check_integer
from seedless.core.digests import digest_bytes, digest_value, keys_from_digests
from seedless.core.errors import OrderError
from seedless.core.files import AnyPath
from seedless.core.registry import choose
from seedless.core.sample_digests import count_samples, digest_dataset, digest_keys
from seedless.core.sample_index import SampleIndex
from seedless.numerics.active_keys import clear_batch_keys, set_batch_keys
from seedless.numerics.counter_random import WORD_MASK
from seedless.ordering.loader_delivery import EpochBatches, watch_loaders
from seedless.ordering.order import make_digest_order
from seedless.ordering.registry import ORDERS

_STATE = {"epoch", "delivered", "sampler"}


class Sampler(torch.utils.data.Sampler[list[SampleIndex]]):
    """Batches of a dataset in an order that depends on the samples alone, another one every epoch.

    Pass it to torch's DataLoader as ``batch_sampler``. With each batch that the loader delivers,
    the keys of its samples are set for a converted model (`seedless.convert`) and for
    `seedless.Dropout`, until the next batch. In the dataset, `seedless.augment` finds a sample's
    key and the epoch in the index. No number of workers changes anything of this.

    Each pass over the loader is an epoch. A pass that is left early ends its epoch.

    Args:
        dataset: anything with ``len(dataset)`` and ``dataset[index]``. It is read once, now, to
            compute the samples' digests, unless there is a ``key``.
        batch_size: samples in a batch of this process.
        order: one of `seedless.ordering.ORDERS` that looks at digests and labels only.
        key: a function that returns a name for each index (text, bytes, an integer or a tuple), for
            samples that are too large to read once more. It decides order, dropout and augmentation
            in place of the content.
        labels: for orders that compose batches by class: class numbers (n,), or zeros and ones
            (n, K).
        drop_last: leave out an epoch's last samples where they do not fill a batch.
        rank: the number of this process, and ``world_size`` how many there are; by default those of
            torch.distributed. The processes share each batch of ``world_size * batch_size``.
        world_size: see ``rank``.
        offset: added to the epoch, to get replicates.
        cache: a file that keeps the digests, see `seedless.core.sample_digests.digest_dataset`.
        workers: processes that compute the digests.
        shown: whether the progress of that is shown.

    Example:
        >>> sampler = seedless.Sampler(dataset, batch_size=64)
        >>> loader = torch.utils.data.DataLoader(dataset, batch_sampler=sampler, num_workers=2)
        >>> for epoch in range(10):
        ...     for x, y in loader: ...
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        *,
        order: str = "content",
        key: Callable[[int], Any] | None = None,
        labels: ArrayLike | None = None,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        offset: int = 0,
        cache: AnyPath | None = None,
        workers: int = 0,
        shown: bool = True,
    ) -> None:
        # [Step 1] Check what can be checked before the dataset is read.
        self.batch_size = check_integer("batch_size", batch_size, 1, error=OrderError)
        self.rank, self.world_size = _find_rank(rank, world_size)
        self.drop_last = drop_last
        strategy = choose("order", order, ORDERS)
        if strategy.needs_losses or strategy.takes_seed:
            needs = "losses of the last epoch" if strategy.needs_losses else "a seed"
            raise OrderError(
                f"order {order!r} needs {needs}, which a sampler does not know; use 'content', or "
                "train with seedless.fit"
            )
        # [Step 2] Digests, keys and order.
        count = count_samples(dataset)
        if key is None:
            digests = digest_dataset(dataset, cache=cache, workers=workers, shown=shown)
        else:
            digests = digest_keys(count, key)
        self._keys = keys_from_digests(digests)
        whole = self.batch_size * self.world_size
        self._order = make_digest_order(order, digests, labels, batch_size=whole, offset=offset)
        _check_last_batch(len(self._order), whole, self.world_size, drop_last)
        self._identity = digest_value(
            {
                "batch_size": whole,
                "drop_last": drop_last,
                "offset": offset,
                "order": order,
                "samples": digest_bytes(self._order.samples.digests.tobytes()),
            }
        )
        # [Step 3] Where the next pass begins, and where the present one is.
        self._next = (0, 0)
        self._position = (0, 0)
        watch_loaders()

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        whole = self.batch_size * self.world_size
        return len(self._order) // whole if self.drop_last else -(-len(self._order) // whole)

    def __iter__(self) -> EpochBatches:
        """Return the batches of the next epoch, or of the rest of a resumed one."""
        return EpochBatches(self._begin, self._deliver, self._finish)

    @property
    def epoch(self) -> int:
        """The epoch of the batch that was delivered last, or that comes next."""
        return self._position[0]

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass be this epoch. Without it, epochs are counted from 0."""
        epoch = check_integer("epoch", epoch, 0, WORD_MASK, error=OrderError)
        self._next = self._position = (epoch, 0)

    def state_dict(self) -> dict[str, Any]:
        """Return where training is: epoch and number of batches delivered, for a checkpoint.

        Batches that a loader has read ahead do not count. All ranks have the same state.
        """
        epoch, delivered = self._position
        return {"epoch": epoch, "delivered": delivered, "sampler": self._identity}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next pass go on after the batches that were delivered."""
        if not isinstance(state, Mapping) or set(state) != _STATE:
            raise OrderError(
                f"expected the state of a sampler, with {', '.join(sorted(_STATE))}, got "
                f"{sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__}"
            )
        if state["sampler"] != self._identity:
            raise OrderError(
                "this state is of a sampler over other samples, or with another order, batch size "
                "times world size, offset or drop_last; resume with the same ones"
            )
        epoch = check_integer("epoch", state["epoch"], 0, WORD_MASK, error=OrderError)
        most = len(self) - 1
        delivered = check_integer("delivered", state["delivered"], 0, most, error=OrderError)
        self._next = self._position = (epoch, delivered)

    def _begin(self) -> Iterator[list[SampleIndex]]:
        """Return the batches of this rank that are left of the epoch, and prepare the one after."""
        epoch, delivered = self._position = self._next
        self._next = (epoch + 1, 0)
        return self._make_batches(epoch, delivered)

    def _make_batches(self, epoch: int, delivered: int) -> Iterator[list[SampleIndex]]:
        for whole in self._order.schedule(epoch).batches[delivered : len(self)]:
            rows = np.array_split(whole, self.world_size)[self.rank]
            keys = self._keys[rows].tolist()
            yield [
                SampleIndex(row, key=key, epoch=epoch)
                for row, key in zip(rows.tolist(), keys, strict=True)
            ]

    def _deliver(self, batch: list[SampleIndex]) -> None:
        """Count a batch and set its keys."""
        epoch, delivered = batch[0].epoch, self._position[1]
        set_batch_keys(torch.tensor([sample.key for sample in batch]), epoch, delivered)
        done = delivered + 1
        self._position = (epoch, done) if done < len(self) else (epoch + 1, 0)

    def _finish(self) -> None:
        """Forget the keys of the last batch."""
        clear_batch_keys()


def _find_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return rank and world size as given, or those of torch.distributed, or 0 of 1."""
    if (rank is None) != (world_size is None):
        raise OrderError(f"expected both rank and world_size, got rank={rank}, {world_size=}")
    if rank is None or world_size is None:
        if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
            return 0, 1
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    size = check_integer("world_size", world_size, 1, error=OrderError)
    return check_integer("rank", rank, 0, size - 1, error=OrderError), size


def _check_last_batch(count: int, whole: int, world_size: int, drop_last: bool) -> None:
    """Refuse an epoch without batches, and a last batch with nothing for some of the processes."""
    if drop_last and count < whole:
        raise OrderError(
            f"drop_last=True leaves nothing of {count} samples in batches of {whole}: choose a "
            "smaller batch_size"
        )
    if not drop_last and 0 < count % whole < world_size:
        raise OrderError(
            f"the last batch of an epoch has {count % whole} samples for {world_size} processes, "
            "so that some would have none and the others would wait for them: pass drop_last=True "
            "or another batch_size"
        )
