"""Names of the modules and parameters of a script, found when a module is first called.

A module that no other one called gives its class: "Net", and what is inside it "Net.conv1".
"""

from __future__ import annotations

import weakref

from torch import Tensor, nn


class ModuleNames:
    """The modules seen so far. It keeps none of them alive."""

    def __init__(self) -> None:
        self._modules: dict[int, tuple[weakref.ref[nn.Module], str]] = {}
        self._parameters: dict[int, tuple[weakref.ref[Tensor], str, str]] = {}

    def knows(self, module: nn.Module) -> bool:
        """Whether a module has a name."""
        found = self._modules.get(id(module))
        return found is not None and found[0]() is module  # another may have its id by now

    def find(self, module: nn.Module) -> str:
        """Return the name of a module."""
        return self._modules[id(module)][1] if self.knows(module) else type(module).__name__

    def find_owner(self, parameter: Tensor) -> str:
        """Return the name of the module that has a parameter, or ""."""
        found = self._parameters.get(id(parameter))
        return found[1] if found is not None and found[0]() is parameter else ""

    def find_parameter(self, parameter: Tensor) -> str:
        """Return the name of a parameter, or ""."""
        found = self._parameters.get(id(parameter))
        return f"{found[1]}.{found[2]}" if found is not None and found[0]() is parameter else ""

    def add(self, root: nn.Module) -> dict[str, Tensor]:
        """Give names to a module and all modules inside it; return its new tensors by name."""
        added: dict[str, Tensor] = {}
        for path, module in root.named_modules():
            if self.knows(module):
                continue
            name = f"{type(root).__name__}.{path}".rstrip(".")
            self._modules[id(module)] = (weakref.ref(module), name)
            for key, parameter in module.named_parameters(recurse=False):
                self._parameters[id(parameter)] = (weakref.ref(parameter), name, key)
                added[f"{name}.{key}"] = parameter
            for key, buffer in module.named_buffers(recurse=False):
                added[f"{name}.{key}"] = buffer
        return added
