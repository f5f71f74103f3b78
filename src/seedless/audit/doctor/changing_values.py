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
        *("time.time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"),
        *("process_time", "process_time_ns", "thread_time", "datetime.now", "datetime.utcnow"),
        *("datetime.today", "date.today", "getpid", "getppid", "os.urandom", "os.times", "uuid1"),
        *("uuid4", "token_bytes", "token_hex", "randbelow", "randbits", "get_ident", "id"),
        *("get_native_id", "mkdtemp", "mkstemp", "mktemp", "TemporaryDirectory", "SystemRandom"),
    }
)

# Calls that show or store a value, and do not compute with it.
_OUTPUT_CALLS = frozenset(
    {
        *("print", "format", "info", "debug", "warning", "error", "log", "write", "writelines"),
        *("writerow", "mkdir", "makedirs", "save", "dump", "dumps", "set_postfix", "write_text"),
        *("set_description", "add_scalar", "touch", "exists", "open", "rmtree", "sleep"),
    }
)
_EMPTY_ARRAYS = frozenset(
    f"{package}.{name}"
    for package in ("np", "numpy")
    for name in ("empty", "empty_like", "ndarray")
)
_COLLECTING_CALLS = frozenset({"append", "extend", "add", "insert", "appendleft"})

Key = tuple[int, str]  # the scope of a variable, and its name; of a function's result (0, name)


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
    statements = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not statements:
        return None
    nearest = min(statements, key=lambda node: (node.end_lineno or node.lineno) - node.lineno)
    values = _ValueSearch(tree)
    found = (values.find_origin(part) for part in _list_own_parts(nearest))
    return next(filter(None, found), None)


def list_changing_calls(source: str) -> list[ChangingCall]:
    """Return the calls whose changing result is computed with, and not only shown or stored.

    Example:
        >>> list_changing_calls("import time\\nstart = time.time()\\nprint(time.time() - start)")
        []
    """
    tree = _parse(source)
    values = _ValueSearch(tree)
    found = {origin for node in values.list_uses() if (origin := values.find_origin(node))}
    return sorted(found, key=lambda call: (call.line, call.text))


def find_empty_arrays(source: str) -> list[int]:
    """Return the lines that make an array of numpy's without writing to it.

    Example:
        >>> find_empty_arrays("x = np.empty((3, 4))")
        [1]
    """
    calls = [node for node in ast.walk(_parse(source)) if isinstance(node, ast.Call)]
    return sorted({call.lineno for call in calls if ast.unparse(call.func) in _EMPTY_ARRAYS})


class _ValueSearch:
    """Which variables and functions of a file have values that change from run to run."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._scopes: dict[int, ast.AST] = {}
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
        self._known: dict[Key, ChangingCall] = {}
        flows = list(self._list_flows())
        count = -1
        while count < len(self._known):  # until nothing new is found
            count = len(self._known)
            for key, value in flows:
                if key not in self._known and (origin := self.find_origin(value)):
                    self._known[key] = origin

    def find_origin(self, value: ast.AST) -> ChangingCall | None:
        """Return the changing call that an expression's value comes from, if there is one."""
        for node in _walk_values(value):
            if isinstance(node, ast.Call):
                if _is_changing(node):
                    return ChangingCall(node.lineno, ast.unparse(node))
                if origin := self._known.get((0, _find_name(node))):
                    return origin
            if _is_name(node) and (origin := self._known.get(self._find_key(node))):
                return origin
        return None

    def list_uses(self) -> Iterator[ast.AST]:
        """Yield the expressions that are used for more than output.

        A value that is assigned to a variable is used where the variable is.
        """
        called = {_find_name(node) for node in ast.walk(self._tree) if isinstance(node, ast.Call)}
        read = {
            ast.unparse(node)
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        }
        for node in ast.walk(self._tree):
            if isinstance(node, ast.If | ast.While | ast.IfExp):
                yield node.test
            elif isinstance(node, ast.Expr):
                call = node.value
                if not (isinstance(call, ast.Call) and _find_name(call) in _COLLECTING_CALLS):
                    yield call
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if not _list_names(target) or (
                        isinstance(target, ast.Attribute) and ast.unparse(target) not in read
                    ):
                        yield node.value
            elif isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                scope = self._scopes[id(node)]
                if isinstance(scope, ast.FunctionDef) and scope.name not in called:
                    yield node.value  # another file may use it

    def _list_flows(self) -> Iterator[tuple[Key, ast.AST]]:
        """Yield what gets a value (a variable, an argument, a function's result), and its value."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from ((self._find_key(one), node.value) for one in _list_names(target))
            elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
                yield self._find_key(node.target), node.value
            elif isinstance(node, ast.For | ast.comprehension):
                yield from ((self._find_key(one), node.iter) for one in _list_names(node.target))
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                names = _list_names(node.optional_vars)
                yield from ((self._find_key(one), node.context_expr) for one in names)
            elif isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                scope = self._scopes[id(node)]
                if isinstance(scope, ast.FunctionDef):
                    yield (0, scope.name), node.value
            elif isinstance(node, ast.Call):
                yield from self._list_arguments(node)

    def _list_arguments(self, call: ast.Call) -> Iterator[tuple[Key, ast.AST]]:
        """Yield the arguments of a function of this file, or what a call adds to a collection."""
        name = _find_name(call)
        if name in _COLLECTING_CALLS and isinstance(call.func, ast.Attribute):
            if _is_name(call.func.value):
                yield from ((self._find_key(call.func.value), value) for value in call.args)
            return
        function = self._functions.get(name)
        if function is None:
            return
        names = [argument.arg for argument in function.args.args]
        if isinstance(call.func, ast.Attribute) and names[:1] == ["self"]:
            names = names[1:]
        pairs = [*zip(names, call.args, strict=False)]
        pairs += [(one.arg, one.value) for one in call.keywords if one.arg]
        yield from (((id(function), argument), value) for argument, value in pairs)

    def _find_key(self, node: ast.AST) -> Key:
        """Return what identifies a variable: its scope and name; attributes have one scope."""
        scope = id(self._scopes[id(node)])
        if isinstance(node, ast.Name) and (scope, node.id) in self._local:
            return scope, node.id
        return id(self._tree), ast.unparse(node)

    def _set_scopes(self, node: ast.AST, scope: ast.AST) -> None:
        self._scopes[id(node)] = scope
        inner = node if isinstance(node, ast.FunctionDef) else scope
        for child in ast.iter_child_nodes(node):
            self._set_scopes(child, inner)


def _parse(source: str) -> ast.Module:
    """Return the parsed source; of a source that cannot be parsed, an empty one."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _walk_values(value: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of an expression, but for what it only shows or stores."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and _find_name(node) in _OUTPUT_CALLS:
            continue
        yield node
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _find_name(call: ast.Call) -> str:
    """Return the last part of the name of what is called."""
    return ast.unparse(call.func).rpartition(".")[2]


def _is_changing(call: ast.Call) -> bool:
    """Whether the result of a call changes from run to run."""
    parts = ast.unparse(call.func).split(".")
    if ".".join(parts[-2:]) in _CHANGING_CALLS:
        return True
    return parts[-1] in _CHANGING_CALLS and (parts[-1] != "id" or len(parts) == 1)


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
