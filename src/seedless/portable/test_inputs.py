"""Inputs that ops are tested on, from counter-based random numbers: the same on every machine.

`EDGES` are denormals, huge numbers and the values at which formulas change.
"""

import math
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
class Input:
    """An input: uniform in +-scale around shift; ``edges`` puts `EDGES` first.

    ``positive`` takes the magnitudes.
    """

    shape: tuple[int, ...]
    scale: float = 1.0
    shift: float = 0.0
    positive: bool = False
    edges: bool = False

    def make(self, name: str, device: torch.device) -> Tensor:
        """Return the tensor in float32; its values depend on the name alone."""
        uniform = torch.from_numpy(draw_uniform(0, name, math.prod(self.shape)))
        values = (uniform * 2 - 1) * self.scale + self.shift
        if self.edges:
            values[: len(EDGES)] = torch.tensor(EDGES, dtype=torch.float64, device="cpu")
        values = values.abs() if self.positive else values
        return values.to(torch.float32).view(self.shape).to(device)


@dataclass(frozen=True)
class Case:
    """A function and its inputs."""

    run: Callable[..., Tensor]
    inputs: tuple[Input, ...]


VALUES = Input((4000,), 9.0, edges=True)
SMALL_VALUES = Input((1000,), 4.0)
POSITIVE_VALUES = Input((1000,), 9.0, positive=True, edges=True)
ROWS = Input((6, 50, 96), 2.0, 1.0)
IMAGE = Input((3, 8, 13, 11))
LOGITS = Input((40, 30), 5.0)
SIGNAL = Input((3, 12, 60))


def make_labels(x: Tensor) -> Tensor:
    """Return a class for each row of logits."""
    return torch.arange(x.shape[0], device=x.device) * 7 % x.shape[1]


def make_indices(x: Tensor) -> Tensor:
    """Return an index from 0 to 4 for each row."""
    return torch.arange(x.shape[0], device=x.device) * 7 % 5


def make_targets(x: Tensor) -> Tensor:
    """Return zeros and ones of the shape of x."""
    return (torch.arange(x.numel(), device=x.device) % 3 == 0).to(x.dtype).view(x.shape)


def make_group_ends(x: Tensor) -> Tensor:
    """Return the ends of four groups of rows, one of them empty."""
    quarter = x.shape[0] // 4
    ends = [quarter, quarter, 3 * quarter, x.shape[0]]
    return torch.tensor(ends, dtype=torch.int32, device=x.device)


def make_words(x: Tensor) -> Tensor:
    """Return four labels above 0 for each sample of (time, samples, classes)."""
    count = torch.arange(4 * x.shape[1], device=x.device)
    return (count * 3 % (x.shape[2] - 1) + 1).view(x.shape[1], 4)
