"""Digests of a user's functions: source text, defaults, closure values and the globals they use.

A function that decides bits (a loss, an optimizer, a learning rate, a collate function, a key) is
part of what a run began with. Its digest is that of a description in plain values:

- a function: its source text, its defaults, its closure values, and the globals that it uses;
- `functools.partial` and bound methods: what is called, and the values that are bound;
- a class, or an object such as a loss module: the source of the class, and the object's values;
- code of an installed package: its source text; the globals that it uses are not followed;
- values: numbers, text, tuples, lists, dicts, sets, arrays, tensors, dtypes.

What has no such description is refused, so that no value that decides bits stays unrecorded.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import math
import os
import random
import sysconfig
import textwrap
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from torch import nn

from seedless.core.digests import digest, digest_each, digest_value
from seedless.core.errors import ConfigError
from seedless.proof.callable_claims import MAX_NAME_CHARACTERS

MAX_VALUES = 100_000  # of one description

_INSTALLED = tuple(
    f"{Path(sysconfig.get_path(name)).resolve()}{os.sep}"
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
# An installed package need not be in this environment's own folder: `pip install --user`, and an
# environment that sees the packages of the system, have others.
_INSTALLED_PARTS = {"site-packages", "dist-packages"}
_MODULE_FIELDS = frozenset(vars(nn.Module()))  # what every module has, its tensors among them
_WRITTEN_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that was made while Python runs
_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
_BUILTIN = types.BuiltinFunctionType | types.MethodDescriptorType | types.WrapperDescriptorType


def describe_callables(functions: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return role, name and digest of each function, sorted by role; None stands for no function.

    Example:
        >>> describe_callables({"loss": my_loss, "key": None})
        [{'role': 'loss', 'name': 'my_loss', 'digest': 'sha256:...'}]
    """
    return [
        {
            "role": role,
            "name": _name(function)[:MAX_NAME_CHARACTERS],
            "digest": digest_callable(role, function),
        }
        for role, function in sorted(functions.items())
        if function is not None
    ]


def digest_callable(role: str, function: Any) -> str:
    """Return "sha256:..." of a function, or raise ConfigError where a value of it has no digest."""
    if isinstance(function, _BUILTIN):
        raise ConfigError(
            f"{role}={function.__name__} is built in and has no source text that a receipt could "
            f"name; wrap it: def my_{role}(...): return {function.__name__}(...)"
        )
    return digest_value(_Description(role).describe(function, _name(function)))


class _Description:
    """Describes one function of a user; counts what was described, so that it ends."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.left = MAX_VALUES
        self.seen: dict[int, int] = {}
        self.kept: list[Any] = []  # keeps what was described alive, so that no id is used twice

    def describe(self, value: Any, where: str) -> Any:
        """Return a value as plain values; ``where`` names it in a refusal."""
        self.left -= 1
        if self.left < 0:
            raise self.refuse(where, value, "it has too many values")
        plain = _describe_plain(value)
        if plain is not None:
            return plain
        if id(value) in self.seen:
            return {"described before": self.seen[id(value)]}
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)
        return self._describe_structure(value, where)

    def refuse(self, where: str, value: Any, reason: str) -> ConfigError:
        """Return the error for a value that has no digest."""
        return ConfigError(
            f"{self.role}: {where} is a {type(value).__name__}, and {reason}, so a receipt cannot "
            "say what it was. Use numbers, text, arrays and functions with source text, or make it "
            "inside the function"
        )

    def _describe_structure(self, value: Any, where: str) -> Any:
        if isinstance(value, dict):
            return {"dict": [self._describe_pair(item, where) for item in value.items()]}
        if isinstance(value, list | tuple):
            items = [self.describe(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return {type(value).__name__: items}
        if isinstance(value, set | frozenset):
            return {"set": sorted(digest_value(self.describe(item, where)) for item in value)}
        if isinstance(value, types.ModuleType):
            return {"module": value.__name__, "version": str(getattr(value, "__version__", ""))}
        if isinstance(value, functools.partial):
            bound = (value.func, value.args, value.keywords)
            return {"partial": [self.describe(item, where) for item in bound]}
        if isinstance(value, types.MethodType):
            bound_to = [value.__func__, value.__self__]
            return {"method": [self.describe(item, where) for item in bound_to]}
        if isinstance(value, types.FunctionType):
            return self._describe_function(value, where)
        if isinstance(value, _BUILTIN):
            return {"built in": f"{value.__module__ or ''}.{value.__qualname__}"}
        if isinstance(value, type):
            return self._describe_class(value, where)
        return self._describe_object(value, where)

    def _describe_pair(self, item: tuple[Any, Any], where: str) -> list[Any]:
        return [self.describe(item[0], where), self.describe(item[1], f"{where}[{item[0]!r}]")]

    def _describe_function(self, function: types.FunctionType, where: str) -> dict[str, Any]:
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
        described: dict[str, Any] = {
            "function": function.__qualname__,
            "source": self._read_source(function, where),
            "defaults": [self.describe(item, f"a default of {where}") for item in defaults],
            "closure": {},
            "globals": {},
        }
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                value = cell.cell_contents
            except ValueError:  # a variable that has no value yet
                continue
            described["closure"][name] = self.describe(value, f"{name!r}, which {where} uses,")
        if not _is_installed(function):
            for name in sorted({*_list_globals(function.__code__)} & {*function.__globals__}):
                value = function.__globals__[name]
                described["globals"][name] = self.describe(value, f"{name!r}, which {where} uses,")
        return described

    def _describe_class(self, kind: type, where: str) -> dict[str, Any]:
        described: dict[str, Any] = {"class": f"{kind.__module__}.{kind.__qualname__}"}
        if not kind.__flags__ & _WRITTEN_IN_PYTHON:
            return described
        described["source"] = self._read_source(kind, where)
        if not _is_installed(kind):
            described["bases"] = [self.describe(base, where) for base in kind.__bases__]
            # torch replaces the `step` of an optimizer's class by a function around it.
            found = map(inspect.unwrap, filter(inspect.isfunction, vars(kind).values()))
            methods = [method for method in found if not _is_installed(method)]
            used = {name: method for method in methods for name in _list_globals(method.__code__)}
            described["globals"] = {
                name: self.describe(method.__globals__[name], f"{name!r}, which {where} uses,")
                for name, method in sorted(used.items())
                if name in method.__globals__ and method.__globals__[name] is not kind
            }
        return described

    def _describe_object(self, value: Any, where: str) -> dict[str, Any]:
        if isinstance(value, _GENERATORS):
            raise self.refuse(where, value, "it draws random numbers")
        fields = getattr(value, "__dict__", None)
        if fields is None or type(value).__module__ in ("_io", "io", "threading", "logging"):
            raise self.refuse(where, value, "its values cannot be read")
        described = {"object": self.describe(type(value), where)}
        if isinstance(value, nn.Module):
            described["tensors"] = digest(value)
            described["modules"] = {
                name: self.describe(child, f"{where}.{name}")
                for name, child in value.named_children()
            }
            fields = {name: item for name, item in fields.items() if name not in _MODULE_FIELDS}
        described["values"] = {
            name: self.describe(item, f"{where}.{name}") for name, item in sorted(fields.items())
        }
        return described

    def _read_source(self, function: Any, where: str) -> str:
        try:
            if getattr(function, "__name__", "") == "<lambda>":
                return _read_lambda(function)
            return textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError, SyntaxError):
            raise self.refuse(
                where, function, "its source text cannot be found (write it in a file)"
            ) from None
        except LookupError:
            raise self.refuse(where, function, "its line has several different lambdas") from None


def _describe_plain(value: Any) -> Any:
    """Return a value that is no structure and no code as plain values; None for any other."""
    if value is None or value is Ellipsis:
        return {"value": repr(value)}
    if isinstance(value, bool | str):
        return value
    if isinstance(value, Enum):
        return {"value": str(value)}
    if isinstance(value, np.ndarray | torch.Tensor):
        if isinstance(value, np.ndarray) and value.dtype.kind not in "biufc":
            return None if value.dtype.kind == "O" else {"array": value.astype(str).tolist()}
        return {"tensor": digest_each({"value": value})["value"]}
    if isinstance(value, np.generic):
        return {"value": f"{value.dtype} {value!r}"}
    if isinstance(value, int):
        return value if abs(value) < 2**63 else {"value": hex(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"value": repr(value)}
    known = (bytes, complex, range, slice, PurePath, np.dtype, torch.dtype, torch.device)
    if isinstance(value, (*known, torch.layout, torch.memory_format, types.GenericAlias)):
        return {"value": repr(value)}
    return None


def _list_globals(code: types.CodeType) -> Iterator[str]:
    """Yield the names of the globals that a function uses, also within functions inside it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _list_globals(constant)


def _is_installed(code: Any) -> bool:
    """Whether a function or class belongs to Python or an installed package."""
    try:
        file = Path(inspect.getfile(code)).resolve()
    except TypeError:
        return True  # built in
    return bool(_INSTALLED_PARTS & {*file.parts}) or str(file).startswith(_INSTALLED)


def _read_lambda(function: types.FunctionType) -> str:
    """Return the text of a lambda alone; LookupError where its line has several that differ."""
    text = "".join(inspect.findsource(function)[0])
    code = function.__code__
    found = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
    ]
    if len(found) > 1:
        # One of its instructions computes the value of the whole body, and has the body's place.
        places = {*code.co_positions()}
        found = [node for node in found if _get_place(node.body) in places]
    sources = {ast.get_source_segment(text, node) for node in found}
    if len(sources) != 1:
        raise LookupError
    return str(sources.pop())


def _get_place(node: ast.expr) -> tuple[int | None, ...]:
    return (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)


def _name(function: Any) -> str:
    """Return what a person calls a function, or a dict of functions by name."""
    if isinstance(function, Mapping):
        return ", ".join(map(str, function))
    if isinstance(function, functools.partial):
        return f"partial of {_name(function.func)}"
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(name).rpartition("<locals>.")[2]
