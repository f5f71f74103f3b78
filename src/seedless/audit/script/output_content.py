"""Digests of what is in a weights file, without the times and the order that archives hold.

Two files of the same tensors can differ in bytes: a zip file, which is what `torch.save` writes,
holds a time for each member. Where their contents agree, nothing that was computed differs.
"""

import hashlib
import struct
import zipfile
import zlib
from pathlib import Path

from seedless.core.archive import MAX_DIRECTORY_BYTES
from seedless.core.bounded_reading import open_plain_file
from seedless.core.digests import canonical_json, digest
from seedless.core.errors import RunError
from seedless.core.tensor_files import load_tensors
from seedless.core.zip_files import LOCAL_HEADER, check_zip_directory

MAX_UNPACKED_BYTES = 16 * 2**30
_CHUNK = 2**20
# What the standard library raises on a damaged archive, or one of a kind that it cannot read.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError),
    *(RuntimeError, ValueError, OverflowError),
)


def digest_content(path: Path) -> str | None:
    """Return "sha256:..." of what a weights file holds; None for a file of another kind.

    Of a .safetensors file the tensors count, and not its metadata. Of a zip file the name and the
    bytes of each member count, in the order of their names, and neither times nor compression.

    Example:
        >>> digest_content(Path("model.pt"))
    """
    try:
        if path.suffix == ".safetensors":
            return digest(load_tensors(path)[0])
        with open_plain_file(path) as file:
            is_zip = file.read(4) == LOCAL_HEADER
            if is_zip:
                check_zip_directory(file, str(path), MAX_DIRECTORY_BYTES)
        return _digest_zip(path) if is_zip else None
    except (RunError, *_DAMAGE):
        return None  # it is what its bytes are, and these have a digest


def _digest_zip(path: Path) -> str | None:
    """Return the digest of the members of a zip file; None where they are beyond the limit."""
    hasher, unpacked = hashlib.sha256(), 0
    with zipfile.ZipFile(path) as archive:
        for info in sorted(archive.infolist(), key=lambda info: info.filename):
            head = {"name": info.filename, "size": info.file_size}
            hasher.update(canonical_json(head) + b"\n")
            with archive.open(info) as stream:
                while chunk := stream.read(_CHUNK):
                    unpacked += len(chunk)
                    if unpacked > MAX_UNPACKED_BYTES:
                        return None
                    hasher.update(chunk)
    return f"sha256:{hasher.hexdigest()}"
