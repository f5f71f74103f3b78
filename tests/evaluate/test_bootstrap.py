"""The bootstrap against a slow one with the same weights, against DeLong, and by its coverage."""

import math

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.metrics import roc_auc_score

from seedless.core.errors import DataError
from seedless.evaluate.auc import macro_auc
from seedless.evaluate.bootstrap import (
    RARE,
    UNIT,
    bootstrap_areas,
    draw_weights,
    resample_areas,
    take_class_percentiles,
)
from seedless.evaluate.intervals import area_interval, delong_covariance, pair_interval
from seedless.numerics.counter_random import draw_uniform
from tests.evaluate.tables import make_table


@pytest.mark.parametrize("levels", [None, 5])
@pytest.mark.parametrize("n", [16, 37, 300])
def test_a_resample_is_the_area_of_weighted_records(n, levels):
    scores, labels = make_table(n, 3, seed=n, levels=levels)
    found = resample_areas(scores, labels, 40)
    weights = draw_weights(n, np.arange(40))
    for row in (0, 17, 39):
        for k in range(3):
            slow = roc_auc_score(labels[:, k], scores[:, k], sample_weight=weights[row])
            assert found[row, k] == pytest.approx(slow, abs=1e-12)


def test_neither_chunks_nor_the_number_of_resamples_change_a_resample(monkeypatch):
    scores, labels = make_table(50, 2)
    whole = resample_areas(scores, labels, 60)
    np.testing.assert_array_equal(resample_areas(scores, labels, 45), whole[:45])
    monkeypatch.setattr("seedless.evaluate.bootstrap._CHUNK", 120)
    monkeypatch.setattr("seedless.evaluate.bootstrap._CACHED", 3)
    np.testing.assert_array_equal(resample_areas(scores, labels, 60), whole)


def test_weights_are_exponential_and_those_of_a_row_do_not_depend_on_the_others():
    weights = draw_weights(4000, np.arange(50)) / UNIT
    assert weights.min() > 0
    assert weights.mean() == pytest.approx(1, abs=0.01)
    assert weights.var() == pytest.approx(1, abs=0.03)
    assert (weights > 3).mean() == pytest.approx(math.exp(-3), rel=0.05)
    assert abs(np.corrcoef(weights[:, 0], weights[:, 1])[0, 1]) < 0.35  # 50 draws: two deviations
    assert abs(np.corrcoef(weights[0], weights[1])[0, 1]) < 0.05
    np.testing.assert_array_equal(draw_weights(100, np.array([7])) / UNIT, weights[7:8, :100])


def test_the_first_weights_stay_what_they_are():
    """Intervals stand in receipts: another release must draw the same weights."""
    assert draw_weights(10, np.array([0, 399])).tolist() == FIRST


FIRST = [
    [15, 24, 2, 32, 17, 19, 17, 122, 43, 26],
    [8, 134, 3, 193, 3, 77, 47, 117, 90, 13],
]


def test_equal_inputs_give_equal_intervals_and_others_do_not():
    scores, labels = make_table(80, 3)
    first = bootstrap_areas(scores, labels, 100)
    assert bootstrap_areas(scores.copy(), labels.copy(), 100) == first
    assert bootstrap_areas(np.sqrt(scores), labels, 100) == first  # only the order counts
    assert bootstrap_areas(scores, labels, 200) != first


def test_it_spreads_as_widely_as_delong_says():
    scores, labels = make_table(400, 1, seed=5)
    areas = resample_areas(scores, labels, 2000)[:, 0]
    parts = delong_covariance(scores[:, 0], scores[:, 0], labels[:, 0])
    assert areas.var() == pytest.approx(sum(parts), rel=0.1)


@pytest.mark.parametrize(
    ("positives", "least"), [((1, 1, 1, 1), 0.9), ((3, 3, 3, 3), 0.85), ((20, 20, 60, 60), 0.9)]
)
def test_the_macro_interval_covers_the_truth(positives, least):
    """150 tables of 4 classes with a true area of 3/4; the interval claims 0.95."""
    covered = 0
    for trial in range(150):
        scores = draw_uniform(trial, "scores", 120 * 4).reshape(120, 4)
        labels = np.zeros((120, 4), dtype=np.uint8)
        for k, count in enumerate(positives):
            rows = np.argsort(draw_uniform(trial, f"rows {k}", 120))[:count]
            labels[rows, k] = 1
            # A score is above a uniform one with the chance of its value, 3/4 in the mean.
            scores[rows, k] = 1 - draw_uniform(trial, f"up {k}", count) ** 1.5 * 0.625
        found = bootstrap_areas(scores, labels, 100).macro
        covered += found.low <= 0.75 <= found.high
    assert covered / 150 >= least


def test_certainty_is_never_claimed():
    scores = np.arange(20.0)[:, None] / 20
    labels = (scores >= 0.8).astype(np.uint8)
    found = bootstrap_areas(scores, labels, 100)
    assert found.classes[0] == area_interval(1.0, 4, 16)
    many = np.arange(240.0)[:, None] / 240
    certain = bootstrap_areas(many, (many >= 0.5).astype(np.uint8), 100)
    assert certain.classes[0] == pair_interval(1.0, 120, 120)
    assert found.macro.high == 1.0
    assert found.macro.low < 0.9
    one = np.zeros_like(labels)
    one[10] = 1
    alone = bootstrap_areas(scores, one, 100)
    assert alone.macro.high - alone.macro.low > 0.5


@pytest.mark.parametrize("positives", [2, 3, 5, 10])
def test_the_interval_of_a_rare_class_covers_the_truth_where_percentiles_do_not(positives):
    """150 tables of one class with a true area of 0.92: both intervals claim 0.95."""
    shift = math.sqrt(2) * float(ndtri(0.92))
    labels = np.zeros((150, 1), dtype=np.uint8)
    labels[:positives] = 1
    covered = {"class": 0, "percentiles": 0}
    for trial in range(150):
        scores = ndtri(draw_uniform(trial, f"rare {positives}", 150))[:, None] + shift * labels
        found = {
            "class": bootstrap_areas(scores, labels, 60).classes[0],
            "percentiles": take_class_percentiles(scores[:, 0], labels[:, 0], 60),
        }
        for name, interval in found.items():
            covered[name] += interval.low <= 0.92 <= interval.high
    assert covered["class"] / 150 >= 0.95
    assert covered["percentiles"] / 150 < 0.93


def test_percentiles_are_kept_where_there_are_enough_records():
    scores, labels = make_table(400, 1, seed=5)
    labels[:: 400 // RARE] = 1
    assert RARE <= labels.sum() <= 400 - RARE
    found = bootstrap_areas(scores, labels, 100).classes[0]
    assert found == take_class_percentiles(scores[:, 0], labels[:, 0], 100)
    labels[np.flatnonzero(labels)[RARE - 1 :]] = 0
    assert bootstrap_areas(scores, labels, 100).classes[0].method == "wilson of pairs"
    assert take_class_percentiles(scores[:, 0], np.zeros(400, dtype=np.uint8), 100) is None


def test_classes_of_one_kind_are_left_out():
    scores, labels = make_table(60, 3)
    labels[:, 1] = 0
    found = bootstrap_areas(scores, labels, 100)
    assert found.classes[1] is None
    alone = bootstrap_areas(scores[:, [0, 2]], labels[:, [0, 2]], 100)
    assert (found.macro, found.classes[0], found.classes[2]) == (alone.macro, *alone.classes)
    assert found.macro.low < macro_auc(scores, labels) < found.macro.high
    assert bootstrap_areas(scores, np.zeros_like(labels), 100).macro is None


def test_too_few_resamples_are_refused():
    with pytest.raises(DataError, match="at least 40 resamples"):
        bootstrap_areas(*make_table(20, 1), 39)
