"""The files of the user's own code that a process has imported."""

from __future__ import annotations

import hashlib
import os
import sys
from types import ModuleType
from typing import Any

from .user_lines import is_installed

MAX_SOURCES = 5000
MAX_BYTES = 1 << 24  # of one file


def describe_sources(script: str | None) -> dict[str, Any]:
    """Return the line with every imported source outside the library and the packages."""
    paths = {
        os.path.abspath(file)
        for file in [script, *(getattr(each, "__file__", None) for each in _list_modules())]
        if isinstance(file, str)
        if file.endswith(".py") and not is_installed(file) and os.path.isfile(file)
    }
    digests = [(path, _digest(path)) for path in sorted(paths)[:MAX_SOURCES]]
    return {
        "kind": "sources",
        "files": [{"path": path, "sha256": digest} for path, digest in digests],
    }


def _list_modules() -> list[ModuleType]:
    return list(sys.modules.values())


def _digest(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(MAX_BYTES)).hexdigest()
    except OSError:
        return None
