"""Files that are there as a whole or not at all."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def write_atomic(path: Path, content: bytes) -> None:
    """Write to a temporary name beside ``path``, flush it to the disk, and rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def hash_file(path: Path) -> str:
    """Return "sha256:..." of a file's bytes."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
