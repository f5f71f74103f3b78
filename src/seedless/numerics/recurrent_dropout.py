"""Dropout between the layers of LSTM, GRU and RNN, drawn by sample.

Torch draws it inside one call for all layers. Here each layer is a call of its own, without
dropout, and what it returns is dropped before the next.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from seedless.core.errors import NumericsError
from seedless.numerics.active_keys import find_keys
from seedless.numerics.sample_draws import draw_words, drop

DrawLayer = Callable[[], int]


def run_layers(
    func: Any, args: tuple[Any, ...], inputs: tuple[Any, ...], number_layer: DrawLayer
) -> tuple[Tensor, ...]:
    """Return what torch's ``func`` (lstm, gru, rnn_tanh, rnn_relu) returns for its ``args``.

    Args:
        func: torch's function for all layers.
        args: its arguments: input, state, weights, has_biases, layers, dropout, train,
            bidirectional, batch_first; or data, batch_sizes, state, ... without batch_first for
            packed sequences.
        inputs: what the module was called with; a packed sequence says which sample a row is of.
        number_layer: gives the number of the next layer that draws.
    """
    packed = is_packed(args)
    data, rest = args[0], args[2:] if packed else args[1:]
    state, weights, has_biases, layers, p, train, bidirectional = rest[:7]
    directions = 2 if bidirectional else 1
    each = len(weights) // layers
    states = state if isinstance(state, tuple | list) else (state,)
    ends: list[Sequence[Tensor]] = []
    for layer in range(layers):
        if layer:
            number = number_layer()
            if packed:
                data = _drop_packed(data, args[1], p, inputs, number)
            else:
                axis = None if data.ndim == 2 else (0 if rest[7] else 1)
                data = drop(data, p, layer=number, axis=axis)
        own = tuple(one[layer * directions : (layer + 1) * directions] for one in states)
        begin = own if isinstance(state, tuple | list) else own[0]
        own_weights = weights[layer * each : (layer + 1) * each]
        if data.is_cuda:  # without biases, torch takes a part of its buffer for the whole of it
            own_weights = [weight.clone() for weight in own_weights]
        part = (begin, own_weights, has_biases, 1, 0.0, train)
        called = (data, args[1], *part) if packed else (data, *part)
        data, *end = func(*called, bidirectional, *rest[7:])
        ends.append(end)
    return (data, *(torch.cat(parts) for parts in zip(*ends, strict=True)))


def is_packed(args: tuple[Any, ...]) -> bool:
    """Whether the arguments of torch's function are those for packed sequences."""
    return not isinstance(args[3], bool)  # the weights, and not has_biases


def _drop_packed(
    data: Tensor, batch_sizes: Tensor, p: float, inputs: tuple[Any, ...], layer: int
) -> Tensor:
    """Return the rows of a packed sequence with elements dropped, as in a padded one (B, T, F)."""
    packed = inputs[0] if inputs else None
    if not isinstance(packed, PackedSequence):
        raise NumericsError(
            "dropout between the layers of a recurrent network on packed data needs the module's "
            "own call, which says the samples: call nn.LSTM, nn.GRU or nn.RNN with the packed "
            "sequence, or pass padded input"
        )
    sizes = batch_sizes.tolist()
    order = packed.sorted_indices
    rows = torch.arange(sizes[0], device=data.device) if order is None else order.to(data.device)
    shape = (len(find_keys().samples), len(sizes), data.shape[1])
    words = draw_words(shape, layer=layer, axis=0, device=data.device)
    keep = torch.cat([words[rows[:size], time] for time, size in enumerate(sizes)])
    return data * (keep < round((1.0 - p) * 2**32)).to(data.dtype) * (1.0 / (1.0 - p))
