"""A layer's weights, from a basis or from counter-based numbers.

A layer's weight is (O, I, *kernel): O filters of fan-in F = I * prod(kernel).
"""

import math

import numpy as np
from numpy.typing import NDArray

from seedless.core.registry import choose
from seedless.init.bases import BASES
from seedless.init.random_matrices import CounterKey, draw_orthogonal, scramble_dct
from seedless.numerics.counter_random import draw_uniform
from seedless.numerics.exact_sums import exact_sum
from seedless.numerics.normal_quantile import normal_quantile

Float64 = NDArray[np.float64]


def fan_in(shape: tuple[int, ...]) -> int:
    """Return F = I * prod(kernel) of a weight (O, I, *kernel)."""
    return math.prod(shape[1:])


def default_sigma(shape: tuple[int, ...]) -> float:
    """Return 1/sqrt(3 F), the standard deviation of PyTorch's default convolution weights."""
    return 1.0 / math.sqrt(3 * fan_in(shape))


def basis_filters(name: str, shape: tuple[int, ...]) -> Float64:
    """Return the layer's filters as basis vectors, before centring: float64 (O, F).

    Dense layers and 1-D convolutions use the first F entries of the first O rows of the basis of
    size max(O, F): with O <= F the rows are orthonormal, with O > F the columns are. Filters of
    convolutions over two or more dimensions are separable.
    """
    if len(shape) > 3:
        return _separable_filters(name, shape)
    filters, features = shape[0], fan_in(shape)
    return choose("basis", name, BASES)(max(filters, features), filters, features)


def _separable_filters(name: str, shape: tuple[int, ...]) -> Float64:
    """Return products of a channel basis and one spatial basis for each axis: (O, F).

    Filters are enumerated with the channel index outermost and the last spatial index innermost; a
    layer with more filters than products repeats them in turn.
    """
    corner = choose("basis", name, BASES)
    filters, *axes = shape
    unique = math.prod(axes)
    digits = np.unravel_index(np.arange(filters) % unique, axes)
    out = np.ones((filters, 1))
    for size, digit in zip(axes, digits, strict=True):
        factor = corner(size, size, size)[digit]
        out = (out[:, :, None] * factor[:, None, :]).reshape(filters, -1)
    return out


def centre_and_scale(values: Float64, sigma: float) -> Float64:
    """Return the values minus their mean, scaled to the population standard deviation sigma.

    Both sums are exactly rounded. Constant values would be zero after centring; they are not
    centred, but scaled to the root mean square sigma. In every basis equal real numbers are equal
    floats, so comparing the extremes detects this without a tolerance.
    """
    if values.min() != values.max():
        values = values - exact_sum(values) / values.size
    return values * (sigma / math.sqrt(exact_sum(values * values) / values.size))


def orthogonal_filters(shape: tuple[int, ...], key: CounterKey) -> Float64:
    """Return filters from a random orthogonal matrix of size max(O, F), before centring: (O, F)."""
    return draw_orthogonal(shape[0], fan_in(shape), key)


def scrambled_filters(shape: tuple[int, ...], key: CounterKey) -> Float64:
    """Return filters from a scrambled DCT-II of size max(O, F), before centring: (O, F)."""
    return scramble_dct(shape[0], fan_in(shape), key)


def scale_filters(filters: Float64, shape: tuple[int, ...]) -> Float64:
    """Return the layer's weights from its filters (O, F), before rounding: float64 of ``shape``."""
    return centre_and_scale(filters, default_sigma(shape)).reshape(shape)


def uniform_weights(shape: tuple[int, ...], features: int, key: CounterKey) -> Float64:
    """Return PyTorch's default, uniform in +-1/sqrt(F): a function of (key, index)."""
    unit = 2.0 * draw_uniform(*key, math.prod(shape)) - 1.0
    return (unit / math.sqrt(features)).reshape(shape)


def normal_weights(shape: tuple[int, ...], features: int, key: CounterKey) -> Float64:
    """Return N(0, 2/F), He's initialization (ICCV 2015): a function of (key, index)."""
    normal = normal_quantile(draw_uniform(*key, math.prod(shape)))
    return (normal * math.sqrt(2.0 / features)).reshape(shape)
