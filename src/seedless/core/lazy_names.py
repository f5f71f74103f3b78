"""Public names of a package, imported when they are first used, so that importing does no work.

A package lists what it offers once, as imports that only type checkers and documentation read:

    if TYPE_CHECKING:
        from seedless.runs.fit_model import fit
        from seedless.runs.opened_run import load

    __all__ = ["fit", "load"]
    __getattr__, __dir__ = lazy_names(__name__)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package whose names are imported on first use."""
    homes: dict[str, tuple[str, str]] = {}

    def get_attribute(name: str) -> Any:
        module = sys.modules[package]
        if name not in module.__all__:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not homes:
            homes.update(_read_imports(module))
        home, original = homes[name]
        value = getattr(import_module(home), original)
        # A callable package of this name stays the attribute, or its modules could not be imported.
        package_of_name = sys.modules.get(f"{package}.{name}")
        if callable(package_of_name):
            value = package_of_name
        setattr(module, name, value)
        return value

    def list_names() -> list[str]:
        return list(sys.modules[package].__all__)

    return get_attribute, list_names


def _read_imports(package: ModuleType) -> dict[str, tuple[str, str]]:
    """Return {name: (module, name there)} of the imports under `if TYPE_CHECKING:`."""
    import ast  # here, since only the first use of a name needs them
    import inspect

    imports = {}
    for block in ast.parse(inspect.getsource(package)).body:
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    for alias in line.names:
                        imports[alias.asname or alias.name] = (line.module, alias.name)
    return imports
