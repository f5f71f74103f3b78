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

import torch
from torch import Tensor, nn

from .import_hooks import call_after_import
from .op_record import OpRecord
from .script_ops import ScriptOps, digest_one
from .tensor_digest import digest_tensors, digest_value

COMPILED = "compiled"
MAX_DEPTH = 8
MAX_NODES = 10_000
TRACING_PACKAGES = ("torch._functorch", "torch._higher_order_ops", "torch._dynamo")


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
        first_node = torch._C._autograd._get_sequence_nr()
        inputs = ops.attempt(_digest_inputs, owner, args, kwargs)
        ops.__exit__(None, None, None)
        try:
            result = compiled(*args, **kwargs)
        finally:
            ops.__enter__()
        ops.attempt(_record, ops, inputs or ([], []), result, type(owner).__name__)
        ops.attempt(_watch_backward, ops, result, first_node)
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


def _watch_backward(ops: ScriptOps, result: Any, first_node: int) -> None:
    """Stand aside for the backward pass of what compiled code returned, too.

    ``first_node``: the number that autograd gave to the first node made in the call.
    """
    waiting = [tensor.grad_fn for tensor in _list_tensors(result, MAX_DEPTH)]
    seen: set[Any] = set()
    while waiting:
        node: Any = waiting.pop()
        if node is None or node in seen or node._sequence_nr() < first_node:
            continue
        seen.add(node)
        if _runs_compiled_code(node):
            _watch_node(ops, node)
        elif len(seen) < MAX_NODES:
            waiting.extend(one for one, _ in node.next_functions)


def _runs_compiled_code(node: Any) -> bool:
    """Whether the backward pass of a node is compiled code, or traces code to run it."""
    made_by = getattr(type(node), "_forward_cls", None)
    return made_by is not None and made_by.__module__.startswith(TRACING_PACKAGES)


def _watch_node(ops: ScriptOps, node: Any) -> None:
    waiting: list[Any] = []  # the inputs of the pass that is under way

    def enter(gradients: Any) -> None:
        if ops.is_innermost and ops.is_recording():
            waiting.append(ops.attempt(_digest_inputs, None, gradients, {}) or ([], []))
            ops.__exit__(None, None, None)

    def leave(inputs: Any, gradients: Any) -> None:
        if waiting:
            ops.__enter__()
            ops.attempt(_record, ops, waiting.pop(), inputs, node.name())

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
