"""Exact sums and Gram matrices against rational numbers and big integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seedless.core.errors import NumericsError
from seedless.numerics.exact_sums import (
    exact_gram,
    exact_product,
    exact_row_sums,
    exact_sum,
    exact_weighted_sum,
)

NUMBERS = st.floats(-1e30, 1e30, allow_subnormal=True)


@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=40), elements=NUMBERS)
)
@settings(deadline=None)
def test_row_sums_are_exactly_rounded(matrix):
    assert exact_row_sums(matrix).tolist() == [math.fsum(row) for row in matrix.tolist()]


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=30),
        elements=st.floats(width=32, allow_nan=False, allow_infinity=False),
    )
)
@settings(deadline=None)
def test_row_sums_of_float32_over_its_whole_range(matrix):
    exact = [float(sum(map(Fraction, row), Fraction(0))) for row in matrix.astype(float).tolist()]
    assert exact_row_sums(matrix).tolist() == exact


@given(st.permutations(range(12)), hnp.arrays(np.float64, 12, elements=NUMBERS))
def test_the_order_of_summation_does_not_show(order, values):
    assert exact_sum(values) == exact_sum(values[order])


def test_large_cancelling_sums():
    values = np.array([1e16, 1.0, -1e16, 1e-16] * 5000)
    assert exact_sum(values) == math.fsum(values)


def test_integers_and_empty_rows():
    assert exact_row_sums(np.array([[2**62, 2**62, -1]])).tolist() == [float(2**63 - 1)]
    assert exact_row_sums(np.zeros((2, 0))).tolist() == [0.0, 0.0]
    assert exact_row_sums(np.zeros((0, 3))).tolist() == []


@pytest.mark.parametrize("bad", [np.inf, 1e308])
def test_sums_that_cannot_be_exact_are_refused(bad):
    with pytest.raises(NumericsError):
        exact_row_sums(np.array([[bad, 1.0]]))


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 5), st.integers(1, 12)),
        elements=st.floats(-1, 1).filter(lambda v: v == 0 or abs(v) > 1e-4),
    )
)
@settings(deadline=None)
def test_gram_against_rational_arithmetic(rows):
    exact = [
        [sum(Fraction(a) * Fraction(b) for a, b in zip(u, v, strict=True)) for v in rows.tolist()]
        for u in rows.tolist()
    ]
    for got, want in zip(exact_gram(rows).ravel(), np.array(exact).ravel(), strict=True):
        assert abs(Fraction(float(got)) - want) <= Fraction(1, 2**50)


def test_gram_does_not_depend_on_the_order_of_columns():
    rows = np.cos(np.arange(7 * 999.0)).reshape(7, 999)
    order = np.argsort(np.sin(np.arange(999.0)))
    np.testing.assert_array_equal(exact_gram(rows), exact_gram(rows[:, order]))
    assert (rows @ rows.T != rows[:, order] @ rows[:, order].T).any()  # a plain product does


def test_a_product_of_two_matrices_is_as_exact_as_a_gram_matrix():
    rows = np.cos(np.arange(7 * 999.0)).reshape(7, 999)
    np.testing.assert_array_equal(exact_product(rows, rows.copy()), exact_gram(rows))
    left, right = rows[:3, :40], np.sin(rows[3:, :40])
    for i, u in enumerate(left.tolist()):
        for j, v in enumerate(right.tolist()):
            want = sum(Fraction(a) * Fraction(b) for a, b in zip(u, v, strict=True))
            got = Fraction(float(exact_product(left, right)[i, j]))
            assert abs(got - want) <= Fraction(1, 2**47)


@given(
    terms=st.lists(
        st.tuples(
            st.floats(-1e100, 1e100, allow_subnormal=False).filter(
                lambda x: x == 0 or abs(x) > 1e-200
            ),
            st.integers(0, 2**35 - 1),
        ),
        min_size=1,
        max_size=20,
    )
)
@settings(deadline=None)
def test_weighted_sums_are_rounded_once(terms):
    expected = sum((Fraction(value) * count for value, count in terms), Fraction(0))
    values, counts = (np.array(column) for column in zip(*terms, strict=True))
    assert exact_weighted_sum(values, counts) == float(expected)
