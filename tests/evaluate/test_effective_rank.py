"""The effective rank of matrices whose singular values are known."""

import os

import numpy as np
import pytest
from scipy.linalg import hadamard

from seedless.core.errors import DataError
from seedless.evaluate.scores import effective_rank
from seedless.numerics.counter_random import draw_uniform


def test_equal_singular_values_count_in_full():
    assert effective_rank(np.eye(7, dtype=np.float32)) == 7
    assert effective_rank(hadamard(16)[:, :5].astype(np.float32)) == 5
    assert effective_rank(np.ones((9, 4), dtype=np.float32)) == 1


def test_known_singular_values():
    values = np.array([4.0, 2.0, 1.0, 1.0])
    shares = values / values.sum()
    expected = np.exp(-(shares * np.log(shares)).sum())
    spread = hadamard(8)[:, :4] * values  # orthogonal columns of these lengths
    assert effective_rank(spread.astype(np.float32)) == pytest.approx(expected, abs=5e-5)


def test_features_are_not_centred():
    noise = draw_uniform(0, "noise", 300).reshape(100, 3).astype(np.float32) - 0.5
    assert effective_rank(noise) > 2.9
    assert effective_rank(noise + 100) < 1.1


def test_scale_and_order_of_the_records_do_not_show():
    noise = draw_uniform(0, "noise", 400).reshape(100, 4).astype(np.float32)
    assert effective_rank(noise[::-1]) == effective_rank(noise) == effective_rank(noise * 4)


SCRIPT = """
import numpy as np
from seedless.evaluate.scores import effective_rank
from seedless.numerics.counter_random import draw_uniform
print(effective_rank(draw_uniform(1, "f", 600 * 96).reshape(600, 96).astype(np.float32)))
"""


def test_threads_do_not_show(run_python):
    path = os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])
    found = {
        run_python("-c", SCRIPT, OPENBLAS_NUM_THREADS=n, OMP_NUM_THREADS=n, PYTHONPATH=path).stdout
        for n in (1, 2)
    }
    assert len(found) == 1


def test_no_features_and_nonsense_are_told_apart():
    assert effective_rank(np.zeros((3, 2), dtype=np.float32)) is None
    with pytest.raises(DataError, match="NaN"):
        effective_rank(np.full((3, 2), np.nan, dtype=np.float32))
    with pytest.raises(DataError, match="shape"):
        effective_rank(np.zeros(3, dtype=np.float32))
