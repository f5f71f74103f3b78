"""Record every operation that a run performs, so that two runs can be compared op by op.

    with OpRecorder(model, names={"batch/samples": x}) as recorder:
        with recorder.phase("forward"):
            loss = model(x).sum()
        with recorder.phase("backward"):
            loss.backward()
    recorder.records

It is a torch dispatch mode below autograd, where each operation arrives once with plain tensors.
Inputs are digested before the operation runs, since some operations change their arguments. The
digest of a CUDA tensor is made on the CPU, so it cannot record the capture of a CUDA graph.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from .op_record import (
    UNINITIALIZED,
    OpRecord,
    Signature,
    digest_tensor,
    find_tensors,
    is_plain,
    pair_results,
    read_signature,
    show_settings,
)

if TYPE_CHECKING:
    from typing_extensions import Self

NO_STORAGE = 0


class OpRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # untyped in torch
    """Records every operation inside its `with` block; changes none, and removes its hooks.

    Args:
        model: its module paths are recorded; its parameters and buffers are named "model/...".
        names: further tensors that exist before the run, by the name a finding calls them: the
            batch, the optimizer's state, a learning rate. These names take precedence.
        digest: returns the digest of a tensor.
    """

    def __init__(
        self,
        model: nn.Module,
        names: Mapping[str, Tensor] | None = None,
        digest: Callable[[Tensor], str] = digest_tensor,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped in torch
        self._modules = {id(module): path for path, module in model.named_modules()}
        self._owners = {
            id(parameter): path
            for path, module in model.named_modules()
            for parameter in module.parameters(recurse=False)
        }
        # References: while these exist, no other object can get their ids and addresses.
        self._references = (model, dict(names or {}))
        self._named = _index_names(*self._references)
        self._digest = digest
        self._made: dict[int, StorageWeakRef] = {}
        self._raw: set[int] = set()
        self._records: list[OpRecord] = []
        self._phase = ""
        self._open: list[tuple[str, int]] = []
        self._starts: list[int] = []
        self._paths: list[str] = []
        self._hooks: list[Any] = []
        # autograd runs the backward pass of a GPU in another thread
        self._lock = threading.RLock()

    @property
    def records(self) -> tuple[OpRecord, ...]:
        """The operations so far, in order."""
        return tuple(self._records)

    @contextmanager
    def phase(self, label: str) -> Iterator[None]:
        """Label the operations inside the block."""
        before, self._phase = self._phase, label
        try:
            yield
        finally:
            self._phase = before

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Leave out a wrapper that imports torch's compiler, for seconds, to keep it out."""
        return False

    def __enter__(self) -> Self:
        self._hooks = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        super().__enter__()  # type: ignore[no-untyped-call]  # untyped in torch
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]  # untyped in torch
        for hook in self._hooks:
            hook.remove()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation and record it."""
        kwargs = kwargs or {}
        if func.namespace == "profiler":  # marks in a trace, no computation
            return func(*args, **kwargs)
        with self._lock:
            signature = read_signature(func)
            # [Step 1] Digest the inputs before the operation can change them.
            named = {**dict(zip(signature.arguments, args)), **kwargs}
            tensors = [(name, tensor) for name in named for tensor in find_tensors(named[name])]
            inputs, sources = self._digest_inputs(signature, tensors)
            module, note = self._find_module()
            # [Step 2] Run it, and digest what it changed and what it made.
            result = func(*args, **kwargs)
            outputs, shapes = self._digest_outputs(signature, tensors, result)
            kind = UNINITIALIZED if signature.uninitialized else "view" * signature.view
            self._records.append(
                OpRecord(
                    phase=self._phase,
                    module=module,
                    op=str(func),
                    inputs=inputs,
                    sources=sources,
                    settings=show_settings(named),
                    outputs=outputs,
                    shapes=shapes,
                    note=", ".join(filter(None, (kind, note))),
                )
            )
            return result

    def _digest_inputs(
        self, signature: Signature, tensors: list[tuple[str, Tensor]]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return digest and source of each tensor argument."""
        digested = []
        for name, tensor in tensors:
            source = self._find_source(tensor, name)
            if not signature.reads and source in ("", UNINITIALIZED):
                continue
            # Uninitialized memory that is about to be written has no content to compare.
            unwritten = name in signature.written and _storage_key(tensor) in self._raw
            digested.append((UNINITIALIZED if unwritten else self._digest(tensor), source))
        return tuple(digest for digest, _ in digested), tuple(source for _, source in digested)

    def _digest_outputs(
        self, signature: Signature, tensors: list[tuple[str, Tensor]], result: Any
    ) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
        """Return digest and shape of each changed argument and each new result."""
        entered = {_storage_key(tensor) for _, tensor in tensors}
        changed = [tensor for name, tensor in tensors if name in signature.written]
        results = pair_results(signature, result)
        fresh = [value for value, aliased in results if not (aliased and _within(value, entered))]
        for tensor in (value for value in fresh if isinstance(value, Tensor)):
            if (key := _storage_key(tensor)) not in entered and key != NO_STORAGE:
                # A weak reference keeps torch from giving the address to another storage.
                storage = tensor.untyped_storage()
                self._made[key] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # untyped in torch
                self._raw.discard(key)
        if signature.uninitialized:
            self._raw.update(map(_storage_key, find_tensors([*changed, *fresh])))
            return (), ()
        for tensor in changed:
            key = _storage_key(tensor)
            if key != NO_STORAGE and tensor.nbytes >= tensor.untyped_storage().nbytes():
                self._raw.discard(key)
        values = [*changed, *fresh]
        shapes = tuple(tuple(getattr(value, "shape", ())) for value in values)
        return tuple(self._digest_result(value) for value in values), shapes

    def _digest_result(self, value: Any) -> str:
        """Return a tensor's digest, or the repr of a Python scalar."""
        return self._digest(value) if isinstance(value, Tensor) else repr(value)

    def _find_source(self, tensor: Tensor, argument: str) -> str:
        """Return the name of a tensor that no recorded operation made, or ""."""
        key = _storage_key(tensor)
        if key in self._named:
            start, end = _span(tensor)
            names = [name for name, first, last in self._named[key] if start < last and first < end]
            return ", ".join(names) or f"unnamed argument {argument!r}"
        if key in self._made:
            return UNINITIALIZED if key in self._raw else ""
        return f"unnamed argument {argument!r}"

    def _find_module(self) -> tuple[str, str]:
        """Return the path of the module that runs the operation, and its autograd node if any."""
        node: Any = torch._C._current_autograd_node()
        note = node.name().rpartition("::")[2] if node is not None else ""
        # [Step 1] A module entered within this backward pass: a forward that is computed again.
        if self._open and self._open[-1][1] == torch._C._current_graph_task_id():
            return self._open[-1][0], note
        if node is None:
            return "", note
        # [Step 2] The node that accumulates a gradient belongs to the parameter's module.
        if note == "AccumulateGrad":
            return self._owners.get(id(node.variable), ""), note
        # [Step 3] Nodes are numbered as forward creates them: find the module that ran then.
        position = bisect_right(self._starts, node._sequence_nr()) - 1
        return (self._paths[position] if position >= 0 else ""), note

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        path = self._modules.get(id(module), type(module).__name__)
        self._open.append((path, torch._C._current_graph_task_id()))
        self._mark_nodes()

    def _leave_module(self, module: nn.Module, args: Any, output: Any) -> None:
        if self._open:
            self._open.pop()
        self._mark_nodes()

    def _mark_nodes(self) -> None:
        """Record that autograd nodes created from now on belong to the innermost module."""
        number = torch._C._autograd._get_sequence_nr()
        if not self._starts or number >= self._starts[-1]:  # other threads count from 0
            self._starts.append(number)
            self._paths.append(self._open[-1][0] if self._open else "")


def _index_names(
    model: nn.Module, names: Mapping[str, Tensor]
) -> dict[int, list[tuple[str, int, int]]]:
    """Return (name, first byte, end) of every named tensor, by the storage that holds it."""
    renamed = {id(tensor) for tensor in names.values()}
    state = [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]
    known = {f"model/{name}": tensor for name, tensor in state if id(tensor) not in renamed}
    places: dict[int, list[tuple[str, int, int]]] = {}
    for name, tensor in {**known, **names}.items():
        if not is_plain(tensor) or tensor.numel() == 0:
            continue  # it has no bytes of its own
        places.setdefault(_storage_key(tensor), []).append((name, *_span(tensor)))
    return places


def _storage_key(tensor: Tensor) -> int:
    """Return what identifies the memory of a tensor; NO_STORAGE if it holds none itself."""
    return int(tensor.untyped_storage()._cdata) if is_plain(tensor) else NO_STORAGE


def _within(value: Any, keys: set[int]) -> bool:
    return isinstance(value, Tensor) and _storage_key(value) in keys


def _span(tensor: Tensor) -> tuple[int, int]:
    """Return the range of bytes of its storage that a tensor covers, as (first, end)."""
    first = int(tensor.storage_offset()) * tensor.itemsize
    steps = zip(tensor.shape, tensor.stride())
    reach = sum((size - 1) * stride for size, stride in steps)
    return first, first + (reach + 1) * tensor.itemsize
