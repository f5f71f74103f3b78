"""The tensors that a step depends on: parameters, buffers and the state of the optimizer."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


def read_parameters(optimizer: Any) -> list[Tensor]:
    """Return the optimizer's parameters, in the order of its groups."""
    return [each for group in optimizer.param_groups for each in group["params"]]


def read_rates(optimizer: Any) -> list[Any]:
    """Return the learning rate of each group: a float, or a tensor."""
    return [group.get("lr") for group in optimizer.param_groups]


@dataclass(frozen=True)
class OptimizerState:
    """The state of an optimizer.

    Attributes:
        content: for each parameter the entries of its state, sorted by name; then the numbers that
            are set for each group, except the learning rate.
        versions: a value that changes whenever a tensor in it is replaced or written; None where
            torch does not count writes.
    """

    content: list[Any]
    versions: Any


def read_optimizer_state(optimizer: Any) -> OptimizerState:
    """Return the optimizer's state."""
    entries = [
        sorted(state.items(), key=_by_name) if isinstance(state, dict) else []
        for state in map(optimizer.state.get, read_parameters(optimizer))
    ]
    settings = [_read_settings(group) for group in optimizer.param_groups]
    try:
        versions: Any = [
            (id(item), item._version, item.data_ptr()) if isinstance(item, Tensor) else repr(item)
            for entry in entries
            for _, item in entry
        ]
    except RuntimeError:  # an inference tensor has no version, a wrapper no address
        versions = None
    if versions is not None:
        versions = [versions, settings]
    return OptimizerState([entries, settings], versions)


def _by_name(item: tuple[Any, Any]) -> str:
    return str(item[0])


def _read_settings(group: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return momentum, decay and the like; switches of the implementation do not belong here."""
    return [
        (name, value)
        for name, value in sorted(group.items())
        if name not in ("params", "lr", "initial_lr") and _is_number(value)
    ]


def _is_number(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_number, value))
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class BufferList:
    """The buffers of the modules called since the last step, in the order of the first calls."""

    def __init__(self) -> None:
        self._owners: weakref.WeakKeyDictionary[nn.Module, list[Any]] = weakref.WeakKeyDictionary()
        self._called: list[nn.Module] = []

    def add(self, module: nn.Module) -> None:
        """Remember where a module keeps its buffers: their tensors may be replaced."""
        if module not in self._owners:
            self._owners[module] = [
                (owner._buffers, name)
                for owner in module.modules()
                if isinstance(owner._buffers, dict)  # a scripted module has none of its own
                for name in owner._buffers
            ]
        if self._owners[module] and not any(module is each for each in self._called):
            self._called.append(module)

    def take(self) -> list[Tensor | None]:
        """Return the buffers as they are now, and forget which modules were called."""
        called, self._called = self._called, []
        return [buffers.get(name) for module in called for buffers, name in self._owners[module]]
