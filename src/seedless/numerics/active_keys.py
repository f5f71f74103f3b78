"""Which samples and epoch a dropout layer belongs to: the keys that are set around a forward pass.

`dropout_keys` sets them for a block of code. `set_batch_keys` sets those of the batch that a data
loader has just delivered, until the next one. A layer looks for its keys in this order:

1. In a backward pass that computes part of the forward pass again (activation checkpointing): those
   that were set in that forward pass. Other keys may be set by then, or none.
2. Those of the block of `dropout_keys` that its own thread or task is in.
3. Those of the batch that was delivered to its own thread last.
4. In a thread that sets none, such as a worker of the user's own: those that another thread has
   set, if only one has.

The forward pass of a node of the autograd graph is found by the node's sequence number: torch
numbers the nodes of a thread as they are made, and the numbers at which keys were set are
remembered.
"""

import sys
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import CheckpointFunction

from seedless.core.checks import check_integer
from seedless.core.errors import NumericsError
from seedless.numerics.counter_random import WORD_MASK

# Forward passes of a thread whose keys are remembered until their backward pass.
MAX_REMEMBERED = 1024
_MAX_THREADS = 64


class BatchKeys(NamedTuple):
    """The keys of a batch: what `dropout_keys` was given.

    Attributes:
        samples: (B,) int64, one key for each sample.
        epoch: 0 to 2^32 - 1, a number or a tensor.
        axis: the axis of the samples in what a layer receives, where someone said it.
        step: the number of the batch, where someone said it.
    """

    samples: Tensor
    epoch: Tensor | int
    axis: int | None = None
    step: Tensor | int | None = None


@dataclass(frozen=True, eq=False)
class _Keys:
    """The keys of a batch, and the backward pass in which they were set, -1 for none."""

    given: BatchKeys
    backward: int


@dataclass
class _Thread:
    """The keys of one thread: those it has set now, and those of its earlier forward passes.

    Attributes:
        stack: those of the blocks of `dropout_keys` that the thread is in.
        delivered: those of the batch that a data loader delivered last.
        numbers: sequence numbers from which on ``passes`` of the same place were set.
    """

    stack: list[_Keys] = field(default_factory=list)
    delivered: _Keys | None = None
    numbers: list[int] = field(default_factory=list)
    passes: list[_Keys | None] = field(default_factory=list)

    def get_keys(self) -> _Keys | None:
        """Return the keys that are set now."""
        return self.stack[-1] if self.stack else self.delivered

    def note(self) -> None:
        """Remember that the keys that are set now are those of the nodes made from now on."""
        number = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]  # private
        if self.numbers and number < self.numbers[-1]:  # a new thread with the id of an ended one
            self.numbers, self.passes = [], []
        if self.numbers and number == self.numbers[-1]:
            self.numbers.pop()
            self.passes.pop()
        self.numbers.append(number)
        self.passes.append(self.get_keys())
        del self.numbers[: -2 * MAX_REMEMBERED], self.passes[: -2 * MAX_REMEMBERED]

    def find(self, number: int) -> _Keys | None:
        """Return the keys that were set when the node of this number was made."""
        place = bisect_right(self.numbers, number) - 1
        return self.passes[place] if place >= 0 else None


_OWN: ContextVar[_Keys | None] = ContextVar("dropout_keys", default=None)


class _Process:
    """What all threads share: the keys of each thread, and for torch.compile the last ones set.

    torch.compile cannot trace a ContextVar, so it reads ``traced``.
    """

    traced: BatchKeys | None = None
    threads: ClassVar[dict[int, _Thread]] = {}
    lock = threading.Lock()

    @classmethod
    def get_thread(cls) -> _Thread:
        """Return what is known of the thread that calls; forget the first of very many."""
        while len(cls.threads) > _MAX_THREADS:
            ended = [number for number, thread in cls.threads.items() if not thread.get_keys()]
            if not ended:
                break
            del cls.threads[ended[0]]
        return cls.threads.setdefault(threading.get_ident(), _Thread())


@contextmanager
def dropout_keys(
    *,
    samples: Tensor,
    epoch: Tensor | int,
    axis: int | None = None,
    step: Tensor | int | None = None,
) -> Iterator[None]:
    """Set the samples and the epoch that the dropout masks of a forward pass are computed from.

    The backward pass may be inside or outside, also with activation checkpointing.

    Args:
        samples: one int64 key for each sample of the batch, (B,). `seedless.sample_keys(X)` returns
            keys that depend on the samples' content alone.
        epoch: 0 to 2^32 - 1. It may be a tensor on the device, so that a captured CUDA graph can be
            replayed for another epoch.
        axis: the axis of the samples in what the dropout layers receive; 1 for input with time
            first, (T, B, ...). By default it is axis 0, and an input (B, B, ...) is refused. A
            layer's own axis comes before this one.
        step: the number of the batch. Draws that all samples of a batch share, such as that of
            LayerDrop, depend on epoch and step; without it, on epoch and the sum of the keys.

    Example:
        >>> keys = torch.from_numpy(seedless.sample_keys(X))
        >>> with seedless.dropout_keys(samples=keys[rows], epoch=3):
        ...     logits = model(X[rows])
    """
    keys = _check_keys(samples, epoch, axis, step)
    token = _OWN.set(keys)
    before, _Process.traced = _Process.traced, keys.given
    with _Process.lock:
        thread = _Process.get_thread()
        thread.stack.append(keys)
        thread.note()
    try:
        yield
    finally:
        with _Process.lock:
            thread.stack.remove(keys)
            thread.note()
            below = thread.get_keys()
        _Process.traced = before if below is None else below.given
        _OWN.reset(token)


def set_batch_keys(samples: Tensor, epoch: int, step: int) -> None:
    """Set the keys of a batch that was delivered, for this thread until the next such call.

    A block of `dropout_keys` comes before them.
    """
    _deliver(_check_keys(samples, epoch, None, step))


def clear_batch_keys() -> None:
    """Forget the keys of the last batch: the epoch has ended."""
    _deliver(None)


def _deliver(keys: _Keys | None) -> None:
    with _Process.lock:
        thread = _Process.get_thread()
        thread.delivered = keys
        thread.note()
        if not thread.stack:
            _Process.traced = None if keys is None else keys.given


def _check_keys(
    samples: Tensor, epoch: Tensor | int, axis: int | None, step: Tensor | int | None
) -> _Keys:
    if not isinstance(epoch, Tensor):
        check_integer("epoch", epoch, 0, WORD_MASK, error=NumericsError)
    if step is not None and not isinstance(step, Tensor):
        check_integer("step", step, 0, error=NumericsError)
    return _Keys(BatchKeys(samples, epoch, axis, step), torch._C._current_graph_task_id())


def find_keys() -> BatchKeys:
    """Return the keys of the batch for a dropout layer that is called now.

    Raises NumericsError where no keys are set.
    """
    given = None
    if torch.compiler.is_compiling():
        given = _Process.traced
    elif keys := _find_recomputed() or _OWN.get() or _find_in_threads():
        given = keys.given
    if given is None:
        raise NumericsError(
            "dropout in training mode needs the keys of the samples and the epoch: wrap the "
            "forward pass in `with seedless.dropout_keys(samples=keys, epoch=e):`, read the "
            "batches with DataLoader(dataset, batch_sampler=seedless.Sampler(...)), or call "
            "model.eval()"
        )
    return given


def _find_recomputed() -> _Keys | None:
    """Return the keys of the forward pass that is computed again; None outside a backward pass."""
    # [Step 1] A forward pass of its own within a backward pass, as a hook may have, sets its keys
    # there.
    node = torch._C._current_autograd_node()
    own = _OWN.get()
    if node is None or (own and own.backward == torch._C._current_graph_task_id()):
        return None
    # [Step 2] The nodes of a nested reentrant checkpoint are made in the backward pass, in whatever
    # thread that runs, so that their numbers say nothing about a forward pass.
    with _Process.lock:
        found = {thread.find(node._sequence_nr()) for thread in _Process.threads.values()}
    found.discard(None)
    if len(found) == 1 and not _is_nested():
        return found.pop()
    raise NumericsError(
        "dropout in a part of the model that is computed again in the backward pass: the keys of "
        f"the forward pass it belongs to are not known ({len(found)} were found). Call checkpoint "
        f"with use_reentrant=False, run at most {MAX_REMEMBERED} forward passes before their "
        "backward passes, and all of them in one thread"
    )


def _is_nested() -> bool:
    """Whether a reentrant checkpoint is computed again within another one."""
    frame, count = sys._getframe(), 0
    while frame.f_back is not None:
        frame = frame.f_back
        count += frame.f_code is CheckpointFunction.backward.__code__
    return count > 1


def _find_in_threads() -> _Keys | None:
    """Return the keys that were delivered to this thread, or those of the one thread with any."""
    with _Process.lock:
        own = _Process.threads.get(threading.get_ident())
        if own is not None and own.delivered is not None:
            return own.delivered
        found = [keys for thread in _Process.threads.values() if (keys := thread.get_keys())]
        if len(found) > 1:
            raise NumericsError(
                f"dropout in a thread without keys of its own, while {len(found)} threads have "
                "set some: use `with seedless.dropout_keys(...)` in this thread too"
            )
        return found[0] if found else None
