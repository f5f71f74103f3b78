"""Lines of a record that wait for numbers from a device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .tensor_digest import PendingDigest


class PendingNumber:
    """A number that is still on a device."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def is_pending(value: Any) -> bool:
    """Return whether a value, or one inside it, is still on a device."""
    if isinstance(value, dict):
        return any(map(is_pending, value.values()))
    if isinstance(value, list):
        return any(map(is_pending, value))
    return isinstance(value, (PendingDigest, PendingNumber))


def resolve(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines with digests and numbers in place of what was still on a device."""
    tensors: list[Tensor] = []
    _collect(lines, tensors)
    numbers = _read_numbers(tensors)
    resolved: list[dict[str, Any]] = _replace(lines, numbers)
    for line in resolved:
        line.pop("pending", None)
    return resolved


def _collect(value: Any, tensors: list[Tensor]) -> None:
    if isinstance(value, dict):
        for item in value.values():
            _collect(item, tensors)
    elif isinstance(value, list):
        for item in value:
            _collect(item, tensors)
    elif isinstance(value, PendingDigest):
        tensors.extend(value.parts)
    elif isinstance(value, PendingNumber):
        tensors.append(value.tensor)


def _read_numbers(tensors: list[Tensor]) -> dict[int, Any]:
    """Return the number in each tensor by the tensor's id, with one copy per device and dtype."""
    groups: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    numbers: dict[int, Any] = {}
    with torch.no_grad():
        for group in groups.values():
            for tensor, number in zip(group, torch.stack(group).tolist()):
                numbers[id(tensor)] = number
    return numbers


def _replace(value: Any, numbers: dict[int, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _replace(item, numbers) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace(item, numbers) for item in value]
    if isinstance(value, PendingDigest):
        return value.resolve([numbers[id(part)] for part in value.parts])
    if isinstance(value, PendingNumber):
        return numbers[id(value.tensor)]
    return value
