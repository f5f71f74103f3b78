"""Numpy's global generator as other packages reach it, with every draw recorded.

scikit-learn and scipy do not call `np.random.permutation`: they take the object behind it.
"""

from __future__ import annotations

from typing import Any, Callable  # Python 3.9 runs this file too


def make_recorded(generator: Any, record: Callable[[str, Any], Any]) -> Any:
    """Return an object that draws from a generator, and shares all of its state.

    Args:
        generator: numpy's global `RandomState`.
        record: gets the name and the method of a draw, and returns the recorded method.
    """
    base = type(generator)

    def delegate(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return methods[name](*args, **kwargs)

        method.__name__, method.__doc__ = name, getattr(base, name).__doc__
        return method

    # Each method is called on the generator itself, which keeps half of a pair of normal draws.
    methods = {
        name: record(name, getattr(generator, name))
        for name in dir(base)
        if not name.startswith("_") and callable(getattr(base, name))
    }
    special = {
        name: (lambda self, *args, name=name: getattr(generator, name)(*args))
        for name in ("__getstate__", "__setstate__", "__reduce__", "__repr__", "__str__")
    }
    values = {
        **{name: delegate(name) for name in methods},
        **special,
        "__module__": base.__module__,
    }
    recorded = type(base.__name__, (base,), values)
    return recorded(generator._bit_generator)
