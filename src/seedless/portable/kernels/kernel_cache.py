"""Compiled kernels, cached on disk from one process to the next."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from seedless.core.cache_location import find_cache_folder


def find_or_build(key: bytes, suffix: str, build: Callable[[Path], None]) -> Path:
    """Return the file that belongs to ``key``, built now by ``build`` or in an earlier process.

    It is built under another name and renamed: other processes may be building the same file.
    """
    folder = find_folder()
    path = folder / f"kernels-{hashlib.sha256(key).hexdigest()[:16]}{suffix}"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            built = Path(temporary) / f"kernels{suffix}"
            build(built)
            os.replace(built, path)
    return path


@lru_cache(maxsize=1)
def find_folder() -> Path:
    """Return a folder that can be written: in the cache of this package, or else a new one."""
    try:
        folder = find_cache_folder() / "kernels"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: no home folder is known
        return Path(tempfile.mkdtemp(prefix="seedless-kernels-"))
