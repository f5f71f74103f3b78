"""The equiangular frame: unit vectors, equal cosines, in closed form."""

import math

import numpy as np
import pytest

import seedless
from seedless.init import simplex_etf


@pytest.mark.parametrize("classes", range(2, 21))
@pytest.mark.parametrize("extra", [0, 1, 3])
def test_cosines_and_lengths(classes, extra):
    vectors = simplex_etf(classes, classes - 1 + extra).astype(np.float32).astype(np.float64)
    inner = vectors @ vectors.T
    off = inner[~np.eye(classes, dtype=bool)]
    assert np.abs(off + 1 / (classes - 1)).max() <= 1e-7
    assert np.abs(np.diagonal(inner) - 1).max() <= 1e-7
    assert not vectors[:, classes - 1 :].any()


def test_vectors_sum_to_zero_and_are_not_rescaled():
    vectors = simplex_etf(12, 14)
    assert max(abs(math.fsum(column)) for column in vectors.T) < 1e-15
    assert math.isclose(math.fsum(vectors[0] ** 2), 1.0, abs_tol=1e-15)


@pytest.mark.parametrize(("classes", "dimensions"), [(1, 4), (0, 4), (5, 3)])
def test_what_has_no_frame_is_refused(classes, dimensions):
    with pytest.raises(seedless.SeedlessError, match="needs at least"):
        simplex_etf(classes, dimensions)
