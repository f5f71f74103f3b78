"""Which samples and epoch a dropout layer belongs to: the keys that `dropout_keys` sets.

A layer looks for its keys in this order:

1. In a backward pass that computes part of the forward pass again (activation checkpointing): those
   that were set in that forward pass. Other keys may be set by then, or none.
2. Those that are set in its own thread or task.
3. In a thread that sets none, such as a worker of the user's own: those that another thread has
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
from typing import ClassVar

import torch
from torch import Tensor
from torch.utils.checkpoint import CheckpointFunction

from seedless.core.checks import check_integer
from seedless.core.errors import NumericsError
from seedless.numerics.counter_random import WORD_MASK

# Forward passes of a thread whose keys are remembered until their backward pass.
MAX_REMEMBERED = 1024
_MAX_THREADS = 64

SamplesEpochAxis = tuple[Tensor, Tensor | int, int | None]


@dataclass(frozen=True, eq=False)
class _Keys:
    """What `dropout_keys` was given, and the backward pass it was called in, -1 for none."""

    given: SamplesEpochAxis
    backward: int


@dataclass
class _Thread:
    """The keys of one thread: those it has set now, and those of its earlier forward passes.

    Attributes:
        numbers: sequence numbers from which on ``passes`` of the same place were set.
    """

    stack: list[_Keys] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    passes: list[_Keys | None] = field(default_factory=list)

    def note(self) -> None:
        """Remember that the keys on top of the stack are set from the next node on."""
        number = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]  # private
        if self.numbers and number < self.numbers[-1]:  # a new thread with the id of an ended one
            self.numbers, self.passes = [], []
        if self.numbers and number == self.numbers[-1]:
            self.numbers.pop()
            self.passes.pop()
        self.numbers.append(number)
        self.passes.append(self.stack[-1] if self.stack else None)
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

    traced: SamplesEpochAxis | None = None
    threads: ClassVar[dict[int, _Thread]] = {}
    lock = threading.Lock()

    @classmethod
    def get_thread(cls) -> _Thread:
        """Return what is known of the thread that calls; forget the first of very many."""
        while len(cls.threads) > _MAX_THREADS:
            ended = [number for number, thread in cls.threads.items() if not thread.stack]
            if not ended:
                break
            del cls.threads[ended[0]]
        return cls.threads.setdefault(threading.get_ident(), _Thread())


@contextmanager
def dropout_keys(
    *, samples: Tensor, epoch: Tensor | int, axis: int | None = None
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

    Example:
        >>> keys = torch.from_numpy(seedless.sample_keys(X))
        >>> with seedless.dropout_keys(samples=keys[rows], epoch=3):
        ...     logits = model(X[rows])
    """
    if not isinstance(epoch, Tensor):
        check_integer("epoch", epoch, 0, WORD_MASK, error=NumericsError)
    keys = _Keys((samples, epoch, axis), torch._C._current_graph_task_id())
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
        _Process.traced = before
        _OWN.reset(token)


def find_keys() -> SamplesEpochAxis:
    """Return samples, epoch and axis for a dropout layer that is called now.

    Raises NumericsError where no keys are set.
    """
    given = None
    if torch.compiler.is_compiling():
        given = _Process.traced
    elif keys := _find_recomputed() or _OWN.get() or _find_in_other_thread():
        given = keys.given
    if given is None:
        raise NumericsError(
            "dropout in training mode needs the keys of the samples and the epoch: wrap the "
            "forward pass in `with seedless.dropout_keys(samples=keys, epoch=e):`, or call "
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


def _find_in_other_thread() -> _Keys | None:
    """Return the keys that the one other thread with any has set."""
    with _Process.lock:
        stacks = [thread.stack for thread in _Process.threads.values() if thread.stack]
        if len(stacks) > 1:
            raise NumericsError(
                f"dropout in a thread without keys of its own, while {len(stacks)} threads have "
                "set some: use `with seedless.dropout_keys(...)` in this thread too"
            )
        return stacks[0][-1] if stacks else None
