"""When the recorder must read nothing, and how torch's compiler is kept out of it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
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


def keep_from_compiling() -> None:
    """Let torch's compiler run the recorder's functions as they are, and not compile them.

    What they call is compiled as ever, except below a guarded function: that is all ours.
    """
    package = __name__.rpartition(".")[0] + "."
    for name, module in list(sys.modules.items()):
        if name.startswith(package):
            for function in _list_functions(vars(module).values(), name):
                for code in _list_codes(function.__code__):
                    _skip(code, with_callees=code.co_name == "guarded")


def _list_functions(values: Any, module: str) -> Iterator[FunctionType]:
    for value in values:
        if getattr(value, "__module__", None) != module:
            continue
        if isinstance(value, FunctionType):
            yield value
        elif inspect.isclass(value):
            yield from _list_functions(vars(value).values(), module)


def _list_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _list_codes(constant)


def _skip(code: CodeType, with_callees: bool) -> None:
    evaluation: Any = torch._C._dynamo.eval_frame
    if hasattr(evaluation, "set_code_exec_strategy"):
        action, strategy = evaluation._FrameAction, evaluation._FrameExecStrategy
        callees = action.SKIP if with_callees else action.DEFAULT
        evaluation.set_code_exec_strategy(code, strategy(action.SKIP, callees))
    else:
        evaluation.skip_code(code)
