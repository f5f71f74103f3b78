"""LSTM, GRU and RNN layers computed step by step in time, and packed sequences.

Torch would call a library's kernel for a whole layer. Here a cell is two linear maps and its
activations, each a portable op, with the formulas of torch.nn.LSTM, GRU and RNN. The layers are
called by `function_overrides`; only packing is an op that the dispatch mode sees.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from seedless.portable.ops.elementwise import Implementation
from seedless.portable.refusal import ADVICE, refuse

State = tuple[Tensor, ...]


def _lstm(state: State, mapped: Tensor, weights: Sequence[Tensor | None]) -> State:
    """Return the next (h, c): c' = f c + i g, h' = o tanh(c'), projected where a weight is there.

    The gates i, f, g, o are the quarters of ``mapped``, which is W x + b, plus W h + b.
    """
    gates = mapped + F.linear(state[0], weights[1], weights[3])  # type: ignore[arg-type]  # a weight
    i, f, g, o = gates.chunk(4, -1)
    cell = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    out = torch.sigmoid(o) * torch.tanh(cell)
    return out if weights[4] is None else F.linear(out, weights[4]), cell


def _gru(state: State, mapped: Tensor, weights: Sequence[Tensor | None]) -> State:
    """Return the next h, n + z (h - n), with n = tanh(W x + r W h); r, z, n are the gates."""
    inner = F.linear(state[0], weights[1], weights[3])  # type: ignore[arg-type]  # a weight
    reset, update, new = mapped.chunk(3, -1)
    inner_reset, inner_update, inner_new = inner.chunk(3, -1)
    update = torch.sigmoid(update + inner_update)
    new = torch.tanh(new + torch.sigmoid(reset + inner_reset) * inner_new)
    return (new + update * (state[0] - new),)


def _make_rnn(activate: Any) -> Any:
    """Return the cell h' = activate(W x + b + W h + b)."""

    def step(state: State, mapped: Tensor, weights: Sequence[Tensor | None]) -> State:
        return (activate(mapped + F.linear(state[0], weights[1], weights[3])),)  # type: ignore[arg-type]  # a weight

    return step


CELLS: dict[str, Any] = {
    "lstm": _lstm,
    "gru": _gru,
    "rnn_tanh": _make_rnn(torch.tanh),
    "rnn_relu": _make_rnn(torch.relu),
}


class Layers:
    """The layers of an nn.LSTM, nn.GRU or nn.RNN.

    ``flat`` are the weights as torch lists them: for each layer and direction input weight, state
    weight, with ``biases`` their two biases, and the projection of an LSTM that has one.
    """

    def __init__(
        self, name: str, flat: Sequence[Tensor], biases: bool, layers: int, bidirectional: bool
    ) -> None:
        self.cell, self.layers = CELLS[name], layers
        self.directions = 2 if bidirectional else 1
        self.biases = biases
        count = len(flat) // (layers * self.directions)
        self.weights = [list(flat[i : i + count]) for i in range(0, len(flat), count)]

    def run(self, x: Tensor, start: Sequence[Tensor], sizes: Sequence[int]) -> tuple[Tensor, ...]:
        """Return the outputs (sum of sizes, features) and the last states (layers, batch, ...).

        ``x`` holds the rows of one step in time after another, (sum of sizes, features); ``sizes``
        says how many sequences each step has.
        """
        ends: list[State] = []
        for layer in range(self.layers):
            outputs = []
            for direction in range(self.directions):
                i = layer * self.directions + direction
                state = tuple(part[i] for part in start)
                rows, end = self._run_layer(x, state, sizes, self.weights[i], bool(direction))
                outputs.append(rows)
                ends.append(end)
            x = torch.cat(outputs, -1) if self.directions > 1 else outputs[0]
        return (x, *(torch.stack(parts) for parts in zip(*ends, strict=True)))

    def _run_layer(
        self, x: Tensor, first: State, sizes: Sequence[int], listed: list[Tensor], backwards: bool
    ) -> tuple[Tensor, State]:
        """Return the outputs and last state of one layer in one direction."""
        # [Step 1] Map the inputs of all steps in time at once.
        biases = listed[2:4] if self.biases else [None, None]
        projection = listed[-1] if len(listed) in (3, 5) else None
        weights = [listed[0], listed[1], *biases, projection]
        mapped = F.linear(x, listed[0], biases[0])
        steps = torch.split_with_sizes(mapped, list(sizes))
        order = range(len(steps))[::-1] if backwards else range(len(steps))
        state: State = tuple(part[: sizes[order[0]]] for part in first)
        outputs: dict[int, Tensor] = {}
        ended: list[State] = []
        for time in order:
            # [Step 2] Let the state have one row for each sequence of this step.
            count, size = state[0].shape[0], sizes[time]
            if size < count:  # the shortest sequences have ended
                ended.append(tuple(part[size:] for part in state))
                state = tuple(part[:size] for part in state)
            elif size > count:  # backwards in time, longer sequences begin
                more = (part[count:size] for part in first)
                state = tuple(torch.cat(pair) for pair in zip(state, more, strict=True))
            # [Step 3] Compute the next state.
            state = self.cell(state, steps[time], weights)
            outputs[time] = state[0]
        # [Step 4] Join the last states, the longest sequences first, and the outputs in time.
        if ended:
            state = tuple(torch.cat(parts) for parts in zip(state, *reversed(ended), strict=True))
        return torch.cat([outputs[time] for time in range(len(steps))]), state


def unroll(name: str, *args: Any) -> tuple[Tensor, ...]:
    """Return what torch.lstm, gru, rnn_tanh or rnn_relu returns: outputs and last states.

    Torch has two lists of arguments; only packed sequences have a list as the fourth one.
    sequences of one length: x, state, weights, biases, layers, dropout, training, bidirectional,
    batch_first; packed ones: x, sizes, state, weights, biases, layers, dropout, training,
    bidirectional.
    """
    packed = isinstance(args[3], list | tuple)
    dropout, training, bidirectional = args[6:9] if packed else args[5:8]
    flat, biases, layers = args[3:6] if packed else args[2:5]
    start = args[2] if packed else args[1]
    start = list(start) if isinstance(start, list | tuple) else [start]
    if dropout and training and layers > 1:
        raise refuse(f"{name} with dropout between its layers", ADVICE["random"])
    stack = Layers(name, flat, biases, layers, bidirectional)
    x = args[0]
    if packed:
        return stack.run(x, start, args[1].tolist())
    batch_first = args[8]
    x = x.transpose(0, 1) if batch_first else x
    time, batch = x.shape[:2]
    out, *ends = stack.run(x.reshape(time * batch, -1), start, [batch] * time)
    out = out.view(time, batch, -1)
    return (out.transpose(0, 1) if batch_first else out, *ends)


def step(name: str, x: Tensor, state: Any, *weights: Tensor | None) -> Any:
    """Return the next state of a cell: nn.LSTMCell, nn.GRUCell, nn.RNNCell."""
    w_in, w_state, b_in, b_state = [*weights, None, None][:4]
    assert w_in is not None
    states = tuple(state) if name == "lstm" else (state,)
    out = CELLS[name](states, F.linear(x, w_in, b_in), [w_in, w_state, b_in, b_state, None])
    return out if name == "lstm" else out[0]


def pack(x: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """Return aten._pack_padded_sequence: rows (sum of lengths, ...), and how many each step has.

    ``lengths`` are sorted, the longest first. The rows of a step are those of the sequences that
    are longer than it.
    """
    x = x.transpose(0, 1) if batch_first else x
    sizes = [sum(length > time for length in lengths.tolist()) for time in range(int(lengths[0]))]
    return torch.cat([x[time, :size] for time, size in enumerate(sizes)]), torch.tensor(sizes)


def pack_backward(grad: Tensor, shape: Sequence[int], sizes: Tensor, batch_first: bool) -> Tensor:
    """Return the gradient of ``shape``: each row's where the row was read, elsewhere zero."""
    out = grad.new_zeros([shape[1], shape[0], *shape[2:]] if batch_first else list(shape))
    start = 0
    for time, size in enumerate(sizes.tolist()):
        out[time, :size] = grad[start : start + size]
        start += size
    return out.transpose(0, 1) if batch_first else out


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::_pack_padded_sequence": pack,
    "aten::_pack_padded_sequence_backward": pack_backward,
}
