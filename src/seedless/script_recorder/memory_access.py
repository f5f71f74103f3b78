"""Note where a script can change tensors without an operation, in the step that is recorded.

It takes the address of a tensor's memory, by `data_ptr()` or `numpy()`, or starts a thread, whose
operations are not recorded. What follows cannot be seen; where a tensor then changes without an
operation, these lines say who can have changed it.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from .script_ops import ScriptOps
from .user_lines import find_user_line, is_installed, is_standard_library

ADDRESS_CALLS = ("data_ptr", "numpy")
_NOT_SCRIPTS = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (__file__, str(torch.__file__))
)


def watch_addresses(ops: ScriptOps) -> None:
    """Note each memory whose address is taken, except by torch and by the recorder."""
    tensor_class: Any = torch.Tensor
    for name in ADDRESS_CALLS:
        setattr(tensor_class, name, _watch_address(ops, name, getattr(tensor_class, name)))


def _watch_address(ops: ScriptOps, name: str, method: Any) -> Any:
    @functools.wraps(method)
    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_code.co_filename
        if not caller.startswith(_NOT_SCRIPTS) and ops.is_recording():
            ops.see_reached(self, describe_address(name))
        return method(self, *args, **kwargs)

    return noted


def describe_address(name: str) -> str:
    """Return what a tensor is called after a method has given away its address."""
    return f"memory whose address {name}() gave away"


def watch_threads(see_thread: Callable[[str], None]) -> None:
    """Call a function with the line of each thread that the script itself starts."""
    start = threading.Thread.start

    @functools.wraps(start)
    def noted_start(self: Any) -> None:
        caller: FrameType | None = sys._getframe(1)
        while caller is not None and is_standard_library(caller.f_code.co_filename):
            caller = caller.f_back
        if caller is not None and not is_installed(caller.f_code.co_filename):
            see_thread(find_user_line(caller))
        start(self)

    thread_class: Any = threading.Thread
    thread_class.start = noted_start
