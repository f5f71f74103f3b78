"""A record of every op of a forward and a backward pass: what it read, what it made, and where.

The ops that implementations of portable arithmetic are made of are recorded too. An exact sum is
one entry, whatever ops compute it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from seedless.portable.batch.plain_torch import plain_torch
from seedless.portable.context import CONTEXT
from seedless.portable.exact.sums import ExactSum
from seedless.portable.refusal import find_caller

# Ops in which a plain integer is a value; elsewhere it is an index or a size.
_TAKING_NUMBERS = frozenset(
    {"full", "full_like", "new_full", "fill", "scalar_tensor", "masked_fill", "clamp", "pow"}
    | {"add", "sub", "rsub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "where"}
)


# Ops that write to a tensor in place, and leave its values as they are.
_KEEPING_VALUES = frozenset({"detach", "t", "transpose", "squeeze", "unsqueeze", "as_strided"})

# Ops that read a tensor's shape alone.
READING_SHAPES = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "new_zeros"}
    | {"new_ones", "new_full", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like"}
    | {"scalar_tensor", "result_type", "is_same_size"}
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
        op: the number of the op that was dispatched and of which this is a part.
        grid_sizes: of an exact sum, how many values share a grid of each operand; else empty.
        addends: of an exact sum, how many values each element of the result adds.
        is_hidden: whether a step does not see this sum, which adds up no samples.
    """

    name: str
    read: tuple[TensorRecord, ...]
    made: tuple[TensorRecord, ...]
    changed: tuple[TensorRecord, ...]
    numbers: tuple[str, ...]
    origin: str
    op: int
    grid_sizes: tuple[int, ...] = ()
    addends: int = 0
    is_hidden: bool = False

    @property
    def is_sum(self) -> bool:
        """Return whether this is an `ExactSum`."""
        return bool(self.grid_sizes)


class OpTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]  # untyped in torch
    """Records the ops that run inside `recording`.

    Values do not matter here, only shapes: where an op asks for the number of samples that a sum
    added, it is told 1, so that this number is no difference between two traces.

    Attributes:
        ops: the names of the ops that were dispatched, in order.
        entries: what they are made of, in order.
    """

    redirects = True
    is_tracing = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped in torch
        self.ops: list[str] = []
        self.entries: list[Entry] = []
        self._modules: list[nn.Module] = []
        self._alive: dict[int, Any] = {}  # tensors whose memory must not be used for others
        self._made: set[int] = set()
        # Memory from outside that was changed: all of it, with its earlier values.
        self._changed: dict[int, tuple[Tensor, Tensor]] = {}

    def run_op(self, run: Callable[..., Any], func: Any, args: Any, kwargs: Any) -> Any:
        """Run an op that was dispatched, and record the ops it is made of."""
        self.ops.append(func.name())
        with self:
            return run(func, args, kwargs)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run a part of an op and record it."""
        named = dict(kwargs or {})
        name = func._schema.name.partition("::")[2]
        op = name.rstrip("_") if not name.startswith("_") else name
        changed = [
            named.get(argument.name, value)
            for argument, value in zip_longest(func._schema.arguments, args)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        for value in tree_leaves(changed if op not in _KEEPING_VALUES else []):
            if isinstance(value, Tensor) and find_memory(value) not in self._made:
                whole = _view_memory(value)
                self._changed.setdefault(find_memory(value), (whole, whole.clone()))
        out = func(*args, **named)
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

    def count_addends(self, addends: int) -> int:
        """Return 1, whatever the number of samples."""
        return 1

    def restore(self) -> list[Tensor]:
        """Give memory from outside that was changed its earlier values; return it as tensors."""
        with plain_torch():
            for tensor, before in self._changed.values():
                tensor.copy_(before)
        return [tensor for tensor, _ in self._changed.values()]

    def find_depending(self, tensors: Iterable[Tensor]) -> set[int]:
        """Return the memory whose values depend on those of some tensors, and their own."""
        depending = {find_memory(tensor) for tensor in tensors}
        for entry in self.entries:
            is_read = any(tensor.memory in depending for tensor in entry.read)
            if is_read and entry.name not in READING_SHAPES:
                depending |= {tensor.memory for tensor in (*entry.made, *entry.changed)}
        return depending

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
        origin, number = self._find_origin(), len(self.ops) - 1
        reads, makes, changes = map(self._describe, (read, made, changed))
        inputs = {tensor.memory for tensor in reads}
        self._made |= {tensor.memory for tensor in makes} - inputs
        self.entries.append(
            Entry(
                *(name, reads, makes, changes, numbers, origin, number, grid_sizes, addends),
                is_hidden=bool(grid_sizes) and CONTEXT.hides_sums,
            )
        )

    def _describe(self, values: Iterable[Any]) -> tuple[TensorRecord, ...]:
        records = []
        for value in tree_leaves(list(values)):
            if isinstance(value, Tensor):
                memory = find_memory(value)
                self._alive.setdefault(memory, (value.untyped_storage(), value))
                records.append(TensorRecord(tuple(value.shape), memory))
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
            with CONTEXT.evaluate_sums_with(self), CONTEXT.without_kernels():
                yield
        finally:
            for handle in handles:
                handle.remove()


def _view_memory(tensor: Tensor) -> Tensor:
    """Return all memory that a tensor may be a part of, flat."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,), 0)


def find_memory(tensor: Tensor) -> int:
    """Return a number for a tensor's memory, which its views share."""
    return int(tensor.untyped_storage()._cdata)
