"""Calibration against scikit-learn's bins and a sum written out."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from statsmodels.stats.proportion import proportion_confint

from seedless.evaluate.calibration import (
    bin_reliability,
    calibration_error,
    mean_calibration_error,
)
from tests.evaluate.tables import make_table


@pytest.mark.parametrize("levels", [None, 10])
def test_bins_are_those_of_scikit_learn(levels):
    scores, labels = make_table(200, 1, levels=levels)
    found = [b for b in bin_reliability(scores[:, 0], labels[:, 0]) if b.count]
    rates, means = calibration_curve(labels[:, 0], scores[:, 0], n_bins=10)
    np.testing.assert_allclose([b.rate for b in found], rates, rtol=1e-12)
    np.testing.assert_allclose([b.mean for b in found], means, rtol=1e-12)
    for b in found:
        ends = proportion_confint(round(b.rate * b.count), b.count, method="wilson")
        assert b.interval.as_list() == pytest.approx(ends, abs=2e-9)


def slow_error(scores, truth):
    total = 0.0
    for place in range(10):
        low, high = place / 10, (place + 1) / 10
        inside = (scores > low) & (scores <= high) | ((place == 0) & (scores == 0))
        if inside.any():
            total += inside.mean() * abs(scores[inside].mean() - truth[inside].mean())
    return total


@pytest.mark.parametrize("levels", [None, 10, 7])
def test_the_error_is_the_weighted_gap(levels):
    scores, labels = make_table(150, 3, seed=1, levels=levels)
    errors = [slow_error(scores[:, k], labels[:, k]) for k in range(3)]
    for k in range(3):
        assert calibration_error(scores[:, k], labels[:, k]) == pytest.approx(errors[k], abs=1e-12)
    assert mean_calibration_error(scores, labels) == pytest.approx(np.mean(errors), abs=1e-12)


def test_edges_belong_to_the_bin_below_and_zero_to_the_first():
    scores = np.array([0.0, 0.1, 0.3, 0.30000000000000004, 1.0])
    counts = [b.count for b in bin_reliability(scores, np.array([0, 0, 1, 1, 1], np.uint8))]
    assert counts == [2, 0, 1, 1, 0, 0, 0, 0, 0, 1]


def test_an_empty_bin_says_nothing_and_a_class_of_one_kind_has_no_error():
    scores, labels = make_table(30, 2)
    empty = bin_reliability(np.full(4, 0.95), np.array([1, 1, 0, 1], np.uint8))[0]
    assert (empty.count, empty.mean, empty.rate, empty.interval) == (0, None, None, None)
    labels[:, 0] = 0
    assert calibration_error(scores[:, 0], labels[:, 0]) is None
    second = calibration_error(scores[:, 1], labels[:, 1])
    assert mean_calibration_error(scores, labels) == second
    assert mean_calibration_error(scores, np.ones_like(labels)) is None


def test_the_order_of_the_records_does_not_show():
    scores, labels = make_table(500, 1)
    turned = calibration_error(scores[::-1, 0], labels[::-1, 0])
    assert turned == calibration_error(scores[:, 0], labels[:, 0])
