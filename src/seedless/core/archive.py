"""Unpack an archive that someone else made, as if it were hostile: .zip, .tar.gz and .tar.xz.

`unpack` believes nothing that an archive declares. It writes plain files (and folders) with names
that stay inside the folder. It refuses links, devices, absolute paths, ``..``, a name that occurs
twice, huge headers, and more bytes than `Rules` allow, counted while they are read. Files go to a
temporary folder, which the caller renames once it has found the contents to be good, so a refusal
leaves nothing behind.
"""

import errno
import gzip
import lzma
import math
import re
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal, NamedTuple

from seedless.core.bounded_reading import open_plain_file, shorten
from seedless.core.errors import SeedlessError, StorageError
from seedless.core.zip_files import check_zip_directory

Kind = Literal["zip", "tar.gz", "tar.xz"]
MAX_MEMBERS = 200_000
MAX_DIRECTORY_BYTES = 32 * 2**20  # of a zip file; it is read at once
MAX_NAME_CHARACTERS = 255
MAX_FOLDERS = 10  # around a member: each of their names is kept
_CHUNK = 2**20
_ENCRYPTED, _UTF8_NAME = 0x1, 0x800  # flags of a zip entry
# Failures of this machine. Any other (a name that is too long, a negative position) can come from
# the archive, which is refused then.
_OWN_DISK = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
}
# What the standard library's readers raise on a damaged archive.
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    OverflowError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True)
class Rules:
    """What an archive may hold, and how a refusal is reported.

    Attributes:
        error: the type of error that a refusal raises.
        remedy: what to do about a damaged archive; the end of the error message.
        max_bytes: how many bytes an archive may unpack to, whatever its own size.
        max_ratio: how many bytes it may unpack to for each byte of its own.
        free_bytes: the ratio is not applied below this many bytes.
        max_members: how many files and folders it may hold.
        strict: the archive was written by this package: it holds no folders, names are written
            in one way (not ``a/./b``), and the files of a zip archive are not compressed.
    """

    error: type[SeedlessError]
    remedy: str
    max_bytes: int = 16 * 2**30
    max_ratio: float = math.inf
    free_bytes: int = 0
    max_members: int = MAX_MEMBERS
    strict: bool = True


class Member(NamedTuple):
    """One file or folder of an archive. A folder has no stream."""

    name: str
    size: int
    stream: IO[bytes] | None


@contextmanager
def unpack(archive: Path, kind: Kind, parent: Path, rules: Rules) -> Iterator[Path]:
    """Unpack ``archive`` into a temporary folder inside ``parent``; give it to a `with` block.

    The caller renames the folder, or what it needs of it; the rest is removed.
    """
    if not archive.is_file():
        raise rules.error(f"no file at {str(archive)!r}")
    try:
        with tempfile.TemporaryDirectory(prefix=".seedless.", dir=parent) as temporary:
            # A temporary folder is private; one made inside it has the usual permissions.
            folder = Path(temporary) / "unpacked"
            folder.mkdir()
            try:
                _write_members(archive, kind, folder, rules)
            except rules.error:
                raise
            except _DAMAGE as error:
                raise rules.error(
                    f"{archive} is no {kind} file, or is damaged or cut short ({error}); "
                    f"{rules.remedy}"
                ) from error
            yield folder
    except OSError as error:
        reason = f"cannot unpack {archive} in {parent}: {error.strerror or error}"
        if error.errno in _OWN_DISK:
            raise StorageError(f"{reason}; this says nothing about the archive") from error
        raise rules.error(reason) from error


def _write_members(archive: Path, kind: Kind, folder: Path, rules: Rules) -> None:
    # [Step 1] Fix how many bytes may be unpacked, from the size of the archive itself.
    by_ratio = max(rules.free_bytes, rules.max_ratio * archive.stat().st_size)
    check = _Check(archive, rules, int(min(rules.max_bytes, by_ratio)))
    # [Step 2] Take the members one by one; the reader has checked kind and declared size.
    members = _read_zip(archive, check, rules) if kind == "zip" else _read_tar(archive, kind, check)
    written = 0
    for number, member in enumerate(members):
        if number >= rules.max_members:
            raise check.refuse(f"holds more than {rules.max_members:,} members")
        # [Step 3] Check the name before anything is created under it.
        path = folder / check.name(member.name, is_folder=member.stream is None)
        if member.stream is None:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        # [Step 4] Copy, counting what is really there and not what is declared.
        start = written
        with open(path, "xb") as file:
            while chunk := member.stream.read(_CHUNK):
                written += len(chunk)
                check.total(written)
                file.write(chunk)
        if written - start != member.size:
            raise ValueError(
                f"{member.name!r} should have {member.size} bytes and has {written - start}"
            )


class _Check:
    """The rules applied to one archive: to its names, kinds of members, and number of bytes."""

    def __init__(self, archive: Path, rules: Rules, allowed: int = 0) -> None:
        self.strict, self.error = rules.strict, rules.error
        self._archive, self._allowed = archive, allowed
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def refuse(self, why: str) -> SeedlessError:
        """Return the error for a member that breaks a rule."""
        return self.error(f"{self._archive} {why}; refused")

    def total(self, count: int) -> None:
        """Refuse more bytes than are allowed."""
        if count > self._allowed:
            raise self.refuse(
                f"would unpack to more than {self._allowed:,} bytes, and no honest archive of its "
                "size does"
            )

    def kind(self, name: str, ok: bool) -> None:
        """Refuse a member that is neither a file nor, where folders are allowed, a folder."""
        if not ok:
            kinds = "a plain file" if self.strict else "a plain file or a folder"
            raise self.refuse(f"holds {name!r}, which is not {kinds}")

    def name(self, name: str, *, is_folder: bool = False) -> str:
        """Return ``name`` without empty parts and ``.``, if it is safe to write there."""
        if len(name) > MAX_NAME_CHARACTERS or name.count("/") > MAX_FOLDERS:
            raise self.refuse(
                f"holds {shorten(name, 80)!r}, a name of {len(name):,} characters and "
                f"{name.count('/'):,} folders; at most {MAX_NAME_CHARACTERS} and {MAX_FOLDERS} are "
                "unpacked"
            )
        parts = [part for part in name.split("/") if part not in ("", ".")]
        plain = "/".join(parts)
        if (
            (not plain and not is_folder)
            or (self.strict and plain != name)
            or name.startswith("/")
            or ".." in parts
            or "\\" in name
            or re.match("[A-Za-z]:", name)
            or not name.isprintable()  # a line break, a NUL, half of a surrogate pair
        ):
            raise self.refuse(f"holds {name!r}, a name that could lead out of its folder")
        if plain in self._files and not is_folder:
            raise self.refuse(f"holds {name!r} twice")
        folders = {str(parent) for parent in PurePosixPath(plain).parents}
        (folders if is_folder else self._files).add(plain)
        self._folders |= folders
        if both := self._files & (folders | ({plain} & self._folders)):
            raise self.refuse(f"holds {both.pop()!r} both as a file and as a folder")
        return plain


def check_names(names: Iterable[str], archive: Path, rules: Rules) -> None:
    """Refuse names that `unpack` would refuse, before an archive is written."""
    check = _Check(archive, rules)
    for name in sorted(names):
        check.name(name)


def _read_zip(archive: Path, check: _Check, rules: Rules) -> Iterator[Member]:
    """Yield the members of a zip file, if their declared sizes together are allowed."""
    kinds, methods, flags = {0, stat.S_IFREG}, {zipfile.ZIP_STORED}, ~_UTF8_NAME
    if not check.strict:
        kinds, methods, flags = kinds | {stat.S_IFDIR}, methods | {zipfile.ZIP_DEFLATED}, _ENCRYPTED
    with open_plain_file(archive, follow_links=True, error=check.error) as stream:
        check_zip_directory(stream, str(archive), MAX_DIRECTORY_BYTES, error=check.error)
        size = stream.seek(0, 2)
    with zipfile.ZipFile(archive) as file:
        if len(file.infolist()) > rules.max_members:  # before the first of them is written
            raise check.refuse(f"holds more than {rules.max_members:,} members")
        total = sum(info.file_size for info in file.infolist())
        check.total(total)
        if check.strict and total > size:  # nothing is compressed, so they must lie over each other
            raise check.refuse(f"has {size:,} bytes, and files of {total:,} bytes in it")
        for info in file.infolist():
            name = info.orig_filename  # before zipfile cuts it at a NUL
            kind = stat.S_IFMT(info.external_attr >> 16)
            check.kind(name, kind in kinds and not (check.strict and info.is_dir()))
            if info.is_dir():
                yield Member(name, 0, None)
                continue
            if info.compress_type not in methods or info.flag_bits & flags:
                raise check.refuse(
                    f"holds {name!r}, which is compressed, encrypted or streamed in a way that is "
                    "not supported"
                )
            with file.open(info) as stream:
                yield Member(name, info.file_size, stream)


def _read_tar(archive: Path, kind: Kind, check: _Check) -> Iterator[Member]:
    """Yield the members of a compressed tar file in one pass, reading it to its very end."""
    kinds = {tarfile.REGTYPE, tarfile.AREGTYPE} | (set() if check.strict else {tarfile.DIRTYPE})
    declared = 0
    with gzip.open(archive) if kind == "tar.gz" else lzma.open(archive) as unzipped:
        stream = _ForwardStream(unzipped, check)
        # `_ForwardStream` reads and seeks as far as tarfile needs; its type asks for a whole file.
        with tarfile.open(fileobj=stream, mode="r:") as file:  # type: ignore[call-overload]
            for member in file:
                check.kind(member.name, member.type in kinds and not member.issparse())
                declared += member.size
                check.total(declared)
                yield Member(member.name, member.size, file.extractfile(member))
        while stream.read(_CHUNK):
            pass  # the checksum is at the end: a file that was cut short is noticed there


class _ForwardStream:
    """A stream for tarfile that only goes forward, in small steps, to a limit.

    tarfile reads a header of any declared size into memory, and follows sizes backwards.
    """

    def __init__(self, stream: gzip.GzipFile | lzma.LZMAFile, check: _Check) -> None:
        self._stream, self._check = stream, check
        self._position = 0

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes."""
        if not 0 <= size <= _CHUNK:
            raise self._check.refuse(f"has a header of {size} bytes")
        data = self._stream.read(size)
        self._position += len(data)
        self._check.total(self._position - 2**10 * MAX_MEMBERS)  # without headers and padding
        return data

    def tell(self) -> int:
        """Return the position in the uncompressed stream."""
        return self._position

    def seek(self, position: int) -> None:
        """Go forward to ``position``, or to the end where there is less."""
        if position < self._position:
            raise self._check.refuse("has a size below zero")
        while self._position < position:
            if not self.read(min(_CHUNK, position - self._position)):
                break
