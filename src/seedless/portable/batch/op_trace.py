"""A record of every op of a forward and a backward pass: what it read, what it made, and where.

Recorded is what runs below portable arithmetic, the insides of its handlers included. A sum is one
entry, whatever it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from seedless.portable.context import CONTEXT
from seedless.portable.exact.sums import Sum
from seedless.portable.refusal import find_caller

# Ops in which a bare integer is a value; elsewhere it is a place or a size.
_VALUED = frozenset(
    {"full", "full_like", "new_full", "fill", "scalar_tensor", "masked_fill", "clamp", "pow"}
    | {"add", "sub", "rsub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "where"}
)


@dataclass(frozen=True)
class Seen:
    """A tensor by its shape and its memory, which views share."""

    shape: tuple[int, ...]
    memory: int


@dataclass(frozen=True)
class Entry:
    """One op, or one sum with the number of values that share each of its grids."""

    name: str
    read: tuple[Seen, ...]
    made: tuple[Seen, ...]
    changed: tuple[Seen, ...]
    numbers: tuple[str, ...]
    place: str
    reach: tuple[int, ...] = ()
    addends: int = 0

    @property
    def is_sum(self) -> bool:
        """Return whether this is a sum of `sums`."""
        return bool(self.reach)


class Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]  # untyped in torch
    """Writes down the ops that run while it watches."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped in torch
        self.entries: list[Entry] = []
        self._modules: list[nn.Module] = []
        self._kept: dict[int, Any] = {}  # so that no memory is given out twice

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an op and write it down."""
        named = dict(kwargs or {})
        out = func(*args, **named)
        name = func._schema.name.partition("::")[2]
        bare = name.rstrip("_") if not name.startswith("_") else name
        given = tree_leaves((args, named))
        written = [
            value
            for value, argument in zip(args, func._schema.arguments, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        numbers = [
            repr(float(value))
            for value in (*args, *named.values())
            if type(value) is float or (type(value) is int and bare in _VALUED)
        ]
        self._write(bare, given, [out], written, tuple(numbers))
        return out

    def evaluate_sum(self, call: Sum) -> Tensor:
        """Evaluate a sum and write it down as one entry."""
        with _disable_current_modes():
            out = call.compute()
        read = [operand.values for operand in call.operands]
        reach = tuple(operand.reach() for operand in call.operands)
        self._write(call.name, read, [out], [], (), reach, call.addends)
        return out

    def _write(
        self,
        name: str,
        read: Iterable[Any],
        made: list[Any],
        changed: list[Any],
        numbers: tuple[str, ...],
        reach: tuple[int, ...] = (),
        addends: int = 0,
    ) -> None:
        see = self._see
        entry = Entry(
            name, see(read), see(made), see(changed), numbers, self._place(), reach, addends
        )
        self.entries.append(entry)

    def _see(self, values: Iterable[Any]) -> tuple[Seen, ...]:
        found = []
        for value in tree_leaves(list(values)):
            if isinstance(value, Tensor):
                storage = value.untyped_storage()
                self._kept.setdefault(storage._cdata, (storage, value))
                found.append(Seen(tuple(value.shape), storage._cdata))
        return tuple(found)

    def _place(self) -> str:
        node = torch._C._current_autograd_node()
        if node is not None:
            return f"{node.name()} of the backward pass"
        module = f" in {type(self._modules[-1]).__name__}" if self._modules else ""
        return f"{find_caller()}{module}"

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Watch everything inside, in portable arithmetic."""

        def enter(module: nn.Module, _: Any) -> None:
            self._modules.append(module)

        def leave(*_: Any) -> None:
            self._modules.pop()

        handles = [
            register_module_forward_pre_hook(enter),
            register_module_forward_hook(leave),  # not called when a module raises: so does a trace
        ]
        try:
            with CONTEXT.evaluate_sums_with(self), CONTEXT.record_ops_with(self):
                yield
        finally:
            for handle in handles:
                handle.remove()


def record(run: Callable[[], None]) -> list[Entry]:
    """Return the entries of what ``run`` computes in portable arithmetic."""
    trace = Trace()
    with trace.recording():
        run()
    return trace.entries
