"""Record the operations of a script that knows nothing of it, line by line into a file.

What `OpRecorder` does for a model of ours, this does inside a stranger's process: it never raises,
keeps no tensor, finds the modules by itself, and adds to each operation the user's line, the device
and the generator it drew from.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .compiled_calls import find_compiled_nodes
from .node_lines import NodeLines
from .op_record import NOT_COMPARED, OpRecord, describe_type, find_parts, is_plain
from .op_recorder import OpCall, OpRecorder
from .op_signature import Signature, find_tensors
from .pending import is_pending, resolve
from .tensor_digest import digest_tensors, digest_value

MAX_OPERATIONS = 200_000
WRITE_AFTER = 512
ASYNCHRONOUS = f"{NOT_COMPARED}: still being written"

_DISTRIBUTED = ("c10d", "_c10d_functional", "_c10d_functional_autograd")


class ScriptOps(OpRecorder):  # type: ignore[no-untyped-call]  # untyped in torch
    """Writes a line for every operation while it is entered.

    Args:
        path: the file to write.
        is_busy: whether the recorder itself is at work in this thread, so that an operation is not
            the script's.
    """

    supports_higher_order_operators = True

    def __init__(self, path: str, is_busy: Callable[[], bool]) -> None:
        super().__init__(nn.Module(), digest=_digest)  # type: ignore[arg-type]  # may be pending
        self._path = path
        self._is_busy = is_busy
        self._process = os.getpid()
        self._main_thread = threading.get_ident()
        self._places: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
        self._lines = NodeLines()
        self._waiting: list[dict[str, Any]] = []
        self._collective: dict[int, str] = {}
        self.count = 0
        self.in_optimizer = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation, and record it if it is the script's and can be read."""
        kwargs = kwargs or {}
        if not self._is_recorded(func):
            return func(*args, **kwargs)
        states = _read_states(func, kwargs)
        call = self._try(func, self._begin, func, args, kwargs)
        result = func(*args, **kwargs)
        if call is not None:
            record = self._try(func, self._end, call, result)
            if record is not None:
                self._write_record(record, call, result, states)
        return result
