"""Scales come from the training split alone, by exact sums."""

import math
from dataclasses import replace

import numpy as np
import pytest

from seedless.core.errors import DataError, UnknownNameError
from seedless.data.normalize import fit_scale
from tests.core.test_dataset import make


def test_global_statistics_are_those_of_the_training_split():
    data = make()
    values = data.X[data.rows("train")].astype(np.float64)
    scale = fit_scale(data)
    assert scale.mean == (math.fsum(values.ravel()) / values.size,)
    assert scale.deviation[0] == pytest.approx(values.std(), rel=1e-12)
    scaled = scale.apply(data.X)
    assert scaled.dtype == np.float32
    train = scaled[data.rows("train")].astype(np.float64)
    assert abs(train.mean()) < 1e-7
    assert train.std() == pytest.approx(1, abs=1e-6)


def test_lead_statistics_are_one_a_lead():
    data = make()
    shifted = data.X * np.float32([[1.0], [3.0]]) + np.float32([[0.0], [5.0]])
    data = replace(data, X=shifted)
    scaled = fit_scale(data, "lead").apply(data.X)[data.rows("train")].astype(np.float64)
    np.testing.assert_allclose(scaled.mean(axis=(0, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(scaled.std(axis=(0, 2)), 1, atol=1e-6)


@pytest.mark.parametrize("method", ["global", "lead"])
def test_validation_and_test_do_not_show(method):
    data = make()
    changed = data.X.copy()
    changed[data.rows("test")] += 100
    assert fit_scale(replace(data, X=changed), method) == fit_scale(data, method)


@pytest.mark.parametrize("method", ["global", "lead"])
def test_the_order_of_records_does_not_show_to_the_bit(method):
    data = make(n=300)
    shuffled = data.take(np.argsort(np.cos(np.arange(300) * 5.0)))
    assert fit_scale(shuffled, method) == fit_scale(data, method)
    plain = [d.X[d.rows("train")].mean(dtype=np.float32) for d in (data, shuffled)]
    assert plain[0] != plain[1]  # a float32 mean does see the order


def test_pixels_go_to_plus_minus_one():
    data = make(X=np.array([0, 255] * 600, np.uint8).reshape(20, 2, 30))
    assert set(fit_scale(data, "pixels").apply(data.X).ravel().tolist()) == {-1.0, 1.0}
    assert fit_scale(data, "none").apply(data.X).max() == 255


def test_what_cannot_be_scaled_is_refused():
    with pytest.raises(DataError, match="constant"):
        fit_scale(make(X=np.ones((20, 2, 30), np.float32)))
    with pytest.raises(DataError, match="train split is empty"):
        fit_scale(make(folds=np.full(20, 9)))
    with pytest.raises(UnknownNameError, match="did you mean 'global'"):
        fit_scale(make(), "globl")
