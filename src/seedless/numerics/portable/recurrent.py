"""LSTM, GRU and plain RNN layers, unrolled: a library's own kernels take other routes.

A cell is two linear maps and activations, each a portable op; time goes one step after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from seedless.numerics.portable.refusal import refuse

State = tuple[Tensor, ...]


def _lstm(state: State, mapped: Tensor, weights: Sequence[Tensor | None]) -> State:
    """(h, c) -> (h, c): i, f, g, o are the quarters of the gates."""
    gates = mapped + F.linear(state[0], weights[1], weights[3])  # type: ignore[arg-type]  # a weight
    i, f, g, o = gates.chunk(4, -1)
    cell = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def _gru(state: State, mapped: Tensor, weights: Sequence[Tensor | None]) -> State:
    """H -> n + z (h - n): r, z, n are the thirds of the gates."""
    inner = F.linear(state[0], weights[1], weights[3])  # type: ignore[arg-type]  # a weight
    reset, update, new = mapped.chunk(3, -1)
    inner_reset, inner_update, inner_new = inner.chunk(3, -1)
    update = torch.sigmoid(update + inner_update)
    new = torch.tanh(new + torch.sigmoid(reset + inner_reset) * inner_new)
    return (new + update * (state[0] - new),)


def _plain(activate: Any) -> Any:
    def step(state: State, mapped: Tensor, weights: Sequence[Tensor | None]) -> State:
        return (activate(mapped + F.linear(state[0], weights[1], weights[3])),)  # type: ignore[arg-type]  # a weight

    return step


CELLS: dict[str, Any] = {
    "lstm": _lstm,
    "gru": _gru,
    "rnn_tanh": _plain(torch.tanh),
    "rnn_relu": _plain(torch.relu),
}


def unroll(
    name: str,
    x: Tensor,
    start: Sequence[Tensor],
    flat: Sequence[Tensor],
    biases: bool,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Return the outputs and the last states, stacked over layers and directions."""
    cell, directions = CELLS[name], 2 if bidirectional else 1
    each = 4 if biases else 2
    x = x.transpose(0, 1) if batch_first else x
    ends: list[State] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            weights: list[Tensor | None] = list(flat[place * each : (place + 1) * each])
            weights += [None] * (4 - each)
            mapped = F.linear(x, weights[0], weights[2])  # type: ignore[arg-type]  # a weight
            state: State = tuple(part[place] for part in start)
            steps = list(mapped.unbind(0))
            seen = []
            for step in reversed(steps) if direction else steps:
                state = cell(state, step, weights)
                seen.append(state[0])
            outputs.append(torch.stack(seen[::-1] if direction else seen))
            ends.append(state)
        x = torch.cat(outputs, -1) if directions > 1 else outputs[0]
    stacked = [torch.stack(parts) for parts in zip(*ends, strict=True)]
    return (x.transpose(0, 1) if batch_first else x, *stacked)


class UnrollRecurrent(TorchFunctionMode):
    """Takes calls of torch's recurrent layers, on every device, to `unroll`."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name not in CELLS:
            return func(*args, **(kwargs or {}))
        if len(args) != 9 or isinstance(args[3], list | tuple):
            raise refuse(f"{name} of packed sequences", "unknown")
        x, start, flat, biases, layers, dropout, training, bidirectional, batch_first = args
        if dropout and training and layers > 1:
            raise refuse(f"{name} with dropout", "random")
        start = list(start) if isinstance(start, list | tuple) else [start]
        return unroll(name, x, start, flat, biases, layers, bidirectional, batch_first)
