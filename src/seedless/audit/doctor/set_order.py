"""Find lines of Python source whose result depends on the order of a set, or on hash().

The search reads the source and runs nothing of it. It follows names within one file only: a set
that another file made is not found.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from seedless.audit.doctor.script_sources import read_source

_SET_CALLS = ("set", "frozenset")
_SET_METHODS = ("union", "intersection", "difference", "symmetric_difference", "copy")
_SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)

# Calls that give the elements of their first argument in its order. sorted, len, sum of integers,
# min, max, any, all and set do not depend on that order.
_ORDERED_CALLS = ("list", "tuple", "iter", "enumerate", "zip", "map", "filter", "dict", "reversed")


@dataclass(frozen=True)
class OrderedUse:
    """A line whose result depends on the hashes of texts.

    Attributes:
        line: its number, from 1.
        text: the expression, shortened.
        kind: "set" or "hash".
        made: the line that makes the set; of hash() the line itself.
    """

    line: int
    text: str
    kind: str
    made: int


def find_ordered_uses(source: str) -> list[OrderedUse]:
    """Return the lines that iterate over a set or call hash(), in their order.

    >>> find_ordered_uses("for name in {'a', 'b'}: print(name)")
    [OrderedUse(line=1, text="{'a', 'b'}", kind='set', made=1)]
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = _find_set_names(tree)
    found: list[tuple[ast.expr, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "hash":
            found.append((node, "hash"))
        found.extend((value, "set") for value in _list_ordered(node) if _is_set(value, names))
    uses = {
        OrderedUse(node.lineno, _shorten(node), kind, names.get(ast.unparse(node), node.lineno))
        for node, kind in found
    }
    return sorted(uses, key=lambda use: (use.line, use.text))


def find_ordered_lines(paths: list[str], folder: Path) -> list[tuple[str, OrderedUse]]:
    """Return "path:line" and the use for each such line in some source files.

    Args:
        paths: files of Python source, absolute or relative to ``folder``.
        folder: the working folder of the script.
    """
    found: list[tuple[str, OrderedUse]] = []
    for path in paths:
        uses = find_ordered_uses(read_source(folder, path) or "")
        found.extend((f"{path}:{use.line}", use) for use in uses)
    return found


def _list_ordered(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions whose elements a node takes in their order."""
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.iter
    elif isinstance(node, ast.Starred):
        yield node.value
    elif isinstance(node, ast.Call):
        if getattr(node.func, "id", "") in _ORDERED_CALLS or (
            isinstance(node.func, ast.Attribute) and node.func.attr == "join"
        ):
            yield from node.args
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "pop" and not node.args:
            yield node.func.value
        elif isinstance(node.func, ast.Attribute) and node.func.attr in ("extend", "array"):
            yield from node.args


def _is_set(node: ast.expr, names: Mapping[str, int]) -> bool:
    """Whether an expression is a set, as far as the source of one file tells."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Name | ast.Attribute):
        return ast.unparse(node) in names
    if isinstance(node, ast.BinOp) and isinstance(node.op, _SET_OPERATORS):
        return _is_set(node.left, names) or _is_set(node.right, names)
    if isinstance(node, ast.Call):
        if getattr(node.func, "id", "") in _SET_CALLS:
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SET_METHODS:
            return _is_set(node.func.value, names)
    return False


def _find_set_names(tree: ast.AST) -> dict[str, int]:
    """Return the variables that a file assigns a set to, also through another one, and the line."""
    names: dict[str, int] = {}
    assigned = [
        (target, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name | ast.Attribute)
    ]
    count = -1
    while count < len(names):
        count = len(names)
        for target, value in assigned:
            if _is_set(value, names):
                made = names.get(ast.unparse(value), value.lineno)
                names.setdefault(ast.unparse(target), made)
    return names


def _shorten(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."
