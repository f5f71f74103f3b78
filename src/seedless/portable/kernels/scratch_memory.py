"""Memory that is lent again and again."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import torch
from torch import Tensor


class _Lent(threading.local):
    """Memory of each thread's own, kept: new memory costs a CPU more than the arithmetic in it."""

    def __init__(self) -> None:
        self.memory: dict[str, Tensor] = {}


_LENT = _Lent()
LENT_MOST = 1 << 23  # elements kept under one name, 64 MiB


def borrow(name: str, shape: Sequence[int]) -> Tensor:
    """Return float64 memory on the CPU, whatever is in it, until the next one borrows this name."""
    size = math.prod(shape)
    if size > LENT_MOST:
        return torch.empty(tuple(shape), dtype=torch.float64, device="cpu")
    held = _LENT.memory.get(name)
    if held is None or held.numel() < size:
        held = _LENT.memory[name] = torch.empty(size, dtype=torch.float64, device="cpu")
    return held[:size].view(tuple(shape))
