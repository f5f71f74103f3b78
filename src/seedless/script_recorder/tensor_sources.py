"""Where the memory of a tensor comes from: it has a name, or a recorded operation made it.

Memory is known by its storage. Uninitialized memory has no content to compare until all of it has
been written; nor has memory that appears from nowhere, which `copy.deepcopy` fills afterwards and
`torch.load` has filled before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from .op_record import UNINITIALIZED, is_plain

NO_STORAGE = 0
FOREIGN = "a storage that no operation made"
UNNAMED = "unnamed argument"
MAX_LINES = 3  # that are kept of one memory


class TensorSources:
    """The memory seen so far.

    Args:
        names: the tensors that exist beforehand, by name.
    """

    def __init__(self, names: Mapping[str, Tensor]) -> None:
        # References: while these exist, no other tensor can get their memory.
        self._references = dict(names)
        self._named = _index_names(names)
        self._made: dict[int, StorageWeakRef] = {}
        self._unwritten: set[int] = set()
        self._foreign: dict[int, str] = {}
        self._lines: dict[int, tuple[StorageWeakRef, list[str]]] = {}
        self._reached: dict[int, str] = {}

    def find(self, tensor: Tensor, argument: str) -> str:
        """Return the name of a tensor that no recorded operation made, or ""."""
        key = get_storage_key(tensor)
        if key in self._named:
            start, end = _span(tensor)
            names = [name for name, first, last in self._named[key] if start < last and first < end]
            return ", ".join(names) or f"{UNNAMED} {argument!r}"
        if key in self._foreign:
            return self._foreign[key]
        if key in self._made:
            return UNINITIALIZED if key in self._unwritten else ""
        return f"{UNNAMED} {argument!r}"

    def is_unwritten(self, tensor: Tensor) -> bool:
        """Whether its memory has never been written as a whole."""
        return get_storage_key(tensor) in self._unwritten

    def see_made(self, tensor: Tensor) -> None:
        """Note that an operation made a tensor."""
        key = get_storage_key(tensor)
        if key != NO_STORAGE:
            # A weak reference keeps torch from giving the address to another storage.
            storage = tensor.untyped_storage()
            self._made[key] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # untyped in torch
            self._unwritten.discard(key)
            self._foreign.pop(key, None)
            self._lines.pop(key, None)
            self._reached.pop(key, None)

    def see_uninitialized(self, tensors: Iterable[Tensor]) -> None:
        """Note that an operation left the memory of tensors uninitialized."""
        self._unwritten.update(map(get_storage_key, tensors))
        self._unwritten.discard(NO_STORAGE)

    def see_memory(self, tensor: Tensor) -> None:
        """Note that a tensor was given a memory, which may have been seen or not."""
        key = get_storage_key(tensor)
        if key not in self._named and key not in self._made:
            self.see_foreign(tensor, FOREIGN)
            self.see_uninitialized([tensor])

    def see_foreign(self, tensor: Tensor, source: str) -> None:
        """Note that something other than an operation writes to a tensor, and what."""
        self.see_made(tensor)
        if (key := get_storage_key(tensor)) != NO_STORAGE:
            self._foreign[key] = source

    def add_names(self, names: Mapping[str, Tensor]) -> None:
        """Give names to tensors that have none yet."""
        new = {name: one for name, one in names.items() if get_storage_key(one) not in self._named}
        self._references.update(new)
        self._named.update(_index_names(new))

    def see_written(self, tensor: Tensor) -> None:
        """Note that an operation wrote to all elements of a tensor."""
        key = get_storage_key(tensor)
        if key not in self._unwritten and key not in self._foreign:
            return
        if tensor.nbytes >= tensor.untyped_storage().nbytes():
            self._foreign.pop(key, None)
            if key in self._unwritten:
                self._unwritten.discard(key)
                self._lines.pop(key, None)

    def note_line(self, tensor: Tensor, line: str) -> None:
        """Remember a line that explains content of a memory which no operation wrote."""
        key = get_storage_key(tensor)
        if key == NO_STORAGE or not line:
            return
        if key not in self._lines:
            storage = tensor.untyped_storage()
            reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # untyped in torch
            self._lines[key] = (reference, [])
        lines = self._lines[key][1]
        if line not in lines and len(lines) < MAX_LINES:
            lines.append(line)

    def see_reached(self, tensor: Tensor, how: str, line: str) -> None:
        """Note that the script can now write to the memory of a tensor without an operation.

        Whether it does cannot be seen, so that the memory counts as written from now on.
        """
        if (key := get_storage_key(tensor)) != NO_STORAGE:
            self._unwritten.discard(key)
            if key not in self._reached:
                self._lines.pop(key, None)  # who made it does not matter any more
            self._reached[key] = how
            self.note_line(tensor, line)

    def get_reach(self, tensor: Tensor) -> str:
        """Return how the script can write to a memory without an operation, or ""."""
        return self._reached.get(get_storage_key(tensor), "")

    def list_lines(self, tensor: Tensor) -> list[str]:
        """Return the lines that `note_line` was given for the memory of a tensor."""
        return self._lines[key][1] if (key := get_storage_key(tensor)) in self._lines else []


def get_storage_key(tensor: Tensor) -> int:
    """Return what identifies the memory of a tensor; NO_STORAGE if it holds none itself."""
    return int(tensor.untyped_storage()._cdata) if is_plain(tensor) else NO_STORAGE


def _index_names(names: Mapping[str, Tensor]) -> dict[int, list[tuple[str, int, int]]]:
    """Return (name, first byte, end) of every named tensor, by the storage that holds it."""
    places: dict[int, list[tuple[str, int, int]]] = {}
    for name, tensor in names.items():
        if not is_plain(tensor) or tensor.numel() == 0:
            continue  # it has no bytes of its own
        places.setdefault(get_storage_key(tensor), []).append((name, *_span(tensor)))
    return places


def _span(tensor: Tensor) -> tuple[int, int]:
    """Return the range of bytes of its storage that a tensor covers, as (first, end)."""
    first = int(tensor.storage_offset()) * tensor.itemsize
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return first, first + (reach + 1) * tensor.itemsize
