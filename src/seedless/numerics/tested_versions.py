"""The releases of torch with which seedless was tested. A newer one works, with a warning."""

import warnings
from functools import lru_cache

OLDEST_TESTED_TORCH, NEWEST_TESTED_TORCH = (2, 11), (2, 15)


def read_release(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version.

    >>> read_release("2.13.0+cpu")
    (2, 13)
    """
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


@lru_cache(maxsize=1)
def warn_about_newer_torch() -> None:
    """Warn once in a process if torch is newer than what was tested."""
    import torch

    found = str(torch.__version__)
    if read_release(found) > NEWEST_TESTED_TORCH:
        newest = ".".join(map(str, NEWEST_TESTED_TORCH))
        warnings.warn(
            f"torch {found} is newer than {newest}, the newest release tested with seedless; "
            "`seedless portable check` compares its arithmetic with the committed digests",
            stacklevel=3,
        )
