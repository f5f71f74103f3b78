"""Any value of a user's script as plain values that canonical JSON can hold.

Settings and batches of a loop may hold anything: infinities, paths, dtypes, tensors, dataclasses,
objects. Describing one never raises, so that recording it never ends the script.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence, Set
from enum import Enum
from typing import Any

import numpy as np

from seedless.core.bounded_reading import shorten
from seedless.core.digests import canonical_json, digest_bytes, digest_each

MAX_DEPTH = 24  # of dicts, lists and objects within each other; what is deeper becomes text
MAX_VALUES = 100_000  # of one description; what is more becomes text
MAX_TEXT = 10_000  # characters; a longer text is replaced by its digest
_MAX_REPR = 500
_MAX_INTEGER = 2**63
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def describe_value(value: Any, *, open_objects: bool = False) -> Any:
    """Return a value as dicts with text keys, lists, text, numbers, booleans and None.

    Infinities and NaN become "inf", "-inf" and "nan"; paths, dtypes, devices, functions and classes
    their text; sets sorted lists; dataclasses, namespaces and named tuples dicts of their fields;
    tensors and arrays their dtype, shape and digest.

    Args:
        value: anything.
        open_objects: describe an object of another class by its attributes, as a batch needs it;
            by default it becomes its `repr` without addresses.

    Example:
        >>> describe_value({"rate": float("inf"), "folder": Path("data")})
        {'rate': 'inf', 'folder': 'data'}
    """
    return _Description(open_objects).describe(value, ())


def digest_structure(value: Any) -> str:
    """Return "sha256:..." of any nested structure of tensors, arrays, numbers and text."""
    return digest_bytes(canonical_json(_Description(True, math.inf).describe(value, ())))


class _Description:
    """Describes one value; counts what was described, so that an endless structure ends."""

    def __init__(self, open_objects: bool, max_values: float = MAX_VALUES) -> None:
        self.open_objects = open_objects
        self.left = max_values

    def describe(self, value: Any, parents: tuple[int, ...]) -> Any:
        """Return the description of a value that lies within the objects of these ids."""
        self.left -= 1
        if id(value) in parents:
            return "<a value that holds itself>"
        if self.left < 0 or len(parents) > MAX_DEPTH:
            return _describe_by_text(value)
        try:
            return self._describe_known(value, (*parents, id(value)))
        except Exception:  # the user's own class may raise anything here
            return _describe_by_text(value)

    def _describe_known(self, value: Any, parents: tuple[int, ...]) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return str(value)
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int):
            return int(value) if abs(value) < _MAX_INTEGER else _describe_text(hex(value))
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(float(value))
        if isinstance(value, complex):
            return str(value)
        if isinstance(value, str | os.PathLike):
            return _describe_text(os.fspath(value))
        if isinstance(value, bytes | bytearray | memoryview):
            return {"bytes": digest_bytes(bytes(value))}
        if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
            return f"{value.__module__}.{value.__qualname__}"
        if _is_tensor_or_array(value):
            return _describe_tensor(value)
        return self._describe_structure(value, parents)

    def _describe_structure(self, value: Any, parents: tuple[int, ...]) -> Any:
        if isinstance(value, Mapping):
            return self._describe_pairs(value.items(), parents)
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
            return self._describe_pairs(((n, getattr(value, n, None)) for n in names), parents)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._describe_pairs(zip(value._fields, value, strict=False), parents)
        if isinstance(value, Sequence):
            return [self.describe(item, parents) for item in value]
        if isinstance(value, Set):
            return sorted((self.describe(item, parents) for item in value), key=canonical_json)
        if self.open_objects or type(value).__name__ in ("Namespace", "SimpleNamespace"):
            return self._describe_pairs(vars(value).items(), parents)
        return _describe_by_text(value)

    def _describe_pairs(self, pairs: Any, parents: tuple[int, ...]) -> dict[str, Any]:
        """Return a dict with keys as text; two keys of one text, such as 1 and "1", both stay."""
        described: dict[str, Any] = {}
        for key, item in pairs:
            text = _describe_text(key if isinstance(key, str) else str(key))
            if text in described:
                text = f"{text} ({type(key).__name__})"
            described[text] = self.describe(item, parents)
        return described


def _is_tensor_or_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (hasattr(value, "detach") and hasattr(value, "dtype"))


def _describe_tensor(value: Any) -> Any:
    """Return dtype, shape and digest; an array of objects or text by its elements."""
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biufc":
        return describe_value(value.tolist(), open_objects=True)
    if getattr(value, "is_nested", False):
        return [_describe_tensor(part) for part in value.unbind()]
    local: Callable[[], Any] | None = getattr(value, "to_local", None)
    plain = value if local is None else local()
    if getattr(plain, "is_sparse", False):
        plain = plain.coalesce().to_dense()
    dtype = str(value.dtype).removeprefix("torch.")
    return {
        "dtype": dtype,
        "shape": [int(size) for size in plain.shape],
        "digest": f"sha256:{digest_each({'value': plain})['value']}",
    }


def _describe_text(text: str) -> str:
    """Return a text that UTF-8 can hold; a very long one as its digest."""
    content = text.encode("utf-8", "backslashreplace")
    return digest_bytes(content) if len(text) > MAX_TEXT else content.decode()


def _describe_by_text(value: Any) -> str:
    """Return the `repr` of an object without addresses, or the name of its class."""
    try:
        return _describe_text(shorten(_ADDRESS.sub("", repr(value)), _MAX_REPR))
    except Exception:  # the user's own class may raise anything here
        return f"<{type(value).__module__}.{type(value).__qualname__}>"
