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
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from .op_record import UNINITIALIZED, OpRecord, digest_tensor
from .op_signature import Signature, find_tensors, pair_results, read_signature, show_settings
from .tensor_sources import TensorSources, get_storage_key

if TYPE_CHECKING:
    from typing_extensions import Self


class OpCall(NamedTuple):
    """One operation that is about to run: its arguments, and what its record needs of them."""

    func: Any
    signature: Signature
    arguments: dict[str, Any]
    tensors: list[tuple[str, Tensor]]
    inputs: tuple[str, ...]
    sources: tuple[str, ...]
    origins: tuple[str, ...]
    module: str
    note: str


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
        self._model = model  # while it exists, no other object can get the ids of its modules
        self._sources = TensorSources(_name_tensors(model, names or {}))
        self._digest = digest
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
            call = self._begin(func, args, kwargs)
            result = func(*args, **kwargs)
            self._records.append(self._end(call, result))
            return result

    def _find_phase(self) -> str:
        """Return the label of the operations that run now."""
        return self._phase

    def _begin(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpCall:
        """Return what is known of an operation before it runs: then it may change its inputs."""
        signature = read_signature(func)
        names = signature.arguments or [str(position) for position in range(len(args))]
        named = {**dict(zip(names, args)), **kwargs}
        tensors = [(name, tensor) for name in named for tensor in find_tensors(named[name])]
        inputs, sources, origins = self._digest_inputs(signature, tensors)
        module, note = self._find_module()
        return OpCall(func, signature, named, tensors, inputs, sources, origins, module, note)

    def _end(self, call: OpCall, result: Any) -> OpRecord:
        """Return the record of an operation that has run."""
        signature = call.signature
        outputs, shapes = self._digest_outputs(signature, call.tensors, result)
        kind = UNINITIALIZED if signature.uninitialized else ""
        if signature.view or signature.rebinds:
            kind = "view"
        return self._make_record(call, kind, outputs=outputs, shapes=shapes)

    def _make_record(self, call: OpCall, kind: str, **results: Any) -> OpRecord:
        """Return the record of an operation; ``kind`` comes first in its note."""
        return OpRecord(
            phase=self._find_phase(),
            module=call.module,
            op=str(call.func),
            inputs=call.inputs,
            sources=call.sources,
            settings=show_settings(call.arguments),
            note=", ".join(filter(None, (kind, call.note))),
            origins=call.origins,
            **results,
        )

    def _digest_inputs(
        self, signature: Signature, tensors: list[tuple[str, Tensor]]
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Return digest, source and origin of each tensor argument."""
        digested = []
        for name, tensor in tensors:
            if signature.rebinds and name in signature.written:
                continue  # it loses its memory, whatever that held
            if name in signature.scratch:
                continue  # parts of it were never written
            source = self._find_source(tensor, name)
            if not (signature.reads or self._digests_unread(source)):
                continue
            digest = self._mark(signature, name, tensor) or self._digest(tensor)
            digested.append((digest, source, self._find_origin(tensor)))
        inputs, sources, origins = zip(*digested) if digested else ((), (), ())
        return inputs, sources, origins if any(origins) else ()

    def _find_source(self, tensor: Tensor, argument: str) -> str:
        """Return the name of a tensor that no recorded operation made, or ""."""
        return self._sources.find(tensor, argument)

    def _find_origin(self, tensor: Tensor) -> str:
        """Return the lines that explain content which no operation wrote, or ""."""
        return ""

    def _note_uninitialized(self, tensors: list[Tensor]) -> None:
        """Note that an operation left the memory of tensors uninitialized."""
        self._sources.see_uninitialized(tensors)

    def _digests_unread(self, source: str) -> bool:
        """Whether an argument whose elements are not read is digested, by its source."""
        return source not in ("", UNINITIALIZED)

    def _mark(self, signature: Signature, name: str, tensor: Tensor) -> str:
        """Return what stands for an argument that has no content to compare; "" if it has."""
        unwritten = name in signature.written and self._sources.is_unwritten(tensor)
        return UNINITIALIZED if unwritten else ""

    def _digest_outputs(
        self, signature: Signature, tensors: list[tuple[str, Tensor]], result: Any
    ) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
        """Return digest and shape of each changed argument and each new result."""
        if signature.rebinds:
            self._sources.see_memory(result)
            return (), ()
        entered = {get_storage_key(tensor) for _, tensor in tensors}
        changed = [tensor for name, tensor in tensors if name in signature.written]
        results = pair_results(signature, result)
        fresh = [value for value, aliased in results if not (aliased and _within(value, entered))]
        for tensor in (value for value in fresh if isinstance(value, Tensor)):
            if get_storage_key(tensor) not in entered:
                self._sources.see_made(tensor)
        if signature.uninitialized:
            self._note_uninitialized(list(find_tensors([*changed, *fresh])))
            return (), ()
        for tensor in changed:
            self._sources.see_written(tensor)
        values = [*changed, *fresh]
        shapes = tuple(map(_read_shape, values))
        return tuple(self._digest_result(value) for value in values), shapes

    def _digest_result(self, value: Any) -> str:
        """Return a tensor's digest, or the repr of a Python scalar."""
        return self._digest(value) if isinstance(value, Tensor) else repr(value)

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
            return self._find_owner(node.variable), note
        # [Step 3] Nodes are numbered as forward creates them: find the module that ran then.
        position = bisect_right(self._starts, node._sequence_nr()) - 1
        return (self._paths[position] if position >= 0 else ""), note

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        self._open.append((self._find_path(module), torch._C._current_graph_task_id()))
        self._mark_nodes()

    def _find_owner(self, parameter: Tensor) -> str:
        """Return the path of the module that has a parameter."""
        return str(self._owners.get(id(parameter), ""))

    def _find_path(self, module: nn.Module) -> str:
        """Return what to call a module."""
        return str(self._modules.get(id(module), type(module).__name__))

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


def _name_tensors(model: nn.Module, names: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors that exist before the run, by name."""
    renamed = {id(tensor) for tensor in names.values()}
    state = [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]
    return {**{f"model/{name}": one for name, one in state if id(one) not in renamed}, **names}


def _within(value: Any, keys: set[int]) -> bool:
    return isinstance(value, Tensor) and get_storage_key(value) in keys


def _read_shape(value: Any) -> tuple[int, ...]:
    """Return the shape of a tensor; of a scalar, and of a nested tensor, which has none, ()."""
    return tuple(value.shape) if isinstance(value, Tensor) and not value.is_nested else ()
