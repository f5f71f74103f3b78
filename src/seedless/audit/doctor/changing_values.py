"""Find where in Python source a value comes from a clock, a process number or an address.

The search reads the source and runs nothing of it. It follows values through the variables, the
arguments and the results of the functions of one file.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

# Calls whose result changes from run to run, by the end of their name.
_CHANGING_CALLS = frozenset(
    {
        *("time.time", "time.time_ns", "perf_counter", "perf_counter_ns", "monotonic"),
        *("monotonic_ns", "process_time", "process_time_ns", "thread_time", "datetime.now"),
        *("datetime.utcnow", "datetime.today", "date.today", "os.getpid", "os.getppid"),
        *("os.urandom", "os.times", "uuid1", "uuid4", "token_bytes", "token_hex", "randbelow"),
        *("randbits", "get_ident", "get_native_id", "mkdtemp", "mktemp", "id", "getpid", "time_ns"),
    }
)

Scope = ast.AST  # a function, or the module


@dataclass(frozen=True)
class ChangingCall:
    """A call whose result changes from run to run: its line, from 1, and its text."""

    line: int
    text: str


def find_changing_origin(source: str, line: int) -> ChangingCall | None:
    """Return the call that a statement's values come from, if its result changes.

    Args:
        source: the text of a file.
        line: a line of the statement, from 1.

    Example:
        >>> find_changing_origin("import time\\nseed = time.time()\\nx = torch.full((2,), seed)", 3)
        ChangingCall(line=2, text='time.time()')
    """
    tree = _parse(source)
    if tree is None:
        return None
    values = _ValueSearch(tree)
    statements = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not statements:
        return None
    nearest = min(statements, key=lambda node: (node.end_lineno or node.lineno) - node.lineno)
    found = (values.find_origin(part) for part in _list_own_parts(nearest))
    return next(filter(None, found), None)


def list_changing_calls(source: str) -> list[ChangingCall]:
    """Return the calls of a file whose result changes, but for clocks that only time something.

    Example:
        >>> list_changing_calls("import time\\nstart = time.time()\\nprint(time.time() - start)")
        []
    """
    tree = _parse(source)
    if tree is None:
        return []
    durations = {
        id(side)
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
        for side in (node.left, node.right)
    }
    subtracted = {
        ast.unparse(node) for node in ast.walk(tree) if id(node) in durations and _is_name(node)
    }
    starts = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in subtracted
    }
    return [
        ChangingCall(node.lineno, ast.unparse(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _is_changing(node) and id(node) not in durations | starts
    ]


class _ValueSearch:
    """Which variables and functions of a file have values that change from run to run."""

    def __init__(self, tree: ast.Module) -> None:
        self._scopes: dict[int, Scope] = {}
        self._set_scopes(tree, tree)
        self._functions = {
            node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
        }
        self._local = {
            (id(self._scopes[id(node)]), node.id)
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        for function in self._functions.values():
            self._local.update((id(function), argument.arg) for argument in function.args.args)
        self._module = tree
        self._known: dict[tuple[int, str], ChangingCall] = {}
        flows = list(self._list_flows(tree))
        count = -1
        while count < len(self._known):  # until nothing new is found
            count = len(self._known)
            for key, value in flows:
                if key not in self._known and (origin := self.find_origin(value)):
                    self._known[key] = origin

    def find_origin(self, value: ast.AST) -> ChangingCall | None:
        """Return the changing call that an expression's value comes from, if there is one."""
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and _is_changing(node):
                return ChangingCall(node.lineno, ast.unparse(node))
            if _is_name(node) and (origin := self._known.get(self._find_key(node))):
                return origin
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func).rpartition(".")[2]
                if origin := self._known.get((0, name)):
                    return origin
        return None

    def _list_flows(self, tree: ast.Module) -> Iterator[tuple[tuple[int, str], ast.AST]]:
        """Yield what gets a value (a variable, an argument, a function's result), and from where.

        A function's result has the key (0, name).
        """
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from ((self._find_key(one), node.value) for one in _list_names(target))
            elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
                yield self._find_key(node.target), node.value
            elif isinstance(node, ast.For | ast.comprehension):
                yield from ((self._find_key(one), node.iter) for one in _list_names(node.target))
            elif isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                scope = self._scopes[id(node)]
                if isinstance(scope, ast.FunctionDef):
                    yield (0, scope.name), node.value
            elif isinstance(node, ast.Call):
                function = self._functions.get(ast.unparse(node.func).rpartition(".")[2])
                if function is not None:
                    yield from self._list_arguments(function, node)

    def _list_arguments(
        self, function: ast.FunctionDef, call: ast.Call
    ) -> Iterator[tuple[tuple[int, str], ast.AST]]:
        names = [argument.arg for argument in function.args.args]
        if isinstance(call.func, ast.Attribute) and names[:1] == ["self"]:
            names = names[1:]
        yield from (
            ((id(function), name), value) for name, value in zip(names, call.args, strict=False)
        )
        yield from (((id(function), one.arg), one.value) for one in call.keywords if one.arg)

    def _find_key(self, node: ast.AST) -> tuple[int, str]:
        """Return what identifies a variable: its scope and name; attributes have one scope."""
        scope = id(self._scopes[id(node)])
        if isinstance(node, ast.Name) and (scope, node.id) in self._local:
            return scope, node.id
        return id(self._module), ast.unparse(node)

    def _set_scopes(self, node: ast.AST, scope: Scope) -> None:
        self._scopes[id(node)] = scope
        inner = node if isinstance(node, ast.FunctionDef) else scope
        for child in ast.iter_child_nodes(node):
            self._set_scopes(child, inner)


def _parse(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_changing(node: ast.Call) -> bool:
    """Whether the result of a call changes from run to run."""
    name = ast.unparse(node.func)
    parts = name.split(".")
    return (
        name in _CHANGING_CALLS
        or ".".join(parts[-2:]) in _CHANGING_CALLS
        or (len(parts) > 1 and parts[-1] in _CHANGING_CALLS and parts[-1] != "id")
    )


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute)


def _list_names(target: ast.AST) -> list[ast.AST]:
    """Return the variables that an assignment's target names."""
    if isinstance(target, ast.Tuple | ast.List):
        return [name for element in target.elts for name in _list_names(element)]
    return [target] if _is_name(target) else []


def _list_own_parts(statement: ast.stmt) -> list[ast.AST]:
    """Return the expressions of a statement, without those of statements inside it."""
    return [node for node in ast.iter_child_nodes(statement) if not isinstance(node, ast.stmt)]
