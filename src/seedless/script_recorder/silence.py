"""When the recorder must read nothing."""

from __future__ import annotations

from typing import Any

import torch

from .flags import is_cuda_used

is_compiling = torch.compiler.is_compiling
_functorch: Any = torch._C._functorch


def is_capturing() -> bool:
    """Return whether a graph of the GPU is being captured: reading a tensor would end that."""
    return is_cuda_used() and torch.cuda.is_current_stream_capturing()


def is_silent() -> bool:
    """Return whether tensors have no bytes now: inside a capture, a trace, `vmap` or `grad`."""
    if torch._C._get_tracing_state() is not None:
        return True
    return _functorch.peek_interpreter_stack() is not None or is_capturing()
