"""Record the operations of a script that knows nothing of it.

What `OpRecorder` does for a model of ours, this does inside a stranger's process: it never raises,
keeps no tensor, finds the modules by itself, and adds to each operation the user's line, the device
and the generator it drew from. Compiled code is one operation, and runs without the mode.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _push_mode

from .generator_moves import name_moved, read_states
from .module_names import ModuleNames
from .node_lines import NodeLines
from .op_record import (
    NOT_COMPARED,
    UNINITIALIZED,
    OpRecord,
    describe_type,
    find_parts,
    is_plain,
)
from .op_recorder import OpCall, OpRecorder
from .op_signature import Signature, find_tensors
from .silence import is_silent
from .tensor_digest import digest_tensors
from .tensor_sources import UNNAMED
from .user_lines import find_maker_line, find_user_line

MAX_OPERATIONS = 200_000
FAILED = f"{NOT_COMPARED}: the recorder could not read it"
OVERWRITTEN = "overwritten"  # stands for what an argument held, which has no effect
UNWRITTEN = "uninitialized memory"  # added to the name of a tensor that was never written
LATER = f"{NOT_COMPARED}: it was still being written"

_DISTRIBUTED = ("c10d", "_c10d_functional", "_c10d_functional_autograd")


class ScriptOps(OpRecorder):  # type: ignore[no-untyped-call]  # untyped in torch
    """Passes on a record of every operation from `start` to `stop`.

    Args:
        write: gets each record as a dict; digests in it may still be on a device.
        is_busy: whether the recorder itself is at work in this thread, so that an operation is not
            the script's.

    Attributes:
        count: how many operations were recorded.
        in_optimizer: set by the caller while an optimizer makes its step.
        names: of modules and parameters.
        lines: of the user's code.
    """

    supports_higher_order_operators = True

    def __init__(
        self, write: Callable[[dict[str, Any]], None], is_busy: Callable[[], bool]
    ) -> None:
        super().__init__(nn.Module(), digest=digest_one)
        self.count = 0
        self.in_optimizer = False
        self.names = ModuleNames()
        self.lines = NodeLines()
        self._write = write
        self._is_busy = is_busy
        self._recording = False
        self._process = os.getpid()
        self._main_thread = threading.get_ident()

    # Beginning and end.

    def start(self) -> None:
        """Record from now on; no `with` block, since it begins and ends in hooks."""
        self._recording = True
        self.__enter__()

    def stop(self) -> None:
        """Record nothing more."""
        self._recording = False
        self._restore()
        if self.is_innermost:
            self.__exit__(None, None, None)

    @property
    def is_innermost(self) -> bool:
        """Whether it is the mode that sees operations of this thread first."""
        depth = torch._C._len_torch_dispatch_stack()
        return depth > 0 and torch._C._get_dispatch_stack_at(depth - 1) is self

    def _restore(self) -> None:
        """Enter the mode again where the code around `start` has put its own modes back."""
        depth = torch._C._len_torch_dispatch_stack()
        if all(torch._C._get_dispatch_stack_at(at) is not self for at in range(depth)):
            _push_mode(self)

    # One operation.

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation, and record it if it is the script's and can be read now."""
        kwargs = kwargs or {}
        if func.namespace == "profiler" or not self.is_recording():
            return func(*args, **kwargs)
        before = self.attempt(self._look_before, func, args, kwargs)
        result = func(*args, **kwargs)
        if before is None or self.attempt(self._look_after, *before, result) is None:
            record = OpRecord(self._find_phase(), "", str(func), note=FAILED)
            self.attempt(self.pass_on, record, "")
        return result

    def _look_before(self, func: Any, args: Any, kwargs: Any) -> tuple[OpCall, list[Any]]:
        call = self._begin(func, args, kwargs)
        return call, read_states(call)

    def _look_after(self, call: OpCall, states: list[Any], result: Any) -> bool:
        record = self._end(call, result)
        tensors = find_tensors([result, *call.arguments.values()])
        device = next((str(one.device) for one in tensors), "")
        self.pass_on(record, device, name_moved(states))
        return True

    def is_recording(self) -> bool:
        """Whether what this thread does now is the script's, and can be read."""
        if not self._recording or self._is_busy() or self.count >= MAX_OPERATIONS:
            return False
        return self._process == os.getpid() and not is_silent()

    def attempt(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of ours; None if it fails: the script must not notice."""
        try:
            with self._lock, torch._C._DisableTorchDispatch():
                return function(*args)
        except Exception:  # whatever a stranger's tensors do
            return None

    def pass_on(self, record: OpRecord, device: str, draws: str = "") -> None:
        """Write a record, with the line of the user's code that runs now."""
        values = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(record).items()
        }
        self.count += 1
        found = {"line": self.lines.find(), "draws": draws, "device": device}
        if draws:
            found["maker"] = find_maker_line(_is_module)
        self._write({**values, **found})

    def _find_phase(self) -> str:
        if torch._C._current_graph_task_id() != -1:
            return "backward"
        if self._open:
            return "forward"  # also within an optimizer's step, which may call a closure
        return "optimizer" if self.in_optimizer else ""

    def _find_source(self, tensor: Tensor, argument: str) -> str:
        source = super()._find_source(tensor, argument)
        if source.startswith(UNNAMED) and not self._sources.list_lines(tensor):
            self._sources.note_line(tensor, find_user_line())
        if reach := self._sources.get_reach(tensor):
            return ", ".join(filter(None, (source, reach)))
        # A name says nothing of the content: a buffer may never have been written.
        if source not in ("", UNINITIALIZED) and self._sources.is_unwritten(tensor):
            return f"{source}, {UNWRITTEN}"
        return source

    def _find_origin(self, tensor: Tensor) -> str:
        return ", ".join(self._sources.list_lines(tensor))

    def _note_uninitialized(self, tensors: list[Tensor]) -> None:
        super()._note_uninitialized(tensors)
        line = find_user_line()
        for tensor in tensors:
            self._sources.note_line(tensor, line)

    def _digests_unread(self, source: str) -> bool:
        return False  # a view of one sample must not cost a digest of the whole dataset

    def _mark(self, signature: Signature, name: str, tensor: Tensor) -> str:
        if name in signature.overwritten:
            return OVERWRITTEN
        return super()._mark(signature, name, tensor)

    def _end(self, call: OpCall, result: Any) -> OpRecord:
        if not _ends_later(call, result):
            return super()._end(call, result)
        # Reading what is still being written would give another digest each time.
        written = [tensor for name, tensor in call.tensors if name in call.signature.written]
        for tensor in (*written, *find_tensors(result)):
            self._sources.see_foreign(tensor, f"the result of {call.func}")
        return self._make_record(call, LATER)

    def see_reached(self, tensor: Tensor, how: str) -> None:
        """Note that the line that runs now can write to a tensor's memory without an operation."""
        self.attempt(self._sources.see_reached, tensor, how, find_user_line())

    def name_tensors(self, names: dict[str, Any]) -> None:
        """Give names to tensors that no operation made, such as a batch."""
        tensors = {name: one for name, one in names.items() if isinstance(one, Tensor)}
        self.attempt(self._sources.add_names, tensors)

    # Modules.

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        if torch.compiler.is_compiling() or not self._is_here():
            return
        if not self._open:
            self._restore()
        if not self.names.knows(module):
            self.name_tensors(self.attempt(self.names.add, module) or {})
        super()._enter_module(module, args)

    def _leave_module(self, module: nn.Module, args: Any, output: Any) -> None:
        if not torch.compiler.is_compiling() and self._is_here():
            super()._leave_module(module, args, output)

    def _is_here(self) -> bool:
        """Whether operations of this thread are recorded: it started, or runs backward for it."""
        if not self._recording or self._is_busy() or self._process != os.getpid():
            return False
        here = threading.get_ident() == self._main_thread
        return here or torch._C._current_graph_task_id() != -1

    def _find_path(self, module: nn.Module) -> str:
        return self.names.find(module)

    def _find_owner(self, parameter: Tensor) -> str:
        return self.names.find_owner(parameter)


def digest_one(tensor: Tensor) -> Any:
    """Return the digest of a tensor of any kind, perhaps a pending one, or "not compared ..."."""
    if is_plain(tensor):
        return digest_tensors([tensor])
    parts = find_parts(tensor)
    return digest_tensors(parts) if parts else f"{NOT_COMPARED}: {describe_type(tensor)}"


def _is_module(value: object) -> bool:
    return isinstance(value, nn.Module)


def _ends_later(call: OpCall, result: Any) -> bool:
    """Whether an operation may return before its result is written."""
    if call.func.namespace in _DISTRIBUTED:
        return "wait_tensor" not in str(call.func)
    if not call.arguments.get("non_blocking"):
        return False
    devices = {tensor.device.type for tensor in find_tensors(result)}
    return devices == {"cpu"} and any(one.device.type != "cpu" for _, one in call.tensors)
