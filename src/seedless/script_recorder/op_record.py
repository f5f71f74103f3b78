"""The record of one operation of a run: digests of its inputs and outputs, and its settings.

Digests are over bytes, so a NaN equals itself and -0.0 differs from 0.0. A tensor whose bytes
cannot be read has "not compared" and its type instead of a digest: recording never raises.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

UNINITIALIZED = "uninitialized"
NOT_COMPARED = "not compared"

# The fields that say what an operation did; the others say where and for whom.
COMPARED = (
    *("phase", "module", "op", "inputs", "sources", "settings", "outputs", "shapes", "note"),
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
        device: the device of its first tensor, as "cuda:0"; "" where it is not recorded.
        origins: for each input the lines that explain content which no operation wrote: where its
            memory was made uninitialized, where a tensor from outside was used first, or where the
            script took the memory's address. "" where there is none; empty if it is not recorded.
        maker: for a draw, the user's line outside the methods of a model that led to it; or "".
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
    device: str = ""
    origins: tuple[str, ...] = ()
    maker: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return what the operation did as plain values for canonical JSON: nothing after note."""
        values = asdict(self)
        return {name: values[name] for name in COMPARED}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> OpRecord:
        """Return the record that `as_dict` described, also after conversion to and from JSON."""
        return cls(**{key: _freeze(value) for key, value in values.items()})


def digest_tensor(tensor: Tensor) -> str:
    """Return the hex SHA-256 over dtype, shape and the elements in C order, or "not compared ...".

    All of it: a referee relies on it against parties who would look for two tensors of one digest.
    """
    if not is_plain(tensor):
        parts = find_parts(tensor)
        text = f"{describe_type(tensor)} {' '.join(map(digest_tensor, parts))}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        return digest if parts else f"{NOT_COMPARED}: {describe_type(tensor)}"
    header = f"{tensor.dtype} {tuple(tensor.shape)}\n".encode()
    hasher = hashlib.sha256(header)  # faster than blake2b with SHA instructions
    elements = take_bytes(tensor)
    # Not through numpy, which would forbid the script to resize the tensor ever after.
    hasher.update((ctypes.c_char * elements.numel()).from_address(elements.data_ptr()))
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
        parts = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
        return [part for part in parts if isinstance(part, Tensor)]  # others say how it is split
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


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, (list, tuple)) else value
