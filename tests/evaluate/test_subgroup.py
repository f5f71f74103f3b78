"""Scores by group: each as if the group were all there is, differences with intervals."""

import json

import numpy as np
import pytest

from seedless.core.errors import DataError
from seedless.evaluate.auc import area_under_curve, macro_auc
from seedless.evaluate.bootstrap import bootstrap_areas
from seedless.evaluate.decisions import apply_thresholds, count_outcomes
from seedless.evaluate.intervals import delong_interval, difference_interval, wilson_interval
from seedless.evaluate.subgroup import band_ages, score_subgroups
from tests.evaluate.tables import make_scored

CLASSES = ("a", "b", "c")
LIMITS = (0.4, 0.5, None)
SCORED = make_scored(80, seed=4)
SEX = np.array(["F", "M", "M", ""] * 20)


def test_a_group_is_scored_as_if_it_were_all_there_is():
    found = score_subgroups(SCORED, CLASSES, SEX, LIMITS, "sex")
    assert (found.reference, found.unknown, list(found.groups)) == ("M", 20, ["F", "M"])
    for name, group in found.groups.items():
        rows = name == SEX
        scores, labels = SCORED.probabilities[rows], SCORED.labels[rows]
        assert group.n == rows.sum()
        assert group.macro_auc.value == macro_auc(scores, labels)
        assert group.macro_auc.interval == bootstrap_areas(scores, labels, 400).macro
        calls = apply_thresholds(scores, LIMITS)
        for k, label in enumerate(CLASSES):
            one = group.classes[label]
            assert one.positives == labels[:, k].sum()
            assert one.auc.value == area_under_curve(scores[:, k], labels[:, k])
            assert one.auc.interval == delong_interval(scores[:, k], labels[:, k])
            if LIMITS[k] is None:
                assert (one.sensitivity.value, one.sensitivity.interval) == (None, None)
                continue
            counts = count_outcomes(calls[:, k], labels[:, k])
            assert one.sensitivity.value == counts.sensitivity
            assert one.sensitivity.interval == wilson_interval(counts.tp, counts.tp + counts.fn)
            assert one.specificity.interval == wilson_interval(counts.tn, counts.tn + counts.fp)


def test_differences_are_from_the_largest_group():
    found = score_subgroups(SCORED, CLASSES, SEX, LIMITS)
    women, men = (found.groups[name].classes["a"].auc for name in "FM")
    difference = found.groups["F"].classes["a"].auc_difference
    assert difference.value == women.value - men.value
    expected = difference_interval(women.value, women.interval, men.value, men.interval)
    assert difference.interval == expected
    assert expected.low < difference.value < expected.high
    assert found.groups["M"].classes["a"].auc_difference.value is None
    assert found.groups["F"].macro_auc_difference.value is not None


def test_a_group_without_positives_is_undefined_and_not_compared():
    labels = SCORED.labels.copy()
    labels[SEX == "F", 1] = 0
    scored = make_scored(80, seed=4)
    changed = type(scored)(scored.ids, scored.probabilities, labels)
    found = score_subgroups(changed, CLASSES, SEX, LIMITS)
    one = found.groups["F"].classes["b"]
    assert one.positives == 0
    for rate in (one.auc, one.sensitivity, one.specificity, one.auc_difference):
        assert (rate.value, rate.interval) == (None, None)
    # the macro means of the two groups are of different classes
    assert found.groups["F"].macro_auc_difference.value is None
    assert found.groups["F"].macro_auc.value is not None
    json.dumps(found.as_dict(), allow_nan=False)


def test_equal_groups_do_not_differ():
    half = make_scored(40, seed=9)
    ids = np.array([f"{name} {side}" for side in "xy" for name in half.ids])
    twice = type(half)(ids, np.tile(half.probabilities, (2, 1)), np.tile(half.labels, (2, 1)))
    found = score_subgroups(twice, CLASSES, np.repeat(["x", "y"], 40), LIMITS)
    assert found.reference == "x"
    for one in found.groups["y"].classes.values():
        assert one.auc_difference.value == 0
        assert one.auc_difference.interval.low < 0 < one.auc_difference.interval.high


def test_ages_fall_into_bands():
    ages = [0, 17.9, 18, 39, 40, 79.5, 80, 300, np.nan]
    assert band_ages(ages).tolist() == [
        *("0-17", "0-17", "18-39", "18-39", "40-59", "60-79", "80+", "80+", ""),
    ]
    assert band_ages([10, 60], edges=(50,)).tolist() == ["0-49", "50+"]


def test_groups_that_are_none_are_refused():
    with pytest.raises(DataError, match="no record has a known sex"):
        score_subgroups(SCORED, CLASSES, np.full(80, ""), LIMITS, "sex")
    with pytest.raises(DataError, match="a group for each of 80 records"):
        score_subgroups(SCORED, CLASSES, SEX[:5], LIMITS)
    with pytest.raises(DataError, match="a group for each of 80 records"):
        score_subgroups(SCORED, CLASSES, np.arange(80), LIMITS)
