"""Padding by reflection and by repeating the edge: values are moved, their gradients added.

Law: an axis of length n becomes x[source[i]] for i = -before .. n - 1 + after; the gradient of x[j]
is the sum of those of every i with source[i] = j, on the grid of the axis, one axis after another.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from seedless.portable.exact.sums import add_at
from seedless.portable.ops.elementwise import Implementation

Source = Callable[[int, int, int], list[int]]


def reflect(length: int, before: int, after: int) -> list[int]:
    """Return where each padded place takes its value: mirrored, the edge itself not repeated."""
    places = [abs(place) for place in range(-before, length + after)]
    return [place if place < length else 2 * (length - 1) - place for place in places]


def repeat(length: int, before: int, after: int) -> list[int]:
    """Return where each padded place takes its value: the nearest one there is."""
    return [min(max(place, 0), length - 1) for place in range(-before, length + after)]


def pad(x: Tensor, widths: Sequence[int], source: Source) -> Tensor:
    """aten.reflection_pad1d to aten.replication_pad3d: widths from the last axis to the first."""
    for axis, before, after in _sides(x.ndim, widths):
        places = torch.tensor(source(x.shape[axis], before, after), device=x.device)
        x = x.index_select(axis, places)
    return x


def pad_backward(grad: Tensor, x: Tensor, widths: Sequence[int], source: Source) -> Tensor:
    """Add the gradient of each padded position to the value that was copied there."""
    out = grad.to(torch.float64)
    for axis, before, after in _sides(x.ndim, widths):
        places = torch.tensor(source(x.shape[axis], before, after), device=x.device)
        out = gather_back(out, axis, places, x.shape[axis])
    return out.to(x.dtype)


def gather_back(grad: Tensor, axis: int, places: Tensor, length: int) -> Tensor:
    """Return the sums, in float64, of what was taken from each of ``length`` places of an axis."""
    sizes = list(grad.shape)
    sizes[axis] = length
    zeros = torch.zeros(sizes, dtype=torch.float64, device=grad.device)
    return add_at(zeros, grad, [axis], lambda out, q: out.index_add_(axis, places, q))


def _sides(axes: int, widths: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (axis, before, after) for each padded axis, the last first."""
    pairs = zip(widths[::2], widths[1::2], strict=True)
    return [(axes - 1 - place, *pair) for place, pair in enumerate(pairs)]


IMPLEMENTATIONS: dict[str, Implementation] = {}
for _dimensions in (1, 2, 3):
    for _name, _source in (("reflection", reflect), ("replication", repeat)):
        _op = f"{_name}_pad{_dimensions}d"
        IMPLEMENTATIONS[f"aten::{_op}"] = partial(pad, source=_source)
        IMPLEMENTATIONS[f"aten::{_op}_backward"] = partial(pad_backward, source=_source)
