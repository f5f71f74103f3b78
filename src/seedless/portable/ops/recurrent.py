"""LSTM, GRU and RNN layers computed step by step, since libraries have kernels of their own.

A cell is two linear maps and activations, each a portable op.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from seedless.portable.refusal import ADVICE, refuse

State = tuple[Tensor, ...]


def _lstm(state: State, mapped: Tensor, weights: Sequence[Tensor | None]) -> State:
    """(h, c) -> (h, c): i, f, g, o are the quarters of the gates."""
    gates = mapped + F.linear(state[0], weights[1], weights[3])  # type: ignore[arg-type]  # a weight
    i, f, g, o = gates.chunk(4, -1)
    cell = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    out = torch.sigmoid(o) * torch.tanh(cell)
    return out if weights[4] is None else F.linear(out, weights[4]), cell


def _gru(state: State, mapped: Tensor, weights: Sequence[Tensor | None]) -> State:
    """h -> n + z (h - n): r, z, n are the thirds of the gates."""
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


class Layers:
    """The weights of a recurrent layer as torch lists them, and its steps in time."""

    def __init__(
        self, name: str, flat: Sequence[Tensor], biases: bool, layers: int, bidirectional: bool
    ) -> None:
        self.cell, self.layers = CELLS[name], layers
        self.directions = 2 if bidirectional else 1
        self.biases = biases
        each = len(flat) // (layers * self.directions)
        self.weights = [list(flat[at : at + each]) for at in range(0, len(flat), each)]

    def run(self, x: Tensor, start: Sequence[Tensor], sizes: Sequence[int]) -> tuple[Tensor, ...]:
        """Return outputs and last states; ``sizes`` says how many sequences each time has.

        x holds the rows of one time after another: (sum of sizes, features).
        """
        ends: list[State] = []
        for layer in range(self.layers):
            outputs = []
            for direction in range(self.directions):
                place = layer * self.directions + direction
                state = tuple(part[place] for part in start)
                rows, end = self._pass(x, state, sizes, self.weights[place], bool(direction))
                outputs.append(rows)
                ends.append(end)
            x = torch.cat(outputs, -1) if self.directions > 1 else outputs[0]
        return (x, *(torch.stack(parts) for parts in zip(*ends, strict=True)))

    def _pass(
        self, x: Tensor, first: State, sizes: Sequence[int], listed: list[Tensor], backwards: bool
    ) -> tuple[Tensor, State]:
        """Return the outputs and last state of one layer in one direction."""
        biases = listed[2:4] if self.biases else [None, None]
        projection = listed[-1] if len(listed) in (3, 5) else None
        weights = [listed[0], listed[1], *biases, projection]
        mapped = F.linear(x, listed[0], biases[0])
        steps = torch.split_with_sizes(mapped, list(sizes))
        order = range(len(steps))[::-1] if backwards else range(len(steps))
        state: State = tuple(part[: sizes[order[0]]] for part in first)
        seen: dict[int, Tensor] = {}
        done: list[State] = []
        for time in order:
            now, size = state[0].shape[0], sizes[time]
            if size < now:  # the shortest sequences have ended
                done.append(tuple(part[size:] for part in state))
                state = tuple(part[:size] for part in state)
            elif size > now:  # backwards in time, longer sequences begin
                more = (part[now:size] for part in first)
                state = tuple(torch.cat(pair) for pair in zip(state, more, strict=True))
            state = self.cell(state, steps[time], weights)
            seen[time] = state[0]
        if done:
            state = tuple(torch.cat(parts) for parts in zip(state, *reversed(done), strict=True))
        return torch.cat([seen[time] for time in range(len(steps))]), state


def unroll(name: str, *given: Any) -> tuple[Tensor, ...]:
    """Run a recurrent layer with torch's arguments for sequences of one length, or packed ones."""
    packed = isinstance(given[3], list | tuple)
    dropout, training, bidirectional = given[5:8] if not packed else given[6:9]
    flat, biases, layers = given[3:6] if packed else given[2:5]
    start = given[2] if packed else given[1]
    start = list(start) if isinstance(start, list | tuple) else [start]
    if dropout and training and layers > 1:
        raise refuse(f"{name} with dropout between its layers", ADVICE["random"])
    body = Layers(name, flat, biases, layers, bidirectional)
    x = given[0]
    if packed:
        return body.run(x, start, given[1].tolist())
    x = x.transpose(0, 1) if given[8] else x
    time, batch = x.shape[:2]
    out, *ends = body.run(x.reshape(time * batch, -1), start, [batch] * time)
    out = out.view(time, batch, -1)
    return (out.transpose(0, 1) if given[8] else out, *ends)


def step(name: str, x: Tensor, state: Any, *weights: Tensor | None) -> Any:
    """Return the next state of a cell: nn.LSTMCell, nn.GRUCell, nn.RNNCell."""
    w_in, w_state, b_in, b_state = [*weights, None, None][:4]
    assert w_in is not None
    states = tuple(state) if name == "lstm" else (state,)
    out = CELLS[name](states, F.linear(x, w_in, b_in), [w_in, w_state, b_in, b_state, None])
    return out if name == "lstm" else out[0]
