"""The lines of a module's source at which it draws random numbers, without running it.

The scan starts at ``forward``, and follows methods of the class and functions that are called by
their name. What is called through a variable or a table is not found: `convert` intercepts or
refuses such a draw when it happens.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import nn

_BY_SAMPLE = """
    dropout dropout_ dropout1d dropout2d dropout3d alpha_dropout feature_dropout
    feature_alpha_dropout native_dropout scaled_dot_product_attention multi_head_attention_forward
    rand rand_like bernoulli bernoulli_ uniform_ randn randn_like normal normal_
    exponential_ gumbel_softmax
"""
_BY_GENERATOR = """
    randint randint_like randperm random_ geometric_ cauchy_ log_normal_ multinomial
    poisson binomial rrelu fractional_max_pool2d fractional_max_pool3d
"""
INTERCEPTED = frozenset(_BY_SAMPLE.split())
REFUSED = frozenset(_BY_GENERATOR.split())
_NAME = re.compile(r"[\w.]+")
_ATTRIBUTE = re.compile(r"[\w.]*\.\w+")  # of a module or a value, or ".method"
_GENERATOR_MODULES = ("random", "numpy.random", "np.random")


@dataclass(frozen=True)
class DrawLine:
    """A line that draws: the function it calls, and where it is; line 0 is inside torch."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        if not self.line:
            return f"{self.function} of {self.file}"
        return f"{self.function} at {self.file}:{self.line}"


@dataclass
class ModuleDraws:
    """What the source of a module draws.

    Attributes:
        intercepted: lines whose draws `convert` makes by sample.
        remaining: lines whose draws it refuses.
        unclear: whether the module calls something that the scan does not know, which may draw.
    """

    intercepted: list[DrawLine] = field(default_factory=list)
    remaining: list[DrawLine] = field(default_factory=list)
    unclear: bool = False


def scan_module(module: nn.Module) -> ModuleDraws:
    """Return the draws in a module's own source, without those of its submodules."""
    found = ModuleDraws()
    done: set[Any] = set()
    waiting: list[Callable[..., Any]] = [type(module).forward]
    while waiting:
        function = inspect.unwrap(waiting.pop())
        code = getattr(function, "__code__", None)
        if code is None or code in done or _is_of_torch(function):
            continue
        done.add(code)
        names = {**vars(builtins), **getattr(function, "__globals__", {})}
        for called, line in _list_calls(function):
            name = called.rpartition(".")[2]
            draw = DrawLine(called, code.co_filename, line)
            own = called.removeprefix("self.") if called.startswith("self.") else None
            if own is not None and callable(method := getattr(type(module), own, None)):
                waiting.append(method)
            elif own is not None and _is_module(module, own):
                continue
            elif name in REFUSED or called.rpartition(".")[0] in _GENERATOR_MODULES:
                found.remaining.append(draw)
            elif name in INTERCEPTED:
                found.intercepted.append(draw)
            elif inspect.isfunction(known := names.get(called)):
                waiting.append(known)
            elif (
                own is not None
                or not _NAME.fullmatch(called)
                or (name == called and called not in names)
            ):
                found.unclear = True
    return found


def _is_module(module: nn.Module, path: str) -> bool:
    """Whether a path of attributes of a module leads to a module, or to a method of one."""
    try:
        return isinstance(module.get_submodule(path), nn.Module)
    except AttributeError:
        parent = path.rpartition(".")[0]
        return bool(parent) and _is_module(module, parent)


def _list_calls(function: Callable[..., Any]) -> Iterator[tuple[str, int]]:
    """Yield the name of each function that a function's source calls, and the line in the file.

    A method of a value that has no name is ".method"; what is called from a table has the name of
    the table with its index, which nothing else has.
    """
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # made without a source file
        yield "<unknown>", 0
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not any(
            word.arg == "generator" for word in node.keywords
        ):
            name = ast.unparse(node.func)
            if isinstance(node.func, ast.Attribute) and not _NAME.fullmatch(name):
                name = f".{node.func.attr}"
            yield name, first + node.lineno - 1


def _is_of_torch(function: Callable[..., Any]) -> bool:
    return getattr(function, "__module__", "").partition(".")[0] == "torch"
