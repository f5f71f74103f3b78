"""Padding by reflection and by repeating the edge: values are moved, their gradients added.

Law: an axis of length n becomes x[source[i]] for i = -before .. n - 1 + after. The gradient of x[j]
is the sum of the gradients of every i with source[i] = j, on the grid of the axis, one axis after
another.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from seedless.portable.exact.sums import add_at
from seedless.portable.ops.elementwise import Implementation, make_constant

Source = Callable[[int, int, int], list[int]]


def reflect(length: int, before: int, after: int) -> list[int]:
    """Return the source index of each padded one: mirrored, the edge itself not repeated."""
    indices = [abs(index) for index in range(-before, length + after)]
    return [index if index < length else 2 * (length - 1) - index for index in indices]


def repeat(length: int, before: int, after: int) -> list[int]:
    """Return the source index of each padded one: the nearest index of the axis."""
    return [min(max(index, 0), length - 1) for index in range(-before, length + after)]


def pad(x: Tensor, widths: Sequence[int], source: Source) -> Tensor:
    """Return x padded by ``widths``, (before, after) for each axis from the last to the first."""
    for axis, before, after in _list_sides(x.ndim, widths):
        indices = make_constant(source(x.shape[axis], before, after), x.device)
        x = x.index_select(axis, indices)
    return x


def pad_backward(grad: Tensor, x: Tensor, widths: Sequence[int], source: Source) -> Tensor:
    """Return the gradient like x: each padded value's, added to the value it was copied from."""
    out = grad.to(torch.float64)
    for axis, before, after in _list_sides(x.ndim, widths):
        indices = make_constant(source(x.shape[axis], before, after), x.device)
        out = sum_at(out, axis, indices, x.shape[axis])
    return out.to(x.dtype)


def sum_at(values: Tensor, axis: int, indices: Tensor, length: int) -> Tensor:
    """Return float64 sums, ``length`` along an axis: sum i is over the values with index i.

    It is the gradient of index_select(axis, indices), on the grid of each row along the axis.
    """
    sizes = list(values.shape)
    sizes[axis] = length
    zeros = torch.zeros(sizes, dtype=torch.float64, device=values.device)
    return add_at(zeros, values, [axis], lambda out, q: out.index_add_(axis, indices, q))


def _list_sides(axes: int, widths: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (axis, before, after) for each padded axis, the last first."""
    pairs = zip(widths[::2], widths[1::2], strict=True)
    return [(axes - 1 - i, *pair) for i, pair in enumerate(pairs)]


IMPLEMENTATIONS: dict[str, Implementation] = {}
for _dimensions in (1, 2, 3):
    for _name, _source in (("reflection", reflect), ("replication", repeat)):
        _op = f"{_name}_pad{_dimensions}d"
        IMPLEMENTATIONS[f"aten::{_op}"] = partial(pad, source=_source)
        IMPLEMENTATIONS[f"aten::{_op}_backward"] = partial(pad_backward, source=_source)
