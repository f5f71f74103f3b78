"""Inputs drawn by a counter, the same everywhere: what ops are tried on.

EDGES put denormals, huge numbers and the places where formulas change among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from seedless.numerics.counter_random import draw_uniform

EDGES = (
    *(0.0, -0.0, 1e-45, -1e-45, 3e-39, -3e-39, 1.1754944e-38, 1e-20, -1e-20, 1e-7, -1e-4),
    *(0.5, -0.5, 1.0, -1.0, 5.9, -6.1, 20.5, 88.7, -87.5, -103.9, 1e5, -3e9, 2e22, -1e30),
)


@dataclass(frozen=True)
class Drawn:
    """An input: uniform in +-scale around shift, positive or with the edges in front if asked."""

    shape: tuple[int, ...]
    scale: float = 1.0
    shift: float = 0.0
    positive: bool = False
    edges: bool = False

    def make(self, name: str, device: torch.device) -> Tensor:
        """Return the tensor in float32; its values depend on the name alone."""
        count = 1
        for size in self.shape:
            count *= size
        values = (torch.from_numpy(draw_uniform(0, name, count)) * 2 - 1) * self.scale + self.shift
        if self.edges:
            values[: len(EDGES)] = torch.tensor(EDGES, dtype=torch.float64, device="cpu")
        values = values.abs() if self.positive else values
        return values.to(torch.float32).view(self.shape).to(device)


@dataclass(frozen=True)
class Case:
    """A function and its inputs."""

    run: Callable[..., Tensor]
    inputs: tuple[Drawn, ...]


LINE = Drawn((4000,), 9.0, edges=True)
MILD = Drawn((1000,), 4.0)
PLUS = Drawn((1000,), 9.0, positive=True, edges=True)
ROWS = Drawn((6, 50, 96), 2.0, 1.0)
PICTURE = Drawn((3, 8, 13, 11))
LOGITS = Drawn((40, 30), 5.0)
SIGNAL = Drawn((3, 12, 60))


def labels(x: Tensor) -> Tensor:
    """Return a class for each row of logits."""
    return torch.arange(x.shape[0], device=x.device) * 7 % x.shape[1]


def places(x: Tensor) -> Tensor:
    """Return a place from 0 to 4 for each row."""
    return torch.arange(x.shape[0], device=x.device) * 7 % 5


def targets(x: Tensor) -> Tensor:
    """Return zeros and ones of the shape of x."""
    return (torch.arange(x.numel(), device=x.device) % 3 == 0).to(x.dtype).view(x.shape)
