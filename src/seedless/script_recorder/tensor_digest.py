"""Digests of tensors, and of whatever contains tensors, as 16 hex digits.

The bytes of small CPU tensors go through SHA-1, those of large ones through a sum of integers,
which is faster; nobody is expected to look for collisions here. Tensors on other devices are hashed
there with integers, and the few resulting numbers are read when the record is written, so that the
device does not wait for the host. No digest draws from a generator, uses a float, or starts a
collective.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from .device_hash import hash_on_device
from .memory_hash import hash_memory

MAX_DEPTH = 8
DIGITS = 16
LARGE_BYTES = 1 << 12


class PendingDigest:
    """A digest of which a part is still on a device."""

    __slots__ = ("parts", "text")

    def __init__(self, text: str, parts: list[Tensor]) -> None:
        self.text = text
        self.parts = parts

    def resolve(self, numbers: list[int]) -> str:
        """Return the digest, given the numbers that ``parts`` hold."""
        return digest_text(f"{self.text} {numbers}")


def digest_text(text: str) -> str:
    """Return the digest of a text."""
    return hashlib.sha1(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:DIGITS]


def digest_value(value: Any) -> str | PendingDigest:
    """Return the digest of a tensor, array, number, text, or anything that contains them.

    Objects of other classes count with the tensors and arrays among their attributes alone: the
    rest may hold addresses and times.
    """
    with _outside_modes():
        content = _Content()
        content.add(value, MAX_DEPTH)
        return content.digest()


def digest_tensors(tensors: Iterable[Tensor | None]) -> str | PendingDigest:
    """Return one digest of many tensors, in order."""
    with _outside_modes():
        content = _Content()
        for tensor in tensors:
            if tensor is None:
                content.hasher.update(b"none\n")
            else:
                content.add_tensor(tensor)
        return content.digest()


@contextmanager
def _outside_modes() -> Iterator[None]:
    """Hide a digest's own operations from modes that the script has entered, as to count them."""
    with ExitStack() as stack:
        if torch._C._len_torch_dispatch_stack():
            stack.enter_context(_disable_current_modes())
        if torch._C._len_torch_function_stack():
            stack.enter_context(torch._C.DisableTorchFunction())
        yield


class _Content:
    """Collects bytes for a digest."""

    def __init__(self) -> None:
        self.hasher = hashlib.sha1(usedforsecurity=False)
        self.on_devices: dict[torch.device, list[Tensor]] = {}

    def digest(self) -> str | PendingDigest:
        """Return the digest of everything added."""
        text = self.hasher.hexdigest()[:DIGITS]
        if not self.on_devices:
            return text
        return PendingDigest(text, [hash_on_device(each) for each in self.on_devices.values()])

    def add(self, value: Any, depth: int) -> None:
        """Add a value and what it contains, down to ``depth`` levels."""
        if isinstance(value, Tensor):
            self.add_tensor(value)
        elif value is None or isinstance(value, (bool, int, float, complex, str)):
            self._add_text(repr(value))
        elif isinstance(value, (bytes, bytearray)):
            self.hasher.update(value)
        elif depth == 0:
            self._add_text(type(value).__name__)
        elif isinstance(value, Mapping):
            self._add_text(f"mapping {len(value)}")
            for key, item in value.items():
                self._add_text(repr(key) if isinstance(key, (str, int)) else type(key).__name__)
                self.add(item, depth - 1)
        elif isinstance(value, (list, tuple)):
            self._add_text(f"list {len(value)}")
            for item in value:
                self.add(item, depth - 1)
        elif isinstance(value, (set, frozenset)):
            self._add_text(f"set {sorted(map(repr, value))}")
        elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
            self._add_array(value, depth)
        else:
            self._add_object(value, depth)

    def add_tensor(self, tensor: Tensor) -> None:
        """Add dtype, shape and elements in C order; the local part of a sharded tensor."""
        if type(tensor) not in _PLAIN_TYPES:
            inner = _find_inner_tensors(tensor)
            if inner is not None:
                self._add_text(f"{type(tensor).__name__} {len(inner)}")
                for item in inner:
                    self.add_tensor(item)
                return
        if tensor.layout is not torch.strided:
            self._add_sparse(tensor)
            return
        self._add_text(f"{tensor.dtype} {tuple(tensor.shape)}")
        if tensor.is_meta or tensor.is_quantized or not tensor.numel():
            return
        plain = _make_plain(tensor)
        if plain.device.type == "cpu":
            self._add_memory(plain.data_ptr(), plain.numel() * plain.element_size())
        else:
            self.on_devices.setdefault(plain.device, []).append(plain)

    def _add_memory(self, address: int, size: int) -> None:
        if size < LARGE_BYTES:
            self.hasher.update((ctypes.c_char * size).from_address(address))
        else:
            self.hasher.update(hash_memory(address, size).to_bytes(8, "little"))

    def _add_text(self, text: str) -> None:
        self.hasher.update(f"{text}\n".encode("utf-8", "replace"))

    def _add_sparse(self, tensor: Tensor) -> None:
        self._add_text(f"{tensor.layout} {tensor.dtype} {tuple(tensor.shape)}")
        with torch.no_grad():
            if tensor.layout is torch.sparse_coo:
                parts = [tensor._indices(), tensor._values()]
            elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
                parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
            elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
                parts = [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
            else:
                parts = []
        for part in parts:
            self.add_tensor(part)

    def _add_array(self, array: Any, depth: int) -> None:
        """Add a numpy array or scalar, known by its methods: numpy may not be installed."""
        self._add_text(f"array {array.dtype} {getattr(array, 'shape', ())}")
        if getattr(array.dtype, "hasobject", False):
            self.add(array.tolist(), depth - 1)
        else:
            self.hasher.update(array.tobytes())

    def _add_object(self, value: Any, depth: int) -> None:
        self._add_text(type(value).__name__)
        if hasattr(value, "tobytes") and hasattr(value, "mode"):  # an image of PIL
            self._add_text(f"{value.mode} {getattr(value, 'size', ())}")
            self.hasher.update(value.tobytes())
            return
        for name, item in _list_attributes(value):
            if isinstance(item, (Tensor, Mapping, list, tuple)) or hasattr(item, "tobytes"):
                self._add_text(name)
                self.add(_keep_tensors(item, depth - 1), depth - 1)


_PLAIN_TYPES = (Tensor, torch.nn.Parameter)


def _find_inner_tensors(tensor: Tensor) -> list[Tensor] | None:
    """Return the tensors a wrapper holds in this process, or None for a subclass with own bytes."""
    local = getattr(tensor, "_local_tensor", None)  # DTensor: never a collective
    if isinstance(local, Tensor):
        return [local]
    if type(tensor).__torch_dispatch__ is Tensor.__torch_dispatch__:
        return None
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None:
        return []  # a fake tensor, or another one without bytes of its own
    return [item for name in flatten()[0] if isinstance(item := getattr(tensor, name), Tensor)]


def _make_plain(tensor: Tensor) -> Tensor:
    """Return the tensor with its elements in C order in memory."""
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    with torch.no_grad():
        return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _list_attributes(value: Any) -> list[tuple[str, Any]]:
    attributes = getattr(value, "__dict__", None)
    if not isinstance(attributes, Mapping):
        names = getattr(type(value), "__slots__", ())
        attributes = {name: getattr(value, name, None) for name in names}
    return list(attributes.items())


def _keep_tensors(value: Any, depth: int) -> Any:
    """Return the tensors and arrays inside a value, in its containers, without anything else."""
    if isinstance(value, Tensor) or (hasattr(value, "tobytes") and hasattr(value, "dtype")):
        return value
    if depth <= 0:
        return None
    if isinstance(value, Mapping):
        return {str(key): _keep_tensors(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_keep_tensors(item, depth - 1) for item in value]
    return None
