"""Unpack .tar.gz and .zip files that came from elsewhere, trusting nothing they say.

Only plain files and folders are written, with names that stay inside. Links, devices, absolute
paths, ``..``, a file twice, and more bytes than an honest archive holds are refused. The archive
is unpacked next to its destination and renamed when it is whole, so a refusal leaves nothing.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from seedless.core.errors import DataError

LIMIT = 16 * 2**30  # bytes unpacked, whatever the archive's size
RATIO = 100  # bytes unpacked a byte of archive; recorded signals and images stay below 10 ...
FLOOR = 64 * 2**20  # ... and less than this harms nobody
MEMBERS = 200_000
_CHUNK = 2**20
# What the standard library's readers raise on a damaged archive.
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    OverflowError,
    RuntimeError,
    ValueError,
)
_TAR, _ZIP = (".tar.gz", ".tgz"), (".zip",)


class Member(NamedTuple):
    """One file or folder of an archive. A folder has no stream."""

    name: str
    size: int
    stream: IO[bytes] | None


def extract(archive: str | Path, folder: str | Path, *, limit: int = LIMIT) -> Path:
    """Unpack ``archive`` into ``folder``, which must not be there yet; return the folder.

    Where all the archive holds is one folder called like ``folder``, that one becomes it.
    """
    archive, folder = Path(archive), Path(folder)
    name = archive.name.lower()
    if not name.endswith(_TAR + _ZIP):
        raise DataError(f"{archive}: expected a {', '.join(_TAR + _ZIP)} file")
    if os.path.lexists(folder):
        raise DataError(f"{folder} is there already; remove it to unpack {archive.name} again")
    temporary = None
    try:
        allowed = min(limit, max(FLOOR, RATIO * archive.stat().st_size))
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        inside = temporary / "unpacked"
        inside.mkdir()
        read = _read_tar if name.endswith(_TAR) else _read_zip
        _write_all(read(archive, allowed), inside, archive, allowed)
        only = inside / folder.name
        os.rename(only if os.listdir(inside) == [folder.name] and only.is_dir() else inside, folder)
    except DataError:
        raise
    except _DAMAGE as error:
        raise DataError(
            f"{archive} is damaged or cut short ({error}); remove it and fetch it again"
        ) from error
    except OSError as error:
        raise DataError(
            f"cannot unpack {archive} into {folder}: {error.strerror or error}"
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _write_all(members: Iterator[Member], folder: Path, archive: Path, allowed: int) -> None:
    """Write every member below ``folder``, counting what is really there."""
    written = 0
    for number, member in enumerate(members):
        if number >= MEMBERS:
            raise DataError(f"{archive} holds more than {MEMBERS:,} members; refused")
        path = folder.joinpath(*_parts(member.name, archive))
        if member.stream is None:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path):
            raise DataError(f"{archive} holds {member.name!r} twice; refused")
        start = written
        with open(path, "xb") as file:
            while chunk := member.stream.read(_CHUNK):
                written += len(chunk)
                _check_total(written, archive, allowed)
                file.write(chunk)
        if written - start != member.size:
            raise DataError(
                f"{archive}: {member.name!r} should be {member.size} bytes and is "
                f"{written - start}; remove the archive and fetch it again"
            )


def _parts(name: str, archive: Path) -> list[str]:
    """Return the parts of a member's path, or refuse a name that could lead elsewhere."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    unprintable = any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in name)
    if (
        not name
        or name.startswith("/")
        or ".." in parts
        or "\\" in name
        or unprintable
        or re.match("[A-Za-z]:", name)
    ):
        raise DataError(f"{archive} holds {name!r}, a path that could leave its folder; refused")
    return parts


def _check_total(total: int, archive: Path, allowed: int) -> None:
    if total > allowed:
        raise DataError(
            f"{archive} would unpack to more than {allowed:,} bytes, which no dataset of its size "
            "does; refused"
        )


def _refuse_kind(archive: Path, name: str) -> DataError:
    return DataError(f"{archive} holds {name!r}, which is neither a file nor a folder; refused")


def _read_zip(archive: Path, allowed: int) -> Iterator[Member]:
    """Yield the members of a .zip file, once their declared sizes together are allowed."""
    with zipfile.ZipFile(archive) as file:
        _check_total(sum(info.file_size for info in file.infolist()), archive, allowed)
        for info in file.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refuse_kind(archive, info.filename)
            if info.is_dir():
                yield Member(info.filename, 0, None)
                continue
            if info.flag_bits & 1 or info.compress_type not in (
                zipfile.ZIP_STORED,
                zipfile.ZIP_DEFLATED,
            ):
                raise DataError(f"{archive}: {info.filename!r} is encrypted or oddly packed")
            with file.open(info) as stream:
                yield Member(info.filename, info.file_size, stream)


def _read_tar(archive: Path, allowed: int) -> Iterator[Member]:
    """Yield the members of a .tar.gz file in one pass, reading it to its very end."""
    declared = 0

    def check(position: int) -> None:
        _check_total(position, archive, allowed + 2**10 * MEMBERS)  # headers and padding too

    with gzip.open(archive, "rb") as unzipped:
        stream = _Forward(unzipped, archive, check)
        # `_Forward` reads and seeks as far as tarfile needs; its type asks for a whole file.
        with tarfile.open(fileobj=stream, mode="r:") as file:  # type: ignore[call-overload]
            for member in file:
                if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE) or (
                    member.issparse()
                ):
                    raise _refuse_kind(archive, member.name)
                declared += member.size
                _check_total(declared, archive, allowed)
                yield Member(member.name, member.size, file.extractfile(member))
        while stream.read(_CHUNK):
            pass  # gzip keeps its checksum at the end: a file cut short is noticed there


class _Forward:
    """A stream for tarfile that only goes forward, in small steps, and not without end.

    tarfile reads a header of any declared size into memory, and follows sizes backwards.
    """

    def __init__(self, stream: gzip.GzipFile, archive: Path, check: Callable[[int], None]) -> None:
        self._stream, self._archive, self._check = stream, archive, check
        self._position = 0

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes."""
        if not 0 <= size <= _CHUNK:
            raise DataError(f"{self._archive} has a header of {size} bytes; refused")
        data = self._stream.read(size)
        self._position += len(data)
        self._check(self._position)
        return data

    def tell(self) -> int:
        """Return the position in the unpacked stream."""
        return self._position

    def seek(self, position: int) -> None:
        """Go forward to ``position``, or to the end where there is less."""
        if position < self._position:
            raise DataError(f"{self._archive} has a size below zero; refused")
        while self._position < position:
            if not self.read(min(_CHUNK, position - self._position)):
                break
