"""Run a function as soon as a module has been imported, before anyone uses it.

Such a function puts wrappers in place of what the module holds.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable  # Python 3.9 runs this file too

Hook = Callable[[ModuleType], None]


def call_after_import(name: str, hook: Hook) -> None:
    """Call ``hook(module)`` once the module is imported; at once if it already is."""
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        hook(module)
        return
    for finder in sys.meta_path:
        if isinstance(finder, _HookFinder):
            finder.hooks.setdefault(name, []).append(hook)
            return
    sys.meta_path.insert(0, _HookFinder({name: [hook]}))


def name_wrapper(wrapper: Any, module: str, name: str) -> Any:
    """Give the wrapper of a function the name under which pickle finds it; return it."""
    wrapper.__module__, wrapper.__qualname__ = module, name
    return wrapper


class _HookFinder:
    """A finder that finds nothing itself; it lets a loader call a hook when it has finished."""

    def __init__(self, hooks: dict[str, list[Hook]]) -> None:
        self.hooks = hooks

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec the other finders give, with a loader that calls the hook."""
        if name not in self.hooks:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    self._add_calls(spec)
                return spec
        return None

    def _add_calls(self, spec: ModuleSpec) -> None:
        """Set `exec_module` on the loader object alone: its class stays what others expect."""
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_and_call(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            for hook in self.hooks.pop(spec.name, ()):
                hook(module)

        loader.exec_module = execute_and_call
