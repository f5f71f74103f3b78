"""A network of someone else's library, and the inputs it is given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from seedless.numerics.counter_random import draw_uniform


@dataclass(frozen=True)
class Given:
    """An input: real numbers in [-1, 1], or with ``below`` whole numbers in [0, below).

    With ``ones`` it is a mask of ones, of whole numbers.
    """

    shape: tuple[int, ...]
    below: int = 0
    ones: bool = False

    def make(self, name: str) -> Tensor:
        """Return the input; its values depend on the name alone."""
        if self.ones:
            return torch.ones(self.shape, dtype=torch.int64)
        values = torch.from_numpy(draw_uniform(0, name, math.prod(self.shape))).view(self.shape)
        if self.below:
            return (values * self.below).to(torch.int64)
        return (values * 2 - 1).to(torch.float32)


@dataclass(frozen=True, eq=False)  # compared by identity, so that it can be a key
class Network:
    """A network: ``make`` builds it, ``positional`` and ``named`` are its inputs.

    ``samples_axis`` is the axis of the samples in the first input: 1 where time comes first.
    """

    name: str
    make: Callable[[], nn.Module]
    positional: tuple[Given, ...] = ()
    named: Mapping[str, Given] = field(default_factory=dict)
    samples_axis: int = 0

    def make_inputs(self) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Return the inputs, which depend on the network's name alone."""
        return (
            [one.make(f"{self.name}.{i}") for i, one in enumerate(self.positional)],
            {key: one.make(f"{self.name}.{key}") for key, one in self.named.items()},
        )


def list_reals(output: Any, has_gradient: bool = True) -> list[Tensor]:
    """Return every tensor of real numbers in what a network returned, that has a gradient."""
    if isinstance(output, Tensor):
        is_used = output.is_floating_point() and (output.requires_grad or not has_gradient)
        return [output] if is_used else []
    if isinstance(output, Mapping):
        output = list(output.values())
    if isinstance(output, list | tuple):
        return [tensor for part in output for tensor in list_reals(part, has_gradient)]
    return []


def compute_loss(output: Any, has_gradient: bool = True) -> Tensor:
    """Return cross-entropy of (batch, classes) scores, or squared distances, over all outputs.

    Row i is asked for class 3 i + 1; other outputs for values that repeat with a period of 5.
    """
    losses = []
    for scores in list_reals(output, has_gradient):
        if scores.ndim == 2 and scores.shape[1] > 1:
            classes = (torch.arange(len(scores), device=scores.device) * 3 + 1) % scores.shape[1]
            losses.append(nn.functional.cross_entropy(scores, classes))
        else:
            count = torch.arange(scores.numel(), device=scores.device) % 5
            target = (count.to(scores.dtype) - 2.0) * 0.5
            losses.append(nn.functional.mse_loss(scores, target.view(scores.shape)))
    if not losses:
        raise RuntimeError("expected an output with a gradient, got none")
    loss = losses[0]
    for other in losses[1:]:
        loss = loss + other
    return loss
