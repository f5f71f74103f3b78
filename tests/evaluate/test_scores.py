"""What metrics.json says of a split: each number that of its own function, all of them plain."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics

from seedless.evaluate.auc import score_classes
from seedless.evaluate.decisions import choose_thresholds
from seedless.evaluate.intervals import delong_interval
from seedless.evaluate.predictions import Predictions, SplitPredictions
from seedless.evaluate.scores import choose_resamples, find_thresholds, score_predictions
from tests.evaluate.tables import WEIGHTS, make_predictions, make_scored


def list_values(value):
    if isinstance(value, dict):
        for item in value.values():
            yield from list_values(item)
    elif isinstance(value, list):
        for item in value:
            yield from list_values(item)
    else:
        yield value


def test_large_splits_get_fewer_resamples_and_never_too_few():
    assert [choose_resamples(n) for n in (0, 1, 1_500_000)] == [400] * 3
    assert choose_resamples(3_000_000) == 200
    assert choose_resamples(10**12) == 40


def test_everything_is_plain_and_repeats():
    found = score_predictions(make_predictions())
    assert found == score_predictions(make_predictions())
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert {type(value) for value in list_values(found)} <= {int, float, str, type(None)}


def test_the_earlier_keys_are_what_they_were():
    made = make_predictions()
    for name, found in score_predictions(made).items():
        scored = made.splits[name]
        before = score_classes(scored.probabilities, scored.labels, made.classes)
        assert (found["n"], found["macro_auc"]) == (before["n"], before["macro_auc"])
        for label, row in before["classes"].items():
            assert found["classes"][label].items() >= row.items()


def test_thresholds_come_from_validation_and_are_used_on_test():
    made = make_predictions()
    held, test = made.splits["validation"], made.splits["test"]
    limits = choose_thresholds(held.probabilities, held.labels)
    assert limits != choose_thresholds(test.probabilities, test.labels)
    assert find_thresholds(made) == ("validation", limits)
    found = score_predictions(made)["test"]
    assert found["thresholds_from"] == "validation"
    calls = (test.probabilities >= np.array(limits)).astype(np.uint8)
    for k, name in enumerate("abc"):
        row = found["classes"][name]
        assert row["threshold"] == limits[k]
        assert row["f1"] == pytest.approx(metrics.f1_score(test.labels[:, k], calls[:, k]))
        interval = delong_interval(test.probabilities[:, k], test.labels[:, k])
        assert row["auc_interval"] == interval.as_list()
    assert found["exact_match"] == pytest.approx(metrics.accuracy_score(test.labels, calls))
    assert found["hamming"] == pytest.approx(metrics.hamming_loss(test.labels, calls))
    low, high = found["macro_auc_interval"]
    assert low < found["macro_auc"] < high


def test_without_validation_they_come_from_training_and_never_from_test():
    parts = {"test": make_scored(seed=1)}
    alone = Predictions(("a", "b", "c"), WEIGHTS, parts)
    assert find_thresholds(alone) == (None, (None, None, None))
    found = score_predictions(alone)["test"]
    assert found["classes"]["a"]["sensitivity"] is None
    assert found["thresholds_from"] is None
    trained = replace(alone, splits={**parts, "train": make_scored(seed=2)})
    assert score_predictions(trained)["test"]["thresholds_from"] == "train"


def test_one_class_a_record_has_an_accuracy():
    made = make_predictions(task="multi-class")
    found = score_predictions(made)["test"]
    test = made.splits["test"]
    right = test.labels[np.arange(40), test.probabilities.argmax(axis=1)].mean()
    # rows of this table have any number of labels: a match needs exactly the one that is called
    single = test.labels.sum(axis=1) == 1
    assert found["accuracy"] <= right
    assert found["accuracy"] == pytest.approx(
        (single & (test.labels[np.arange(40), test.probabilities.argmax(axis=1)] == 1)).mean()
    )
    assert "exact_match" not in found


def test_a_class_of_one_kind_is_undefined_throughout():
    made = make_predictions()
    test = made.splits["test"]
    for kind in (0, 1):
        labels = test.labels.copy()
        labels[:, 1] = kind
        splits = {**made.splits, "test": SplitPredictions(test.ids, test.probabilities, labels)}
        found = score_predictions(replace(made, splits=splits))["test"]
        row = found["classes"]["b"]
        for key in ("auc", "auc_interval", "ece", "sensitivity", "specificity", "precision", "f1"):
            assert row[key] is None, key
        assert row["positives"] == kind * 40
        assert found["effective_rank"] is None
        assert found["macro_auc"] is not None
