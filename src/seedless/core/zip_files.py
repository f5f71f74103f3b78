"""The layout of zip files: what must be checked beside what zipfile checks.

A zip file is a sequence of files, each after its local header, and then the directory that lists
them. zipfile reads the directory at once, whatever its size, and ignores bytes that belong to no
file. Format: APPNOTE.TXT of PKWARE, section 4.3.
"""

import os
import struct
import zipfile
from pathlib import Path
from typing import IO

from seedless.core.errors import RunError, SeedlessError

# The parts of a zip file: how each begins, and its size without names and contents. The end record
# says where the directory is. A large file has a second one of 64 bits before it, and a locator
# that points to that.
LOCAL_HEADER, LOCAL_HEADER_BYTES = b"PK\x03\x04", 30
END, END_BYTES = b"PK\x05\x06", 22
LOCATOR, LOCATOR_BYTES = b"PK\x06\x07", 20
END_64_BYTES = 56
_DIRECTORY_ENTRY_BYTES = 46
_CHECKSUM = 14  # where it lies in a local header, before the two sizes
_EXTRA_LENGTH = 28  # where the length of the extra field lies in a local header


def check_zip_directory(
    file: IO[bytes], where: str, max_bytes: int, *, error: type[SeedlessError] = RunError
) -> None:
    """Refuse a zip file whose directory has more than ``max_bytes``; zipfile reads it at once.

    That a file is no zip file at all is left to zipfile to say.
    """
    # [Step 1] Find the end record as zipfile does: at the very end, else before a comment.
    size = file.seek(0, 2)
    file.seek(max(0, size - END_BYTES - 2**16 - LOCATOR_BYTES - END_64_BYTES))
    tail = file.read()
    place = len(tail) - END_BYTES
    if not tail[max(0, place) :].startswith(END):
        place = tail.rfind(END)
    file.seek(0)
    if place < 0:
        return
    # [Step 2] Take the largest size that any record declares: this one, and above 4 GiB the one
    # that a locator points to or that lies before it.
    declared = [int.from_bytes(tail[place + 12 : place + 16], "little")]
    locator = tail[max(0, place - LOCATOR_BYTES) : place]
    if locator.startswith(LOCATOR):
        declared = [size for size in declared if size < 2**32 - 1]
        file.seek(min(int.from_bytes(locator[8:16], "little"), size))
        before = tail[max(0, place - LOCATOR_BYTES - END_64_BYTES) : place - LOCATOR_BYTES]
        for record in (before, file.read(END_64_BYTES)):
            declared.append(int.from_bytes(record[40:48], "little"))
        file.seek(0)
    if max(declared) > max_bytes:
        raise error(
            f"{where} declares a directory of {max(declared):,} bytes; at most {max_bytes:,} are "
            "read"
        )


def has_other_bytes(path: Path) -> bool:
    """Whether a zip file of stored files has bytes that its directory does not account for.

    Such bytes lie before, between or after the files, or are headers with other sizes, checksums or
    counts than the directory's.
    """
    place = directory = 0
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        members = archive.infolist()
        # [Step 1] Each file follows the one before it. A program that reads in one pass believes
        # the copy of checksum and sizes in the local header, so they must be the directory's.
        for info in members:
            file.seek(info.header_offset + _CHECKSUM)
            checksum, *sizes = struct.unpack("<III", file.read(12))
            file.seek(info.header_offset + _EXTRA_LENGTH)
            extra = int.from_bytes(file.read(2), "little")  # 0, or 20 for sizes of 64 bits
            expected = [info.file_size, info.file_size] if not extra else 2 * [2**32 - 1]
            if info.header_offset != place or extra not in (0, 20) or info.comment:
                return True
            if checksum != info.CRC or sizes != expected:
                return True
            name = len(info.orig_filename.encode())
            place += LOCAL_HEADER_BYTES + name + extra + info.file_size
            directory += _DIRECTORY_ENTRY_BYTES + name + len(info.extra)
        # [Step 2] Then come the directory and its end record, which counts the files twice.
        rest = path.stat().st_size - place - directory
        file.seek(-END_BYTES, os.SEEK_END)
        counts = struct.unpack("<HH", file.read(12)[8:])
        same = {*counts} == {min(len(members), 2**16 - 1)}
        ends = (END_BYTES, END_BYTES + END_64_BYTES + LOCATOR_BYTES)
        return archive.start_dir != place or rest not in ends or not same
