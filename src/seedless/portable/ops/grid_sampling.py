"""Sampling of images and volumes at the points of a grid (F.grid_sample), and its gradients.

Law: a coordinate of the grid becomes a position on its axis, in float64. Along each axis a position
reads one value (nearest), two (linear) or four (cubic), its taps; a point reads the product of the
taps of its axes. Its result is the sum of weight times value, tap after tap with those of the last
axis changing fastest, rounded once. A weight is a product over the axes, width first. The gradient
of the input is the sum of weight times gradient over all that read a value, on one grid for each
sample and channel. That of a coordinate is the exact sum over the channels of gradient times slope,
where the slope is the result with the weights of that axis replaced by their derivatives.

Positions are torch's: ((g + 1) size - 1) / 2, or (g + 1) / 2 (size - 1) with aligned corners; a NaN
counts as -1. The cubic weights are those of Keys (1981) with a = -0.75.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seedless.portable.exact.sums import add_at, divide, total
from seedless.portable.ops.elementwise import Implementation, make_constant, shape_along
from seedless.portable.ops.resize import CUBIC_A as A

NEAREST, CUBIC = 1, 2  # torch's numbers of interpolations; 0 is linear
BORDER, REFLECTION = 1, 2  # and of paddings; 0 is zeros


@dataclass(frozen=True)
class Tap:
    """One value that every point reads along one axis; tensors of shape (batch, points).

    Attributes:
        index: int64, 0 where the value is outside.
        is_inside: whether there is a value; what is outside counts as zero.
        weight: its float64 weight.
        slope: the derivative of the weight by the coordinate of the grid.
    """

    index: Tensor
    is_inside: Tensor
    weight: Tensor
    slope: Tensor


def find_taps(
    coordinate: Tensor, size: int, interpolation: int, padding: int, aligned: bool
) -> list[Tap]:
    """Return the taps of points along an axis of ``size`` values, from their coordinates."""
    # [Step 1] Turn coordinates in [-1, 1] into positions, with their derivative.
    g = coordinate.to(torch.float64)
    g = torch.where(g != g, torch.full_like(g, -1.0), g)
    position = (g + 1.0) * 0.5 * (size - 1) if aligned else ((g + 1.0) * size - 1.0) * 0.5
    rate = torch.full_like(g, (size - 1 if aligned else size) * 0.5)
    # [Step 2] Move positions inside, and find the first tap and the fraction t beyond it. Cubic
    # interpolation moves each of its taps instead.
    if interpolation != CUBIC:
        position, factor = move_inside(position, size, padding, aligned)
        rate = rate * factor
    first = torch.floor(position)
    t = position - first
    # [Step 3] Weigh the taps.
    if interpolation == NEAREST:
        return [_make_tap(torch.round(position), size, torch.ones_like(t), torch.zeros_like(t))]
    if interpolation != CUBIC:
        return [
            _make_tap(first, size, 1.0 - t, -rate),
            _make_tap(first + 1.0, size, t, rate),
        ]
    weights = (
        (t + 1.0, weigh_far, 1.0),
        (t, weigh_near, 1.0),
        (1.0 - t, weigh_near, -1.0),
        (2.0 - t, weigh_far, -1.0),
    )
    taps = []
    for step, (distance, weigh, sign) in enumerate(weights):
        at, _ = move_inside(first + float(step - 1), size, padding, aligned)
        weight, slope = weigh(distance)
        taps.append(_make_tap(at, size, weight, slope * sign * rate))
    return taps


def _make_tap(position: Tensor, size: int, weight: Tensor, slope: Tensor) -> Tap:
    """Return the tap at whole positions; what is outside has no weight."""
    is_inside = (position >= 0.0) & (position <= size - 1)
    index = torch.where(is_inside, position, torch.zeros_like(position)).to(torch.int64)
    zero = torch.zeros_like(weight)
    return Tap(
        index,
        is_inside,
        torch.where(is_inside, weight, zero),
        torch.where(is_inside, slope, zero),
    )


def weigh_near(t: Tensor) -> tuple[Tensor, Tensor]:
    """Return Keys' weight (a + 2) t^3 - (a + 3) t^2 + 1 at a distance up to 1, and its slope."""
    weight = (t * (A + 2.0) - (A + 3.0)) * t * t + 1.0
    return weight, (t * (3.0 * (A + 2.0)) - 2.0 * (A + 3.0)) * t


def weigh_far(t: Tensor) -> tuple[Tensor, Tensor]:
    """Return Keys' weight a t^3 - 5a t^2 + 8a t - 4a at a distance from 1 to 2, and its slope."""
    weight = ((t * A - 5.0 * A) * t + 8.0 * A) * t - 4.0 * A
    return weight, (t * (3.0 * A) - 10.0 * A) * t + 8.0 * A


def move_inside(position: Tensor, size: int, padding: int, aligned: bool) -> tuple[Tensor, Tensor]:
    """Return positions as the padding moves them, and the derivative: 1, 0 or -1.

    Zeros do not move. A position on the border or beyond it does not move further, so that its
    derivative is 0, as in torch.
    """
    factor = torch.ones_like(position)
    if padding == REFLECTION:
        low, span = (0.0, size - 1.0) if aligned else (-0.5, float(size))
        if span == 0.0:
            return torch.zeros_like(position), torch.zeros_like(position)
        distance = (position - low).abs()
        flips = torch.floor(divide(distance, span))
        rest = distance - flips * span
        is_even = torch.floor(flips * 0.5) * 2.0 == flips
        sign = torch.where(position < low, -factor, factor)
        position = torch.where(is_even, rest, span - rest) + low
        factor = torch.where(is_even, sign, -sign)
    if padding in (BORDER, REFLECTION):
        is_between = (position > 0.0) & (position < size - 1)
        factor = torch.where(is_between, factor, torch.zeros_like(factor))
        position = position.clamp(0.0, size - 1.0)
    return position, factor


def _find_all_taps(
    grid: Tensor, sizes: Sequence[int], interpolation: int, padding: int, aligned: bool
) -> list[list[Tap]]:
    """Return the taps along each axis of the input; a grid names the last axis first."""
    points = grid.reshape(grid.shape[0], -1, len(sizes))
    return [
        find_taps(points[..., len(sizes) - 1 - axis], size, interpolation, padding, aligned)
        for axis, size in enumerate(sizes)
    ]


def _find_index(read: Sequence[Tap], sizes: Sequence[int]) -> Tensor:
    """Return the index in the flattened axes that the taps of all axes lead to."""
    index = read[0].index
    for tap, size in zip(read[1:], sizes[1:], strict=True):
        index = index * size + tap.index
    return index


def _multiply(factors: Sequence[Tensor]) -> Tensor:
    """Return the product over the axes, the last one first."""
    out = factors[-1]
    for factor in reversed(factors[:-1]):
        out = out * factor
    return out


def _read_values(x: Tensor, taps: Sequence[Sequence[Tap]], slope_of: int | None = None) -> Tensor:
    """Return the float64 sum of weight times value: (batch, channels, points).

    ``slope_of``: the axis whose weights are replaced by their derivatives.
    """
    flat, out = x.flatten(2), None
    for read in itertools.product(*taps):
        index = _find_index(read, x.shape[2:])
        value = flat.gather(2, index[:, None].expand(-1, flat.shape[1], -1)).to(torch.float64)
        for tap in read:  # an infinite value outside must not become a NaN
            value = torch.where(tap.is_inside[:, None], value, torch.zeros_like(value))
        factors = [tap.slope if axis == slope_of else tap.weight for axis, tap in enumerate(read)]
        part = value * _multiply(factors)[:, None]
        out = part if out is None else out + part
    assert out is not None
    return out


def sample_grid(x: Tensor, grid: Tensor, interpolation: int, padding: int, aligned: bool) -> Tensor:
    """Return x (batch, channels, *sizes) at a grid (batch, *out, axes): (batch, channels, *out)."""
    taps = _find_all_taps(grid, x.shape[2:], interpolation, padding, aligned)
    return _read_values(x, taps).to(x.dtype).view(*x.shape[:2], *grid.shape[1:-1])


def sample_grid_backward(
    grad: Tensor,
    x: Tensor,
    grid: Tensor,
    interpolation: int,
    padding: int,
    aligned: bool,
    output_mask: Sequence[bool] = (True, True),
) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients of x and of the grid, those that ``output_mask`` asks for."""
    sizes = x.shape[2:]
    taps = _find_all_taps(grid, sizes, interpolation, padding, aligned)
    wide = grad.flatten(2).to(torch.float64)
    for_x = for_grid = None
    if output_mask[0]:
        # All reads in one sum, so that they share a grid: (batch, channels, reads * points).
        reads = list(itertools.product(*taps))
        parts = [wide * _multiply([tap.weight for tap in read])[:, None] for read in reads]
        indices = torch.cat([_find_index(read, sizes) for read in reads], 1)
        spread = indices[:, None].expand(-1, x.shape[1], -1)
        zeros = torch.zeros(x.flatten(2).shape, dtype=torch.float64, device=x.device)
        sums = add_at(
            zeros, torch.cat(parts, 2), [2], lambda out, q: out.scatter_add_(2, spread, q)
        )
        for_x = sums.to(x.dtype).view(x.shape)
    if output_mask[1]:
        slopes = [_read_values(x, taps, axis) for axis in reversed(range(len(sizes)))]
        for_grid = torch.stack([total(wide * slope, 1) for slope in slopes], -1)
        for_grid = for_grid.to(grid.dtype).view(grid.shape)
    return for_x, for_grid


def make_affine_grid(theta: Tensor, size: Sequence[int], aligned: bool) -> Tensor:
    """Return the grid (batch, *sizes, axes) of affine maps theta (batch, axes, axes + 1).

    Each coordinate is theta's row times (x, y, 1), or (x, y, z, 1), added in that order.
    """
    out = None
    wide = theta.to(torch.float64)
    for column, base in enumerate(_list_base_coordinates(size, aligned, theta.device)):
        part = base[None, ..., None] * wide[:, :, column].view(
            len(wide), *[1] * (len(size) - 2), wide.shape[1]
        )
        out = part if out is None else out + part
    assert out is not None
    return out.to(theta.dtype)


def _list_base_coordinates(
    size: Sequence[int], aligned: bool, device: torch.device
) -> list[Tensor]:
    """Return the float64 coordinates of every point, the last axis first, and then ones.

    Coordinates are computed in Python: (2 i + 1) / length - 1, or 2 i / (length - 1) - 1 with
    aligned corners; an axis of one point has the coordinate 0.
    """
    lengths = size[2:]
    bases = []
    for axis, length in reversed(list(enumerate(lengths))):
        steps, offset = (length - 1, 0) if aligned else (length, 1)
        values = [(2 * i + offset) / steps - 1.0 if length > 1 else 0.0 for i in range(length)]
        line = make_constant(values, device, torch.float64)
        bases.append(line.view(shape_along(axis, len(lengths))).expand(*lengths))
    return [*bases, torch.ones(*lengths, dtype=torch.float64, device=device)]


def _sample_as_cudnn(x: Tensor, grid: Tensor) -> Tensor:
    """Return what cuDNN's op samples: linear, zeros outside, aligned corners."""
    return sample_grid(x, grid, 0, 0, True)


def _sample_as_cudnn_backward(
    x: Tensor, grid: Tensor, grad: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    return sample_grid_backward(grad, x, grid, 0, 0, True)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "aten::grid_sampler_2d": sample_grid,
    "aten::grid_sampler_3d": sample_grid,
    "aten::grid_sampler_2d_backward": sample_grid_backward,
    "aten::grid_sampler_3d_backward": sample_grid_backward,
    "aten::cudnn_grid_sampler": _sample_as_cudnn,
    "aten::cudnn_grid_sampler_backward": _sample_as_cudnn_backward,
    "aten::affine_grid_generator": make_affine_grid,
}
