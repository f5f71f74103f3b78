"""What a module computes with one of its parameters, read from the module's own code.

The values of the parameter are followed through the methods of the module's class, and through the
functions that they call by name, to the operations that use them. Nothing runs. Values that another
function changes on the way (an exponential, say) are not followed further.

Names say nothing: only operations do. Code that cannot be read has no uses.
"""

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import FunctionType

from seedless.init.einsum_axes import classify_axes
from seedless.init.module_code import (
    is_computed,
    is_own,
    last_name,
    list_names,
    name_of,
    parse_function,
    parse_methods,
)
from seedless.init.value_flow import MOVING, TRANSPOSING, Flow, Flows, Use, transpose

MAX_CALL_DEPTH = 4  # functions that are followed into one another
_JOINING = {"cat", "concat", "concatenate", "hstack", "vstack"}
_CONVOLUTIONS = {f"conv{transposed}{n}d" for n in (1, 2, 3) for transposed in ("", "_transpose")}
_INDEXING = {"index_select", "gather", "take", "take_along_dim", "embedding"}
_NOT_VALUES = {"shape", "dtype", "device", "ndim", "size", "dim", "numel", "requires_grad"}


@lru_cache(maxsize=4096)
def find_uses(kind: type, name: str) -> frozenset[Use]:
    """Return the uses of parameter ``name`` in the code of a module's class.

    Example:
        >>> find_uses(VisionTransformer, "pos_embed")
        frozenset({Use(operation='added', indexed=False, transposed=False)})
    """
    reader = _Reader(kind, name)
    for method in reader.methods:
        if method != "__init__":
            reader.read_method(method, {}, 0)
    return frozenset(reader.uses)


@dataclass
class _Reader:
    """Follows one parameter through the code of one class."""

    kind: type
    name: str
    uses: set[Use] = field(default_factory=set)
    active: set[str] = field(default_factory=set)  # functions being read, so that none calls itself

    def __post_init__(self) -> None:
        self.methods = parse_methods(self.kind)
        self.operations: dict[str, Callable[[ast.Call, list[Flow | None]], Flow | None]] = {
            **dict.fromkeys(("linear", *_CONVOLUTIONS), self._apply_layer),
            **dict.fromkeys(("matmul", "mm", "bmm"), self._apply_product),
            **dict.fromkeys(("addmm", "baddbmm"), self._apply_addmm),
            "addcmul": self._apply_addcmul,
            **dict.fromkeys(_INDEXING, self._look_up),
            **dict.fromkeys(("add", "add_", "sub"), lambda _, flows: self._add(flows)),
            **dict.fromkeys(("mul", "mul_", "div"), self._multiply),
            "where": self._substitute,
            "einsum": self._apply_einsum,
            "scaled_dot_product_attention": lambda _, flows: self._add(flows),
        }

    # Statements.

    def read_method(self, name: str, flows: Flows, depth: int) -> Flow | None:
        """Read a method, given the flows in its arguments; return the flow that it returns."""
        return self._read_function(self.methods[name], flows, depth)

    def _read_function(self, node: ast.FunctionDef, flows: Flows, depth: int) -> Flow | None:
        key = f"{node.name} {sorted(flows)}"
        if depth > MAX_CALL_DEPTH or key in self.active:
            return None
        self.active.add(key)
        try:
            return self._read_body(node.body, dict(flows), depth)
        finally:
            self.active.discard(key)

    def _read_body(self, body: list[ast.stmt], flows: Flows, depth: int) -> Flow | None:
        returned: Flow | None = None
        for statement in body:
            if isinstance(statement, ast.Return):
                returned = returned or self._value(statement.value, flows, depth)
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    self._assign(target, statement.value, flows, depth)
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self._assign(statement.target, statement.value, flows, depth)
            elif isinstance(statement, ast.AugAssign):
                operation = ast.BinOp(statement.target, statement.op, statement.value)
                self._assign(statement.target, operation, flows, depth)
            elif isinstance(statement, ast.Expr):
                self._value(statement.value, flows, depth)
            for nested in ("body", "orelse", "finalbody"):
                if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                    inner = self._read_body(getattr(statement, nested, []), flows, depth)
                    returned = returned or inner
        return returned

    def _assign(self, target: ast.expr, value: ast.expr, flows: Flows, depth: int) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, other in zip(target.elts, value.elts, strict=False):
                self._assign(one, other, flows, depth)
            return
        flow = self._value(value, flows, depth)
        if isinstance(target, ast.Subscript) and flow:
            self._use("substituted", [flow])
        for name in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(name, ast.Name) and flow:
                flows[name.id] = flow
            elif isinstance(name, ast.Name) and name.id not in list_names(value):
                flows.pop(name.id, None)

    # Expressions.

    def _value(self, node: ast.expr | None, flows: Flows, depth: int) -> Flow | None:
        """Return the flow of an expression, and note the uses in it."""
        if isinstance(node, ast.Name):
            return flows.get(node.id)
        if isinstance(node, ast.Attribute):
            return self._read_attribute(node, flows, depth)
        if isinstance(node, ast.Subscript):
            flow = self._value(node.value, flows, depth)
            self._value(node.slice, flows, depth)
            return replace(flow, indexed=flow.indexed or is_computed(node.slice)) if flow else None
        if isinstance(node, ast.Call):
            return self._read_call(node, flows, depth)
        if isinstance(node, ast.BinOp):
            return self._read_operator(node, flows, depth)
        if isinstance(node, ast.Compare | ast.Constant | ast.Lambda) or node is None:
            return None
        found = [
            self._value(child, flows, depth)
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.expr)
        ]
        return next(filter(None, found), None)

    def _read_attribute(self, node: ast.Attribute, flows: Flows, depth: int) -> Flow | None:
        if name_of(node.value) == "self":
            return Flow() if is_own(node, self.name) else None
        flow = None if node.attr in _NOT_VALUES else self._value(node.value, flows, depth)
        return transpose(flow) if node.attr in TRANSPOSING else flow

    def _read_operator(self, node: ast.BinOp, flows: Flows, depth: int) -> Flow | None:
        sides = [self._value(side, flows, depth) for side in (node.left, node.right)]
        if isinstance(node.op, ast.Add) and isinstance(node.right, ast.List | ast.Tuple):
            return sides[0] or sides[1]  # lists are joined, not added
        if isinstance(node.op, ast.Add | ast.Sub):
            return self._add(sides)
        if isinstance(node.op, ast.MatMult):
            self._multiply_matrices(*sides)
            return None
        if isinstance(node.op, ast.Mult | ast.Div):
            is_number = any(isinstance(side, ast.Constant) for side in (node.left, node.right))
            if not is_number:
                self._use("multiplied", sides)
                return None
        return sides[0] or sides[1]

    def _read_call(self, node: ast.Call, flows: Flows, depth: int) -> Flow | None:
        name = last_name(node.func)
        if name == "getattr" and self._is_own_name(node):
            return Flow()
        if name in _JOINING and (node.args or node.keywords):
            return self._join(node, flows, depth)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        found = [self._value(argument, flows, depth) for argument in arguments]
        owner = None
        if isinstance(node.func, ast.Attribute):
            if name_of(node.func.value) == "self" and name in self.methods:
                bound = self._bind(self.methods[name], node, found, skip=1)
                return self.read_method(name, bound, depth + 1)
            owner = self._value(node.func.value, flows, depth)
            if name in ("append", "extend", "insert") and any(found):
                target = name_of(node.func.value)
                flows[target] = next(filter(None, found))
                return None
        if not any(found) and not owner:
            return None
        if name in self.operations:
            return self.operations[name](node, [owner, *found] if owner else found)
        if name in MOVING:
            flow = owner or next(filter(None, found))
            return transpose(flow) if name in TRANSPOSING else flow
        return None if owner else self._follow(node, found, depth)

    def _follow(self, node: ast.Call, found: list[Flow | None], depth: int) -> Flow | None:
        """Return the flow out of a function that the module's file defines or imports."""
        if not isinstance(node.func, ast.Name):
            if isinstance(node.func, ast.Attribute) and name_of(node.func.value) == "self":
                self._use("passed", found)
            return None
        for base in self.kind.__mro__:
            known = getattr(inspect.getmodule(base), node.func.id, None)
            definition = parse_function(known) if isinstance(known, FunctionType) else None
            if definition:
                flows = self._bind(definition, node, found)
                return self._read_function(definition, flows, depth + 1)
        return None

    def _bind(
        self, definition: ast.FunctionDef, call: ast.Call, found: list[Flow | None], skip: int = 0
    ) -> Flows:
        """Return the flows in a function's parameters, given those in a call's arguments."""
        names = [one.arg for one in definition.args.args][skip:]
        names = names[: len(call.args)] + [str(keyword.arg) for keyword in call.keywords]
        return {name: flow for name, flow in zip(names, found, strict=False) if flow}

    def _is_own_name(self, node: ast.Call) -> bool:
        """Return whether ``getattr(self, ...)`` can mean the parameter."""
        if len(node.args) < 2 or name_of(node.args[0]) != "self":
            return False
        wanted = node.args[1]
        if isinstance(wanted, ast.JoinedStr) and isinstance(wanted.values[0], ast.Constant):
            return self.name.startswith(str(wanted.values[0].value))
        return isinstance(wanted, ast.Constant) and wanted.value == self.name

    # Operations: each notes a use, and returns the flow where the values go on as they are.

    def _use(self, operation: str, flows: Sequence[Flow | None]) -> None:
        for flow in filter(None, flows):
            self.uses.add(Use(operation, flow.indexed, flow.transposed))

    def _add(self, flows: list[Flow | None]) -> Flow | None:
        if len(flows) > 1 and all(flows):
            return flows[0]  # a part of the parameter added to another part of it
        self._use("added", flows)
        return None

    def _multiply(self, _: ast.Call, flows: list[Flow | None]) -> None:
        self._use("multiplied", flows)

    def _substitute(self, _: ast.Call, flows: list[Flow | None]) -> None:
        self._use("substituted", flows)

    def _multiply_matrices(self, left: Flow | None, right: Flow | None) -> None:
        if left:
            self._use("weight", [left])
        if right:
            self._use("weight", [transpose(right)])

    def _join(self, node: ast.Call, flows: Flows, depth: int) -> Flow | None:
        """Note a concatenation with other values; of parts of the parameter alone, pass it on."""
        joined = node.args[0] if node.args else node.keywords[0].value
        members = joined.elts if isinstance(joined, ast.List | ast.Tuple) else [joined]
        parts = [self._value(part, flows, depth) for part in members]
        if len(parts) > 1 and all(parts):
            return parts[0]
        self._use("joined", parts)
        return None

    def _apply_layer(self, node: ast.Call, flows: list[Flow | None]) -> Flow | None:
        operation = "weight" if last_name(node.func) == "linear" else "kernel"
        self._use(operation, flows[1:2])
        self._use("bias", flows[2:3])
        return flows[0]

    def _apply_product(self, _: ast.Call, flows: list[Flow | None]) -> None:
        self._multiply_matrices(*flows[:2])

    def _apply_einsum(self, node: ast.Call, flows: list[Flow | None]) -> None:
        equation = node.args[0] if node.args else None
        text = str(equation.value) if isinstance(equation, ast.Constant) else ""
        for place, flow in enumerate(flows[1:]):
            if flow:
                moved = flow.indexed or flow.transposed
                axes = "" if moved else classify_axes(text, place)
                self.uses.add(Use("einsum", flow.indexed, flow.transposed, axes))

    def _apply_addmm(self, _: ast.Call, flows: list[Flow | None]) -> None:
        self._use("bias", flows[:1])
        self._multiply_matrices(*flows[1:3])

    def _apply_addcmul(self, _: ast.Call, flows: list[Flow | None]) -> None:
        self._use("added", flows[:1])
        self._use("multiplied", flows[1:3])

    def _look_up(self, node: ast.Call, flows: list[Flow | None]) -> Flow | None:
        if last_name(node.func) == "embedding":
            self._use("table", flows)
            return None
        flow = next(filter(None, flows))
        return replace(flow, indexed=True)
