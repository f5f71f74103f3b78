"""A record of every op of a forward and a backward pass: what it read, what it made, and where.

The ops that implementations of portable arithmetic are made of are recorded too. An exact sum is
one entry, whatever ops compute it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from seedless.portable.context import CONTEXT
from seedless.portable.exact.sums import ExactSum
from seedless.portable.refusal import find_caller

# Ops in which a plain integer is a value; elsewhere it is an index or a size.
_TAKING_NUMBERS = frozenset(
    {"full", "full_like", "new_full", "fill", "scalar_tensor", "masked_fill", "clamp", "pow"}
    | {"add", "sub", "rsub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "where"}
)


@dataclass(frozen=True)
class TensorRecord:
    """A tensor by its shape and its memory, which views share."""

    shape: tuple[int, ...]
    memory: int


@dataclass(frozen=True)
class Entry:
    """One op or one exact sum.

    Attributes:
        numbers: the plain numbers the op computes with.
        origin: the line of the caller's code, or the node of the backward pass.
        grid_sizes: of an exact sum, how many values share a grid of each operand; else empty.
        addends: of an exact sum, how many values each element of the result adds.
    """

    name: str
    read: tuple[TensorRecord, ...]
    made: tuple[TensorRecord, ...]
    changed: tuple[TensorRecord, ...]
    numbers: tuple[str, ...]
    origin: str
    grid_sizes: tuple[int, ...] = ()
    addends: int = 0

    @property
    def is_sum(self) -> bool:
        """Return whether this is an `ExactSum`."""
        return bool(self.grid_sizes)


class OpTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]  # untyped in torch
    """Records the ops that run inside `recording`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped in torch
        self.entries: list[Entry] = []
        self._modules: list[nn.Module] = []
        self._alive: dict[int, Any] = {}  # tensors whose memory must not be used for others

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an op and record it."""
        named = dict(kwargs or {})
        out = func(*args, **named)
        name = func._schema.name.partition("::")[2]
        op = name.rstrip("_") if not name.startswith("_") else name
        changed = [
            value
            for value, argument in zip(args, func._schema.arguments, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        numbers = [
            repr(float(value))
            for value in (*args, *named.values())
            if type(value) is float or (type(value) is int and op in _TAKING_NUMBERS)
        ]
        self._record(op, tree_leaves((args, named)), [out], changed, tuple(numbers))
        return out

    def evaluate_sum(self, exact_sum: ExactSum) -> Tensor:
        """Compute a sum and record it as one entry."""
        with _disable_current_modes():
            out = exact_sum.compute()
        read = [operand.values for operand in exact_sum.operands]
        grid_sizes = tuple(operand.count_values() for operand in exact_sum.operands)
        self._record(exact_sum.name, read, [out], [], (), grid_sizes, exact_sum.addends)
        return out

    def _record(
        self,
        name: str,
        read: Iterable[Any],
        made: list[Any],
        changed: list[Any],
        numbers: tuple[str, ...],
        grid_sizes: tuple[int, ...] = (),
        addends: int = 0,
    ) -> None:
        describe, origin = self._describe, self._find_origin()
        tensors = describe(read), describe(made), describe(changed)
        self.entries.append(Entry(name, *tensors, numbers, origin, grid_sizes, addends))

    def _describe(self, values: Iterable[Any]) -> tuple[TensorRecord, ...]:
        records = []
        for value in tree_leaves(list(values)):
            if isinstance(value, Tensor):
                storage = value.untyped_storage()
                self._alive.setdefault(storage._cdata, (storage, value))
                records.append(TensorRecord(tuple(value.shape), storage._cdata))
        return tuple(records)

    def _find_origin(self) -> str:
        node = torch._C._current_autograd_node()
        if node is not None:
            return f"{node.name()} of the backward pass"
        module = f" in {type(self._modules[-1]).__name__}" if self._modules else ""
        return f"{find_caller()}{module}"

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record everything inside, in portable arithmetic."""

        def enter(module: nn.Module, _: Any) -> None:
            self._modules.append(module)

        def leave(*_: Any) -> None:
            self._modules.pop()

        handles = [
            register_module_forward_pre_hook(enter),
            register_module_forward_hook(
                leave
            ),  # not called when a module raises, which ends the trace
        ]
        try:
            with CONTEXT.evaluate_sums_with(self), CONTEXT.record_ops_with(self):
                yield
        finally:
            for handle in handles:
                handle.remove()


def record(run: Callable[[], None]) -> list[Entry]:
    """Return the entries of what ``run`` computes in portable arithmetic."""
    trace = OpTrace()
    with trace.recording():
        run()
    return trace.entries
