"""Ops that ran on sums that were not known yet, and run again when they are.

The gradient of a weight is a sum over samples, then a cast, a transpose, an addition to another
gradient of a tied weight. The sum waits until the backward pass is over; until then zeros stand for
it. Views share the zeros' memory and need nothing. Every other op that read them is kept here, and
writes its result again, in order, into the memory that holds the result of the first time.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from seedless.core.errors import NumericsError
from seedless.portable.batch.op_trace import READING_SHAPES, find_memory
from seedless.portable.batch.plain_torch import plain_torch
from seedless.portable.refusal import find_place


@dataclass(frozen=True)
class WaitingOp:
    """An op, and which tensors of its result, by their position, lie in memory of their own."""

    call: Callable[[], Any]
    results: Mapping[int, Tensor]

    def run_again(self) -> None:
        """Run the op and write its result where the first one is."""
        again = list(_list_tensors((self.call(),)))
        for position, target in self.results.items():
            target.copy_(again[position])


class WaitingOps(TorchDispatchMode):  # type: ignore[no-untyped-call]  # untyped in torch
    """Keeps the ops that read memory whose values are not known yet.

    As a dispatch mode it sees the parts of an op; `note` takes whole ops.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped in torch
        self.ops: list[WaitingOp] = []
        self._unknown: dict[int, Tensor] = {}  # memory, kept alive by one of its tensors

    def add_unknown(self, tensor: Tensor) -> None:
        """Mark the memory of a tensor as not known yet."""
        self._unknown.setdefault(find_memory(tensor), tensor)

    def reads_unknown(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Return whether an argument is not known yet."""
        if not self._unknown:
            return False
        values = (*args, *kwargs.values()) if kwargs else args
        return any(find_memory(each) in self._unknown for each in _list_tensors(values))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run a part of an op, and keep it if it reads what is not known."""
        out = func(*args, **(kwargs or {}))
        if self.reads_unknown(args, kwargs or {}):
            self.note(partial(func, *args, **(kwargs or {})), func, args, kwargs or {}, out)
        return out

    def note(
        self,
        call: Callable[[], Any],
        func: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        out: Any,
    ) -> None:
        """Keep an op that has read what is not known; ``call`` runs it again."""
        if func._schema.name.partition("::")[2] in READING_SHAPES:
            return
        made = list(_list_tensors((out,)))
        inputs = {find_memory(each) for each in _list_tensors((*args, *kwargs.values()))}
        fresh = {i: each for i, each in enumerate(made) if find_memory(each) not in inputs}
        is_writing = bool(func._schema.is_mutable)
        if not made and not is_writing:
            raise NumericsError(
                "expected gradients to be read after the step, got the value of one read "
                f"{find_place()}, before the processes have exchanged it. Read it after step()"
            )
        # An op that writes in place writes into its first argument.
        for tensor in (*made, *(args[:1] if is_writing else ())):
            self.add_unknown(tensor)
        if fresh or is_writing:
            self.ops.append(WaitingOp(call, fresh))

    def run_again(self) -> None:
        """Run the ops again, in order, now that the sums are known."""
        with plain_torch():
            for op in self.ops:
                op.run_again()
        self.ops.clear()
        self._unknown.clear()


def _list_tensors(values: tuple[Any, ...]) -> Iterator[Tensor]:
    """Yield the tensors among values, and in lists among them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _list_tensors(tuple(value))
