"""Layers: orthonormal before centring, zero mean and the right spread after."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import seedless
from seedless.init.bases import BASES
from seedless.init.layer_weights import (
    basis_filters,
    centre_and_scale,
    default_sigma,
    scale_filters,
)
from seedless.numerics.exact_sums import exact_gram

NAMES = sorted(BASES)
EXACT = ("dct", "hartley", "sinusoidal", "walsh")
SHAPES = st.one_of(
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.tuples(st.integers(1, 40), st.integers(1, 20), st.integers(1, 7)),
    st.tuples(st.integers(1, 40), st.integers(1, 9), st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 30), st.integers(1, 5), *[st.integers(1, 3)] * 3),
)


def structured_weights(name, shape):
    """The weights of a layer from a basis."""
    return scale_filters(basis_filters(name, shape), shape)


@pytest.mark.parametrize("name", EXACT)
@given(filters=st.integers(1, 60), channels=st.integers(1, 20), kernel=st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_rows_or_columns_are_orthonormal_before_centring(name, filters, channels, kernel):
    values = basis_filters(name, (filters, channels, kernel)).fill()
    tall = filters > channels * kernel
    inner = exact_gram(values.T if tall else values)
    assert np.abs(inner - np.eye(len(inner))).max() <= 1e-14


@pytest.mark.parametrize("name", NAMES)
@given(shape=SHAPES)
@settings(max_examples=60, deadline=None)
def test_mean_is_zero_and_spread_is_sigma(name, shape):
    basis_part = basis_filters(name, shape).fill()
    weights = structured_weights(name, shape).astype(np.float64)
    assert np.isfinite(weights).all()
    if basis_part.min() == basis_part.max():
        square = math.fsum((weights**2).ravel()) / weights.size
        assert math.isclose(math.sqrt(square), default_sigma(shape), rel_tol=1e-6)
        return
    mean = math.fsum(weights.ravel()) / weights.size
    ulp = float(np.spacing(np.float32(np.abs(weights).max())))
    assert abs(mean) <= ulp
    spread = math.sqrt(math.fsum(((weights - mean) ** 2).ravel()) / weights.size)
    assert math.isclose(spread, default_sigma(shape), rel_tol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (1, 3, 5), (5, 1), (2, 1), (1, 1, 1, 1), (7, 1)])
def test_layers_with_one_filter_or_one_input_are_finite(name, shape):
    weights = structured_weights(name, shape)
    assert np.isfinite(weights).all()
    assert np.abs(weights).max() > 0


def test_a_constant_layer_is_left_uncentred():
    weights = structured_weights("dct", (1, 8))  # the constant row alone
    assert (weights == weights[0, 0]).all()
    assert math.isclose(weights[0, 0], default_sigma((1, 8)), rel_tol=1e-7)


def test_a_layer_constant_as_real_numbers_is_not_mistaken_for_noise():
    # Both entries are sqrt(1/2); rounded separately their difference would be scaled up to sigma.
    weights = structured_weights("dct", (2, 1))
    assert weights[0, 0] == weights[1, 0]


def test_separable_filters_are_enumerated_channel_first():
    channel, row, column = (seedless.basis("dct", n) for n in (3, 2, 5))
    values = basis_filters("dct", (40, 3, 2, 5)).fill().reshape(40, 3, 2, 5)
    for f in (0, 1, 5, 9, 10, 29, 30, 39):
        c, spatial = divmod(f % 30, 10)
        u, v = divmod(spatial, 5)
        expected = channel[c][:, None, None] * row[u][None, :, None] * column[v][None, None, :]
        np.testing.assert_array_equal(values[f], expected)


def test_the_zero_frequency_filter_of_an_image_layer_survives():
    weights = structured_weights("dct", (64, 3, 3, 3)).reshape(64, -1)
    assert np.abs(weights[0]).max() > 0.1 * np.abs(weights).max()


def test_sigma_is_pytorchs_default_scale():
    layer = nn.Conv1d(64, 64, 5)
    assert math.isclose(default_sigma(tuple(layer.weight.shape)), 1 / math.sqrt(3 * 320))


def test_centring_uses_exact_sums():
    values = np.array([1e16, 1.0, -1e16, 3.0])
    centred = centre_and_scale(values, np.ones(4, dtype=np.int64), 1.0)
    ratio = (centred[3] - centred[1]) / (centred[0] - centred[2])
    assert math.isclose(ratio, 1e-16, rel_tol=1e-6)


def test_values_that_do_not_occur_do_not_count():
    counts = np.array([2, 0, 1, 3])
    table = centre_and_scale(np.array([0.5, 9.0, -1.0, 0.25]), counts, 0.1)
    occurring = np.repeat(table, counts)
    assert math.isclose(occurring.std(), 0.1, rel_tol=1e-12)
    assert abs(occurring.mean()) < 1e-16
    constant = centre_and_scale(np.array([0.5, 9.0]), np.array([4, 0]), 0.1)
    assert math.isclose(constant[0], 0.1, rel_tol=1e-15)


def centre_and_scale_entries(entries, sigma):
    """The same by entries, as the definition says it: the reference of the table."""
    if entries.min() != entries.max():
        entries = entries - math.fsum(entries.ravel()) / entries.size
    square = math.fsum((entries * entries).ravel()) / entries.size
    return (entries * (sigma / math.sqrt(square))).astype(np.float32)


@pytest.mark.parametrize("name", NAMES)
@given(shape=SHAPES)
@settings(max_examples=25, deadline=None)
def test_the_table_gives_the_bits_of_the_entries(name, shape):
    expected = centre_and_scale_entries(basis_filters(name, shape).fill(), default_sigma(shape))
    assert structured_weights(name, shape).tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(1024, 2048), (2048, 1024), (384, 384, 3, 3)])
def test_a_layer_needs_three_times_its_own_memory_at_most(shape):
    layer = nn.Linear(*shape[::-1]) if len(shape) == 2 else nn.Conv2d(*shape[:2], shape[2])
    tracemalloc.start()
    try:
        seedless.initialize(layer, "dct")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 3 * 4 * math.prod(shape)
