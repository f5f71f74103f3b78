"""Where downloads, decoded datasets and compiled kernels are cached."""

import os
from pathlib import Path


def find_cache_folder() -> Path:
    """Return SEEDLESS_CACHE where it is set, else the user's cache folder: ~/.cache/seedless.

    The second follows the system's rules: XDG_CACHE_HOME on Linux, ~/Library/Caches on macOS.
    Nothing is created. Where no home folder is known, this is a RuntimeError.
    """
    if chosen := os.environ.get("SEEDLESS_CACHE"):
        return Path(chosen).expanduser()
    try:
        from platformdirs import user_cache_dir
    except ImportError:  # a GPU machine with little more than torch
        home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        return Path(home).expanduser() / "seedless"
    # Without a home folder platformdirs returns "~/.cache/seedless" as it is.
    return Path(user_cache_dir("seedless", appauthor=False)).expanduser()
