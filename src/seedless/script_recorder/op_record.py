"""The record of one operation of a run: digests of its inputs and outputs, and its settings.

Digests are over bytes, so a NaN equals itself and -0.0 differs from 0.0. A tensor whose bytes
cannot be read has "not compared" and its type instead of a digest: recording never raises.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

UNINITIALIZED = "uninitialized"
NOT_COMPARED = "not compared"
LONGEST_SETTING = 200

# Operations that return uninitialized memory: its bytes say nothing about the run.
_UNINITIALIZED_OP = re.compile(r"(new_|_)?empty|resize_")

# BatchNorm writes to these arguments, and its oldest schemas do not declare it.
_SILENTLY_WRITTEN = frozenset({"running_mean", "running_var"})

# Operations that use the dtype and shape of an argument and never read its elements.
_TEMPLATE_OP = re.compile(r"new_|\w+_like$")

# A view whose schema does not declare that it shares memory with its argument.
_SILENT_VIEW = "aten::_unsafe_view"

_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


@dataclass(frozen=True)
class OpRecord:
    """One operation of a run.

    Attributes:
        phase: the label the caller had set: "forward", "backward", "optimizer", ...
        module: dotted path of the innermost module, also in backward; "" outside every module.
        op: name and overload, as "aten.addmm.default".
        inputs: a digest for every tensor argument, in order; "uninitialized" for memory that this
            operation is the first to write. Where elements are not read (views, `zeros_like`), only
            inputs that no operation made are digested: the others are digested when they are made.
        sources: for each input its name, or "" if a recorded operation made it.
        settings: every argument that is no tensor, as "name=value".
        outputs: digests of the arguments it changed, then of the new tensors it returned; the repr
            of a Python scalar. Views and uninitialized memory have none.
        shapes: the shapes of ``outputs``.
        note: "view" or "uninitialized", and the autograd node that ran it.
        line: "path:line" of the user's code that called it, in backward of the forward call; ""
            where it is unknown.
        draws: the generator it drew from, as "torch" or "cuda:0"; "" if it drew from none.
    """

    phase: str
    module: str
    op: str
    inputs: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    note: str = ""
    line: str = ""
    draws: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return what the operation did as plain values for canonical JSON, without its line."""
        values = asdict(self)
        del values["line"], values["draws"]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> OpRecord:
        """Return the record that `as_dict` described, also after conversion to and from JSON."""
        return cls(**{key: _freeze(value) for key, value in values.items()})


def digest_tensor(tensor: Tensor) -> str:
    """Return the hex SHA-256 over dtype, shape and the elements in C order, or "not compared ...".

    All of it: a referee relies on it against parties who would look for two tensors of one digest.
    """
    header = f"{tensor.dtype} {tuple(tensor.shape)}\n".encode()
    hasher = hashlib.sha256(header)  # faster than blake2b with SHA instructions
    if is_plain(tensor):
        hasher.update(take_bytes(tensor).numpy().data)
        return hasher.hexdigest()
    parts = find_parts(tensor)
    if not parts:
        return f"{NOT_COMPARED}: {describe_type(tensor)}"
    hasher.update(describe_type(tensor).encode())
    for part in parts:
        hasher.update(digest_tensor(part).encode())
    return hasher.hexdigest()


def take_bytes(tensor: Tensor) -> Tensor:
    """Return the elements in C order as a flat uint8 tensor on the CPU."""
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    return plain.reshape(-1).view(torch.uint8)


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor holds its own bytes in memory: no sparse, meta, fake or wrapped one."""
    return (
        tensor.layout == torch.strided
        and not tensor.is_quantized
        and not tensor.is_nested
        and not tensor.is_meta
        and type(tensor).__torch_dispatch__ is Tensor.__torch_dispatch__
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    )


def find_parts(tensor: Tensor) -> list[Tensor]:
    """Return the tensors that hold the elements of one that is not plain; none if unknown.

    Indices and values of a sparse tensor; the inner tensors of a wrapper: of a DTensor its local
    one.
    """
    if type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        if not hasattr(tensor, "__tensor_flatten__"):
            return []
        names, _ = tensor.__tensor_flatten__()
        return [getattr(tensor, name) for name in names]
    if tensor.is_meta or tensor.is_nested:
        return []
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return []


def describe_type(tensor: Tensor) -> str:
    """Return class, layout, dtype and device of a tensor: "Tensor, sparse_coo, float32 on cpu"."""
    layout, dtype = (str(one).replace("torch.", "") for one in (tensor.layout, tensor.dtype))
    return f"{type(tensor).__name__}, {layout}, {dtype} on {tensor.device}"


@dataclass(frozen=True)
class Signature:
    """What an operation's schema declares of its arguments and results.

    Attributes:
        arguments: their names, in order.
        written: the arguments it changes.
        aliased: for each result, whether it is a changed argument or a view of one.
        view: it returns views of its argument and computes nothing.
        reads: its result depends on the elements of its arguments, not only on their shapes.
        uninitialized: it returns uninitialized memory.
    """

    arguments: tuple[str, ...]
    written: frozenset[str]
    aliased: tuple[bool, ...]
    view: bool
    reads: bool
    uninitialized: bool


@cache
def read_signature(op: Any) -> Signature:
    """Return what an operation's schema declares; cached, since reading it from torch is slow."""
    schema = op._schema
    names = tuple(argument.name for argument in schema.arguments)
    declared = {
        argument.name
        for argument in schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    }
    undeclared = _SILENTLY_WRITTEN.intersection(names) if "backward" not in schema.name else set()
    written = frozenset(declared | undeclared)
    aliased = tuple(
        result.alias_info is not None or schema.name == _SILENT_VIEW for result in schema.returns
    )
    view = bool(aliased) and all(aliased) and not written
    name = schema.name.rpartition("::")[2]
    return Signature(
        arguments=names,
        written=written,
        aliased=aliased,
        view=view,
        reads=not (view or _TEMPLATE_OP.match(name)),
        uninitialized=_UNINITIALIZED_OP.match(name) is not None,
    )


def find_tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors of an argument: itself, or those in a list."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from find_tensors(item)


def pair_results(signature: Signature, result: Any) -> Iterator[tuple[Any, bool]]:
    """Yield every result, those of lists one by one, and whether it aliases an argument."""
    results = (result,) if len(signature.aliased) == 1 else result or ()
    for value, aliased in zip(results, signature.aliased):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            yield item, aliased


def show_settings(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return "name=value" for every argument that does not consist of tensors."""
    return tuple(
        f"{name}={_shorten(_show(value))}"
        for name, value in arguments.items()
        if not _is_tensors(value)
    )


def _is_tensors(value: Any) -> bool:
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(item, Tensor) for item in value)
    return isinstance(value, Tensor)


def _show(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_show, value))}]"
    if value is None or isinstance(value, _PLAIN):
        return repr(value)
    return type(value).__name__  # its repr may contain an address, or very much text


def _shorten(text: str) -> str:
    if len(text) <= LONGEST_SETTING:
        return text
    rest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return f"{text[:LONGEST_SETTING]}... (blake2b {rest})"


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, (list, tuple)) else value
