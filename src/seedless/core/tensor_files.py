"""Read safetensors files that someone else may have written.

The header is bounded and checked here, in Python, before the safetensors library parses it. The
tensors are mapped into memory, so that a large file costs no more memory than what is used of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from seedless.core.bounded_reading import open_plain_file, parse_json, shorten
from seedless.core.errors import RunError

if TYPE_CHECKING:
    from torch import Tensor

MAX_HEADER_BYTES = 16 * 2**20
MAX_TENSORS = 100_000
MAX_NAME_CHARACTERS = 1_024
_MAX_DIMENSIONS = 16


def load_tensors(path: Path) -> tuple[dict[str, Tensor], Mapping[str, str]]:
    """Return the tensors of a safetensors file by name, and its metadata.

    Example: ``weights, _ = load_tensors(run / "weights.safetensors")``.
    """
    # torch takes a second to import, and most commands that fail here do not need it.
    from safetensors import SafetensorError, safe_open

    _check_header(path)
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, file.metadata() or {}
    except (SafetensorError, ValueError, RuntimeError, TypeError, OverflowError) as error:
        raise RunError(f"{path} cannot be read as safetensors: {shorten(str(error))}") from None


def _check_header(path: Path) -> None:
    """Refuse a header that is too large, or that describes tensors outside the file."""
    # [Step 1] The size of the header, which the first 8 bytes declare.
    with open_plain_file(path) as file:
        size = file.seek(0, 2)
        file.seek(0)
        declared = int.from_bytes(file.read(8), "little")
        if declared > min(MAX_HEADER_BYTES, max(size - 8, 0)):
            raise RunError(
                f"{path} declares a header of {declared:,} bytes; it has {size:,} bytes in all, "
                f"and at most {MAX_HEADER_BYTES:,} are read"
            )
        header = parse_json(file.read(declared), f"the header of {path}", max_depth=8)
    # [Step 2] Number and names of the tensors, and where their bytes lie.
    if not isinstance(header, dict) or len(header) > MAX_TENSORS:
        raise RunError(f"{path}: expected a header that names at most {MAX_TENSORS:,} tensors")
    for name, tensor in header.items():
        if name != "__metadata__" and not _is_tensor(name, tensor, size - 8 - declared):
            raise RunError(f"{path}: {shorten(name, 80)!r} does not describe a tensor in this file")


def _is_tensor(name: str, described: Any, size: int) -> bool:
    """Whether a header's entry has the form of a tensor's, and lies within ``size`` bytes."""
    if not isinstance(described, dict) or len(name) > MAX_NAME_CHARACTERS:
        return False
    shape, offsets = described.get("shape"), described.get("data_offsets")
    if not _is_counts(shape, _MAX_DIMENSIONS) or not _is_counts(offsets, 2):
        return False
    return len(offsets) == 2 and offsets[0] <= offsets[1] <= size


def _is_counts(value: Any, most: int) -> TypeGuard[list[int]]:
    """Whether a value is a list of at most ``most`` integers from 0 to 2**62."""
    return (
        isinstance(value, list)
        and len(value) <= most
        and all(type(item) is int and 0 <= item < 2**62 for item in value)
    )
