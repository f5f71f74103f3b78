"""Stand aside while code of torch's compiler runs.

The compiler looks at the dispatch modes around a call: under one, it leaves the code uncompiled. So
every function that `torch.compile` returns is called through `around`, which can leave its mode
first. The backward pass of compiled code is one node of autograd, with hooks before and after it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from torch import Tensor

from .import_hooks import call_after_import

COMPILED_NODE = "CompiledFunctionBackward"

Around = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


def watch_compiled_calls(around: Around) -> None:
    """Call compiled functions as ``around(function, args, kwargs)`` from now on."""

    def change(module: ModuleType) -> None:
        context: Any = module._TorchDynamoContext
        make = context.__call__

        @functools.wraps(make)
        def make_watched(self: Any, function: Any) -> Any:
            compiled = make(self, function)
            # A compiled module calls a function that is made here too.
            return _watch(compiled, around) if inspect.isfunction(compiled) else compiled

        context.__call__ = make_watched

    call_after_import("torch._dynamo.eval_frame", change)


def _watch(compiled: Callable[..., Any], around: Around) -> Callable[..., Any]:
    @functools.wraps(compiled)
    def watched(*args: Any, **kwargs: Any) -> Any:
        return around(compiled, args, kwargs)

    if hasattr(compiled, "_torchdynamo_wrapper_id"):
        watched._torchdynamo_wrapper_id = id(watched)  # type: ignore[attr-defined]
    return watched


def find_compiled_nodes(tensors: Iterator[Tensor]) -> list[Any]:
    """Return the autograd nodes that run the backward pass of compiled code, each once."""
    nodes = {tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None}
    return [node for node in nodes if node.name() == COMPILED_NODE]
