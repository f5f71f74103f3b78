"""Random matrices: orthonormal, no direction preferred, and a function of their key alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seedless
from seedless.init.random_matrices import draw_orthogonal, make_orthonormal, scramble_dct
from seedless.init.tabled_matrix import TabledMatrix
from seedless.numerics.exact_sums import exact_gram

SIZES = st.integers(1, 70)


def _entries(drawn):
    return drawn.fill() if isinstance(drawn, TabledMatrix) else drawn


@pytest.mark.parametrize("draw", [draw_orthogonal, scramble_dct])
@given(rows=SIZES, columns=SIZES, number=st.integers(0, 2**64 - 1))
@settings(max_examples=30, deadline=None)
def test_rows_or_columns_are_orthonormal(draw, rows, columns, number):
    matrix = _entries(draw(rows, columns, (number, "layer.weight")))
    assert matrix.shape == (rows, columns)
    inner = exact_gram(matrix if rows <= columns else matrix.T)
    assert np.abs(inner - np.eye(len(inner))).max() <= 1e-14


def test_nearly_dependent_rows_are_made_orthonormal_to_the_last_bits():
    """In one pass the second row would keep a part of the first that is far above rounding."""
    rows = np.ones((40, 60))
    rows += 1e-9 * np.cos(np.arange(40.0)[:, None] ** 2 * np.arange(60.0))
    done = make_orthonormal(rows)
    assert np.abs(exact_gram(done) - np.eye(40)).max() <= 1e-14
    np.testing.assert_allclose(done[0], 60**-0.5, rtol=1e-8)


def test_rows_are_made_orthonormal_from_the_first_to_the_last():
    rows = np.cos(np.arange(50.0)[:, None] * np.arange(1.0, 81.0)) + np.eye(50, 80)
    independent = np.linalg.qr(rows.T)
    expected = (independent.Q * np.sign(np.diagonal(independent.R))).T
    np.testing.assert_allclose(make_orthonormal(rows), expected, atol=1e-11)


def test_no_direction_is_preferred():
    """Entries of 3 x 3 matrices by Haar's measure: mean 0, mean square 1/3, either determinant."""
    drawn = np.stack([draw_orthogonal(3, 3, (seed, "w")) for seed in range(400)])
    assert np.abs(drawn.mean(axis=0)).max() < 5 * np.sqrt(1 / 3 / 400)
    assert np.abs((drawn**2).mean(axis=0) - 1 / 3).max() < 0.05
    assert abs((np.linalg.det(drawn) > 0).mean() - 0.5) < 0.07


def test_scrambled_entries_are_those_of_the_dct():
    plain, scrambled = seedless.basis("dct", 12), scramble_dct(12, 12, (0, "w")).fill()
    np.testing.assert_array_equal(
        np.sort(np.abs(scrambled), axis=None), np.sort(np.abs(plain), axis=None)
    )
    assert (scrambled != plain).any()


@pytest.mark.parametrize("draw", [draw_orthogonal, scramble_dct])
def test_another_number_or_text_gives_another_matrix(draw):
    drawn = [_entries(draw(8, 12, key)) for key in ((0, "a"), (1, "a"), (0, "b"))]
    assert len({matrix.tobytes() for matrix in drawn}) == 3
    np.testing.assert_array_equal(drawn[0], _entries(draw(8, 12, (0, "a"))))


DRAW = """
import hashlib
import numpy as np
from seedless.init.random_matrices import draw_orthogonal
ours = draw_orthogonal(90, 160, (0, "w"))
plain = np.linalg.qr(np.cos(np.arange(90.0 * 160) ** 1.5).reshape(160, 90)).Q
print(*(hashlib.sha256(matrix.tobytes()).hexdigest() for matrix in (ours, plain)))
"""


def test_bits_do_not_depend_on_the_library_of_matrix_products(run_python):
    """The negative control, a library's own QR, depends on the kernels it chooses."""
    cores = ("Nehalem", "Haswell")
    drawn = [run_python("-c", DRAW, OPENBLAS_CORETYPE=core).stdout.split() for core in cores]
    assert drawn[0][0] == drawn[1][0]
    assert drawn[0][1] != drawn[1][1]
