"""For an experiment: arrays of numpy's that have no content get one, the same in each run."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any


def fill_empty_arrays(module: ModuleType) -> None:
    """Let `np.empty` and `np.empty_like` write zeros."""
    numpy: Any = module
    for name in ("empty", "empty_like"):
        setattr(numpy, name, _fill(getattr(numpy, name)))


def _fill(make: Any) -> Any:
    @functools.wraps(make)
    def filled(*args: Any, **kwargs: Any) -> Any:
        array = make(*args, **kwargs)
        if not array.dtype.hasobject:  # those are empty already
            array.fill(0)
        return array

    return filled
