"""Read numpy's .npy and .npz files that someone else may have written; nothing is unpickled.

A file is read only in the form in which `numpy.save` and `numpy.savez` write it. Its header must
account for every byte, so what is allocated is never more than the file itself.
"""

import re
import stat
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.bounded_reading import open_plain_file, shorten
from seedless.core.errors import RunError, SeedlessError
from seedless.core.zip_files import (
    END,
    END_BYTES,
    LOCAL_HEADER,
    LOCAL_HEADER_BYTES,
    LOCATOR,
    LOCATOR_BYTES,
)

NUMBERS = "biuf"  # kinds of dtypes: bool, integers, floats
TEXT = "U"
MAX_TEXT_CHARACTERS = 4096

_MAGIC = b"\x93NUMPY\x01\x00"
_MAX_HEADER = 2**12
_HEADER = re.compile(
    rb"\{'descr': '(?P<dtype>[<>|][a-zA-Z][0-9]{1,7})', "
    rb"'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>|[0-9]{1,18},|[0-9]{1,18}(?:, [0-9]{1,18})+)\), \} *\n"
)
_MAX_DIMENSIONS = 16


def parse_npy(
    content: memoryview | bytes,
    where: str,
    *,
    kinds: str = NUMBERS,
    error: type[SeedlessError] = RunError,
) -> NDArray[Any]:
    """Return the array in the bytes of an .npy file, as a read-only view of them.

    Args:
        content: the whole file.
        where: its name in messages.
        kinds: the kinds of dtypes it may have: `NUMBERS`, `TEXT` or both.
        error: the type of error that a refusal raises.
    """
    start, dtype, shape, order = _parse_header(bytes(content[:_MAX_HEADER]), where, kinds, error)
    _check_size(where, dtype, shape, len(content) - start, error)
    if not prod(shape):
        return np.empty(shape, dtype)
    array = np.frombuffer(content, dtype, offset=start).reshape(shape, order=order)
    if dtype.kind == TEXT:
        _check_text(array, where, error)
    return array


def load_npy(
    path: Path, *, kinds: str = NUMBERS, error: type[SeedlessError] = RunError
) -> NDArray[Any]:
    """Return the array of an .npy file, mapped into memory: its bytes are read as they are used.

    Example: ``load_npy(folder / "samples.npy").shape``.
    """
    with open_plain_file(path, error=error) as file:
        head = file.read(_MAX_HEADER)
        size = file.seek(0, 2)
        start, dtype, shape, order = _parse_header(head, str(path), kinds, error)
        _check_size(str(path), dtype, shape, size - start, error)
        if not prod(shape):
            return np.empty(shape, dtype)
        array = np.memmap(file, dtype, "r", start, shape, order)
    if dtype.kind == TEXT:
        _check_text(array, str(path), error)
    return array


def parse_npz(
    content: bytes,
    where: str,
    *,
    kinds: Callable[[str], str],
    max_arrays: int = 64,
    error: type[SeedlessError] = RunError,
) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file by name, as read-only views of its bytes.

    The file must be written as `numpy.savez` writes it: not compressed, every byte of it part of an
    array or of the directory, no name twice.

    Args:
        content: the whole file.
        where: its name in messages.
        kinds: gives the kinds of dtypes allowed for an array's name; "" for a name that the file
            must not hold.
        max_arrays: the most arrays it may hold.
        error: the type of error that a refusal raises.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for member, data in _list_stored(content, where, max_arrays, error).items():
        name = member.removesuffix(".npy")
        if name == member or not (allowed := kinds(name)):
            raise error(
                f"{where} holds {shorten(name, 80)!r}, which does not belong to such a file"
            )
        arrays[name] = parse_npy(data, f"{where}: {name}", kinds=allowed, error=error)
    return arrays


def _parse_header(
    head: bytes, where: str, kinds: str, error: type[SeedlessError]
) -> tuple[int, np.dtype[Any], tuple[int, ...], Any]:
    """Return where the values of an .npy file begin, their dtype, shape and order."""
    size = int.from_bytes(head[8:10], "little")
    match = _HEADER.fullmatch(head[10 : 10 + size])
    if not head.startswith(_MAGIC) or match is None:
        raise error(f"{where} does not begin as an array written by numpy.save does")
    try:
        dtype = np.dtype(match["dtype"].decode())
    except TypeError:
        dtype = np.dtype(object)  # of no kind that is ever read
    if dtype.kind not in kinds or not dtype.itemsize:
        raise error(f"{where}: expected a dtype of kind {kinds!r}, got {match['dtype'].decode()!r}")
    if dtype.kind == TEXT and dtype.itemsize > 4 * MAX_TEXT_CHARACTERS:
        raise error(
            f"{where}: its texts have {dtype.itemsize // 4:,} characters; at most "
            f"{MAX_TEXT_CHARACTERS:,} are read"
        )
    shape = tuple(int(part) for part in match["shape"].decode().split(",") if part.strip())
    if len(shape) > _MAX_DIMENSIONS:
        raise error(f"{where} has {len(shape)} dimensions; at most {_MAX_DIMENSIONS} are read")
    return 10 + size, dtype, shape, "F" if match["fortran"] == b"True" else "C"


def _check_size(
    where: str, dtype: np.dtype[Any], shape: tuple[int, ...], size: int, error: type[SeedlessError]
) -> None:
    if (expected := prod(shape) * dtype.itemsize) != size:
        raise error(
            f"{where}: expected {expected:,} bytes for {dtype} of shape {shape}, got {size:,}"
        )
    if not expected and max(shape) > 2**40:
        raise error(f"{where} has the shape {shape}")


def _check_text(array: NDArray[Any], where: str, error: type[SeedlessError]) -> None:
    """Refuse texts with numbers in them that are no characters."""
    order = array.dtype.byteorder.replace("=", "<" if np.little_endian else ">")
    points = np.atleast_1d(array).view(f"{order}u4")
    if ((points > 0x10FFFF) | ((points >= 0xD800) & (points <= 0xDFFF))).any():
        raise error(f"{where} holds text that is not Unicode")


def _list_stored(
    content: bytes, where: str, most: int, error: type[SeedlessError]
) -> dict[str, memoryview]:
    """Return the members of a zip file that holds nothing but members that are not compressed."""
    # [Step 1] The file ends with the record of its directory: no comment, not the form for more
    # than 4 GiB, which could name another directory.
    end = len(content) - END_BYTES
    before = content[max(0, end - LOCATOR_BYTES) : max(0, end)]
    if content[max(0, end) :][:4] != END or before.startswith(LOCATOR):
        raise error(f"{where} is no file that numpy.savez wrote, or was cut short")
    count = int.from_bytes(content[end + 10 : end + 12], "little")
    directory = int.from_bytes(content[end + 12 : end + 16], "little")
    if count > most or directory > most * 2**10:
        raise error(f"{where} holds {count:,} arrays in its directory; at most {most} are read")
    # [Step 2] Read the directory, which is small now.
    try:
        with zipfile.ZipFile(BytesIO(content)) as file:
            members, position = file.infolist(), 0
    except (zipfile.BadZipFile, ValueError, LookupError, NotImplementedError) as problem:
        raise error(f"{where} is no file that numpy.savez wrote: {problem}") from None
    # [Step 3] Members lie one after the other, from the first byte to the directory.
    found: dict[str, memoryview] = {}
    view = memoryview(content)
    for member in sorted(members, key=lambda item: item.header_offset):
        name, size = member.orig_filename, member.file_size
        head = content[position : position + LOCAL_HEADER_BYTES]
        start = position + LOCAL_HEADER_BYTES
        start += int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        kind = stat.S_IFMT(member.external_attr >> 16)
        if (
            member.compress_type != zipfile.ZIP_STORED
            or member.compress_size != size
            or member.flag_bits
            or kind not in (0, stat.S_IFREG)
        ):
            raise error(
                f"{where} holds {shorten(name, 80)!r} compressed, encrypted or streamed; expected "
                "a file as numpy.savez writes it"
            )
        if name in found:
            raise error(f"{where} holds {shorten(name, 80)!r} twice")
        if head[:4] != LOCAL_HEADER or member.header_offset != position:
            raise error(
                f"{where} holds bytes that belong to no array, before {shorten(name, 80)!r}"
            )
        found[name] = view[start : start + size]
        if len(found[name]) != size or zlib.crc32(found[name]) != member.CRC:
            raise error(f"{where}: {shorten(name, 80)!r} is damaged: its checksum is another")
        position = start + size
    if len(members) != count or position + directory != end:
        raise error(f"{where} holds bytes that belong to no array, before its directory")
    return found
