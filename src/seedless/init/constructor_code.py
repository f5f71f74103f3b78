"""How a module's own code sets the first values of a parameter: to a constant, or at random.

Values alone do not tell: memory that nobody wrote is often zero. The code must say so.
"""

import ast
from functools import lru_cache

from seedless.init.module_code import is_own, last_name, list_names, parse_methods

# What makes one value, in torch or numpy and in torch.nn.init; "tensor" of a number among them.
_CONSTANT = {
    *("zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones"),
    *("zeros_", "ones_", "constant_", "fill_", "zero_", "tensor", "new_full"),
}
_TABLES = {"arange", "linspace", "logspace", "eye"}
_RANDOM = ("rand", "normal", "uniform", "bernoulli", "xavier", "kaiming", "orthogonal", "sparse_")


def is_set_to_a_constant(kind: type, name: str) -> bool:
    """Return whether the class's code sets the parameter to one value, and never at random.

    Example: a class with ``self.gamma = nn.Parameter(1e-6 * torch.ones(dim))``.
    """
    functions = _list_setters(kind, name)
    return bool(functions & _CONSTANT) and not _is_random(functions) and not functions & _TABLES


def is_set_to_a_table(kind: type, name: str) -> bool:
    """Return whether the class's code computes the parameter from a range, and never at random.

    Example: a class with ``self.A_log = nn.Parameter(torch.log(torch.arange(1, n + 1)))``.
    """
    functions = _list_setters(kind, name)
    return bool(functions & _TABLES) and not _is_random(functions)


def _is_random(functions: frozenset[str]) -> bool:
    return any(word in function for function in functions for word in _RANDOM)


@lru_cache(maxsize=4096)
def _list_setters(kind: type, name: str) -> frozenset[str]:
    """Return the names of the functions in the expressions that set ``self.name``."""
    found: set[str] = set()
    for method in parse_methods(kind).values():
        assigned: dict[str, list[ast.expr]] = {}  # the expressions of each local variable
        for node in ast.walk(method):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        assigned.setdefault(target.id, []).append(node.value)
                    elif is_own(target, name):
                        assigned.setdefault("", []).append(node.value)
            elif isinstance(node, ast.Call) and _writes_to(node, name):
                found.add(last_name(node.func))
                if last_name(node.func) == "copy_":
                    assigned.setdefault("", []).append(node.args[-1])
            elif isinstance(node, ast.Call) and _registers(node, name):
                assigned.setdefault("", []).append(node.args[1])
        found |= _list_functions(assigned)
    return frozenset(found)


def _writes_to(node: ast.Call, name: str) -> bool:
    """Return whether a call is ``zeros_(self.name)``, ``self.name.data.fill_(...)`` or the like."""
    if not last_name(node.func).endswith("_"):
        return False
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    places = [*node.args[:1], *([owner] if owner is not None else [])]
    return any(is_own(part, name) for place in places for part in ast.walk(place))


def _registers(node: ast.Call, name: str) -> bool:
    """Return whether a call is ``self.register_parameter("name", ...)``."""
    return (
        last_name(node.func) == "register_parameter"
        and len(node.args) == 2
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == name
    )


def _list_functions(assigned: dict[str, list[ast.expr]]) -> set[str]:
    """Return the functions in the expressions of "", and of the variables that these name."""
    found: set[str] = set()
    wanted, done = [""], {""}
    while wanted:
        for expression in assigned.get(wanted.pop(), []):
            calls = (node for node in ast.walk(expression) if isinstance(node, ast.Call))
            found |= {last_name(call.func) for call in calls}
            new = list_names(expression) - done
            done |= new
            wanted += sorted(new)
    return found
