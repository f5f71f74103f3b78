"""The source code of a module's class, as a syntax tree."""

import ast
import inspect
import textwrap
from functools import lru_cache
from types import FunctionType
from typing import Any

from torch import nn


def parse_methods(kind: type) -> dict[str, ast.FunctionDef]:
    """Return the methods of a class and its bases below nn.Module; {} where there is no source."""
    methods: dict[str, ast.FunctionDef] = {}
    for base in kind.__mro__:
        if base in (nn.Module, object):
            continue
        node = _parse(base)
        for member in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(member, ast.FunctionDef):
                methods.setdefault(member.name, member)
    return methods


def parse_function(function: FunctionType) -> ast.FunctionDef | None:
    """Return the definition of a function; None where there is no source."""
    node = _parse(inspect.unwrap(function))
    return node if isinstance(node, ast.FunctionDef) else None


@lru_cache(maxsize=4096)
def _parse(source: Any) -> ast.stmt | None:
    """Return the statement that defines a class or a function."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(source))).body[0]
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None  # built in, or typed into a session that keeps no source


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name: ``zeros`` of ``torch.zeros``; "" for other code."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def list_names(node: ast.AST) -> set[str]:
    """Return the names of variables in a piece of code."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def is_own(node: ast.AST, name: str) -> bool:
    """Return whether a piece of code is ``self.name``."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def is_computed(index: ast.expr) -> bool:
    """Return whether an index is more than numbers and slices."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return not all(isinstance(part, ast.Slice | ast.Constant | ast.UnaryOp) for part in parts)


def name_of(node: ast.expr) -> str:
    """Return the name of a variable; "" for other code."""
    return node.id if isinstance(node, ast.Name) else ""
