"""Record a call of compiled code as one operation, and stand aside while it runs.

Torch's compiler looks at the dispatch modes around a call: under one it leaves the code uncompiled,
and then something else would be observed than what the script does. So every function that
`torch.compile` returns is called without the mode. The backward pass of compiled code is one node
of autograd, with hooks before and after it that do the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from .import_hooks import call_after_import
from .op_record import OpRecord
from .script_ops import ScriptOps, digest_one
from .tensor_digest import digest_tensors, digest_value

COMPILED = "compiled"
COMPILED_NODE = "CompiledFunctionBackward"
MAX_DEPTH = 8


def watch_compiled_calls(ops: ScriptOps) -> None:
    """Call compiled functions without the mode from now on, and record the calls."""

    def change(module: ModuleType) -> None:
        context: Any = module._TorchDynamoContext
        make = context.__call__

        @functools.wraps(make)
        def make_watched(self: Any, function: Any) -> Any:
            compiled = make(self, function)
            # A compiled module calls a function that is made here too.
            return _watch(ops, compiled, function) if inspect.isfunction(compiled) else compiled

        context.__call__ = make_watched

    call_after_import("torch._dynamo.eval_frame", change)


def _watch(ops: ScriptOps, compiled: Callable[..., Any], function: Any) -> Callable[..., Any]:
    """Return a function that calls a compiled one and has all its attributes."""

    @functools.wraps(compiled)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if not ops.is_innermost or not ops.is_recording():
            return compiled(*args, **kwargs)
        owner = getattr(function, "__self__", None)
        inputs = ops.attempt(_digest_inputs, owner, args, kwargs)
        ops.__exit__(None, None, None)
        try:
            result = compiled(*args, **kwargs)
        finally:
            ops.__enter__()
        ops.attempt(_record, ops, inputs or ([], []), result, type(owner).__name__)
        ops.attempt(_watch_backward, ops, result)
        return result

    if hasattr(compiled, "_torchdynamo_wrapper_id"):
        watched._torchdynamo_wrapper_id = id(watched)  # type: ignore[attr-defined]
    return watched


def _digest_inputs(owner: Any, args: Any, kwargs: Any) -> tuple[list[Any], list[str]]:
    """Return the digests of the tensors that compiled code is called with, and their names."""
    inputs = [digest_value([args, kwargs])]
    sources = ["arguments"]
    if isinstance(owner, nn.Module):
        inputs.append(digest_tensors([*owner.parameters(), *owner.buffers()]))
        sources.append("weights and buffers")
    return inputs, sources


def _record(ops: ScriptOps, inputs: tuple[list[Any], list[str]], result: Any, note: str) -> None:
    tensors = list(_list_tensors(result, MAX_DEPTH))
    record = OpRecord(
        phase=ops._find_phase(),
        module=ops._find_module()[0],
        op=COMPILED,
        inputs=tuple(inputs[0]),
        sources=tuple(inputs[1]),
        outputs=tuple(map(digest_one, tensors)),
        shapes=tuple(tuple(tensor.shape) for tensor in tensors),
        note=note,
    )
    ops.pass_on(record, str(tensors[0].device) if tensors else "")


def _watch_backward(ops: ScriptOps, result: Any) -> None:
    """Stand aside for the backward pass of what compiled code returned, too."""
    nodes: dict[int, Any] = {}
    for tensor in _list_tensors(result, MAX_DEPTH):
        node = tensor.grad_fn
        if node is not None and node.name() == COMPILED_NODE:
            nodes[id(node)] = node
    for node in nodes.values():
        _watch_node(ops, node)


def _watch_node(ops: ScriptOps, node: Any) -> None:
    waiting: list[Any] = []  # the inputs of the pass that is under way

    def enter(gradients: Any) -> None:
        if ops.is_innermost and ops.is_recording():
            waiting.append(ops.attempt(_digest_inputs, None, gradients, {}) or ([], []))
            ops.__exit__(None, None, None)

    def leave(inputs: Any, gradients: Any) -> None:
        if waiting:
            ops.__enter__()
            ops.attempt(_record, ops, waiting.pop(), inputs, COMPILED_NODE)

    node.register_prehook(enter)
    node.register_hook(leave)


def _list_tensors(value: Any, depth: int) -> list[Tensor]:
    """Return the tensors in a value: in lists, mappings, and the attributes of records."""
    if isinstance(value, Tensor):
        return [value]
    if depth == 0:
        return []
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in _list_tensors(item, depth - 1)]
    items = value.values() if isinstance(value, dict) else getattr(value, "__dict__", {}).values()
    return [found for item in items for found in _list_tensors(item, depth - 1)]
