"""Compiled kernels, kept from one process to the next."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from seedless.core.cache_location import find_cache_folder


def keep(known: bytes, suffix: str, make: Callable[[Path], None]) -> Path:
    """Return the file made from what is ``known``, made now by ``make`` or before.

    It is written beside its place and moved there: other processes may be doing the same.
    """
    folder = find_home()
    path = folder / f"kernels-{hashlib.sha256(known).hexdigest()[:16]}{suffix}"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=folder) as place:
            made = Path(place) / f"kernels{suffix}"
            make(made)
            os.replace(made, path)
    return path


@lru_cache(maxsize=1)
def find_home() -> Path:
    """Return a folder that can be written: in SEEDLESS_CACHE or the user's cache, or a new one."""
    try:
        folder = find_cache_folder() / "kernels"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # the second where nobody's home is known
        return Path(tempfile.mkdtemp(prefix="seedless-kernels-"))
