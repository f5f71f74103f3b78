"""A layer's weights, from a basis or from counter-based numbers.

A layer's weight is (O, I, *kernel): O filters of fan-in F = I * prod(kernel).
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from seedless.core.registry import choose
from seedless.init.bases import BASES
from seedless.init.random_matrices import CounterKey, draw_orthogonal, scramble_dct
from seedless.init.tabled_matrix import TabledMatrix, table_of_entries
from seedless.numerics.counter_random import draw_uniform
from seedless.numerics.exact_sums import exact_row_sums, exact_weighted_sum
from seedless.numerics.normal_quantile import normal_quantile

Float64 = NDArray[np.float64]


def fan_in(shape: tuple[int, ...]) -> int:
    """Return F = I * prod(kernel) of a weight (O, I, *kernel)."""
    return math.prod(shape[1:])


def default_sigma(shape: tuple[int, ...]) -> float:
    """Return 1/sqrt(3 F), the standard deviation of PyTorch's default convolution weights."""
    return 1.0 / math.sqrt(3 * fan_in(shape))


def basis_filters(name: str, shape: tuple[int, ...]) -> TabledMatrix:
    """Return the layer's filters as basis vectors, before centring: (O, F).

    Dense layers and 1-D convolutions use the first F entries of the first O rows of the basis of
    size max(O, F): with O <= F the rows are orthonormal, with O > F the columns are. Filters of
    convolutions over two or more dimensions are separable.
    """
    if len(shape) > 3:
        return _separable_filters(name, shape)
    filters, features = shape[0], fan_in(shape)
    return choose("basis", name, BASES)(max(filters, features), filters, features)


def _separable_filters(name: str, shape: tuple[int, ...]) -> TabledMatrix:
    """Return products of a channel basis and one spatial basis for each axis: (O, F).

    Filters are enumerated with the channel index outermost and the last spatial index innermost; a
    layer with more filters than products repeats them in turn.
    """
    corner = choose("basis", name, BASES)
    filters, *axes = shape
    digits = np.unravel_index(np.arange(filters) % math.prod(axes), axes)
    factors = [corner(size, size, size).drop_repeats() for size in axes]
    if math.prod(len(factor.table) for factor in factors) > math.prod(shape):
        # More products of values than entries: computing the entries themselves costs less.
        rows = [factor.fill()[digit] for factor, digit in zip(factors, digits, strict=True)]
        return table_of_entries(_multiply_outer(rows))

    def find_positions(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        positions = np.zeros((len(rows), 1), dtype=np.int64)
        for factor, digit in zip(factors, digits, strict=True):
            own = factor.find_positions(digit[rows])
            outer = positions[:, :, None] * len(factor.table) + own[:, None, :]
            positions = outer.reshape(len(rows), -1)
        return positions

    table = _multiply_outer([factor.table[None, :] for factor in factors])[0]
    return TabledMatrix(filters, fan_in(shape), table, find_positions)


def _multiply_outer(factors: list[Float64]) -> Float64:
    """Return the products of one value of each factor, the last changing fastest: (n, *) each."""
    out = np.ones((len(factors[0]), 1))
    for factor in factors:
        out = (out[:, :, None] * factor[:, None, :]).reshape(len(out), -1)
    return out


def centre_and_scale(values: Float64, counts: NDArray[np.int64], sigma: float) -> Float64:
    """Return the values minus their mean, scaled to the population standard deviation sigma.

    Value i occurs ``counts[i]`` times in the layer. Both sums are exactly rounded. Constant values
    would be zero after centring; they are not centred, but scaled to the root mean square sigma. In
    every basis equal real numbers are equal floats, so comparing the extremes detects this without
    a tolerance.
    """
    total = int(counts.sum())
    occurring = values[counts > 0]
    if occurring.min() != occurring.max():
        values = values - exact_weighted_sum(values, counts) / total
    return values * (sigma / math.sqrt(exact_weighted_sum(values * values, counts) / total))


def orthogonal_filters(shape: tuple[int, ...], key: CounterKey) -> TabledMatrix:
    """Return filters from a random orthogonal matrix of size max(O, F), before centring: (O, F)."""
    return table_of_entries(draw_orthogonal(shape[0], fan_in(shape), key))


def scrambled_filters(shape: tuple[int, ...], key: CounterKey) -> TabledMatrix:
    """Return filters from a scrambled DCT-II of size max(O, F), before centring: (O, F)."""
    return scramble_dct(shape[0], fan_in(shape), key)


def scale_filters(
    filters: TabledMatrix, shape: tuple[int, ...], scale: float = 1.0
) -> NDArray[np.float32]:
    """Return the layer's weights from its filters (O, F): float32 of ``shape``, rounded once."""
    table = centre_and_scale(filters.table, filters.count(), default_sigma(shape)) * scale
    return replace(filters, table=table).fill(np.float32).reshape(shape)


def weight_norms(weight: NDArray[np.float32], shape: tuple[int, ...]) -> Float64:
    """Return the norms of a weight over the axes that have the length 1 in ``shape``.

    A shape without axes means the norm of the whole weight.
    """
    values = weight.astype(np.float64)
    kept = [axis for axis, size in enumerate(shape) if size == weight.shape[axis]]
    rows = math.prod(weight.shape[axis] for axis in kept)
    others = [axis for axis in range(weight.ndim) if axis not in kept]
    squares = np.transpose(values * values, [*kept, *others]).reshape(rows, -1)
    return np.sqrt(exact_row_sums(squares)).reshape(shape)


def uniform_weights(shape: tuple[int, ...], features: int, key: CounterKey) -> Float64:
    """Return PyTorch's default, uniform in +-1/sqrt(F): a function of (key, index)."""
    unit = 2.0 * draw_uniform(*key, math.prod(shape)) - 1.0
    return (unit / math.sqrt(features)).reshape(shape)


def normal_weights(shape: tuple[int, ...], features: int, key: CounterKey) -> Float64:
    """Return N(0, 2/F), He's initialization (ICCV 2015): a function of (key, index)."""
    normal = normal_quantile(draw_uniform(*key, math.prod(shape)))
    return (normal * math.sqrt(2.0 / features)).reshape(shape)
