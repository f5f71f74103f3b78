"""Packages that can be called: `seedless.portable` is a package, `seedless.portable()` a call.

Importing any module of a package makes the package an attribute of its parent, in place of whatever
had that name there. So where a package and a public function share a name, the package itself must
be callable.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    _function: tuple[str, str]

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        module, name = self._function
        return getattr(import_module(module), name)(*arguments, **options)


def make_callable(package: str, module: str, function: str) -> None:
    """Let a call of the package call a function of one of its modules, imported at the first call.

    >>> make_callable("seedless.portable", "seedless.portable.mode", "portable")
    """
    loaded = sys.modules[package]
    loaded.__class__ = _CallablePackage
    loaded.__dict__["_function"] = (module, function)
