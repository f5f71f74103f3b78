"""Thresholds, calls and rates against scikit-learn and a search through every threshold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from seedless.evaluate.decisions import (
    Counts,
    apply_thresholds,
    choose_threshold,
    choose_thresholds,
    count_outcomes,
    exact_match,
    hamming_loss,
    pick_most_probable,
)
from tests.evaluate.tables import make_table

ROWS = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=30)


@given(ROWS)
def test_no_threshold_has_a_higher_f1_and_no_lower_one_an_equal_one(rows):
    scores, truth = np.array(rows, dtype=np.float64).T / 8
    truth = (truth > 0).astype(np.uint8)
    found = choose_threshold(scores, truth)
    if truth.all() or not truth.any():
        assert found is None
        return
    f1 = {value: metrics.f1_score(truth, scores >= value, zero_division=0) for value in set(scores)}
    best = max(f1.values())
    assert found == min(value for value, score in f1.items() if score == pytest.approx(best))


@pytest.mark.parametrize("seed", range(3))
def test_rates_are_those_of_scikit_learn(seed):
    scores, labels = make_table(90, 4, seed, levels=20)
    calls = apply_thresholds(scores, choose_thresholds(scores, labels))
    for k in range(4):
        found = count_outcomes(calls[:, k], labels[:, k])
        tn, fp, fn, tp = metrics.confusion_matrix(labels[:, k], calls[:, k]).ravel()
        assert (found.tp, found.fp, found.fn, found.tn) == (tp, fp, fn, tn)
        assert found.f1 == pytest.approx(metrics.f1_score(labels[:, k], calls[:, k]))
        assert found.precision == pytest.approx(metrics.precision_score(labels[:, k], calls[:, k]))
        assert found.sensitivity == pytest.approx(metrics.recall_score(labels[:, k], calls[:, k]))
        negatives = metrics.recall_score(labels[:, k], calls[:, k], pos_label=0)
        assert found.specificity == pytest.approx(negatives)
    assert exact_match(calls, labels) == pytest.approx(metrics.accuracy_score(labels, calls))
    assert hamming_loss(calls, labels) == pytest.approx(metrics.hamming_loss(labels, calls))


def test_one_call_a_record_is_the_most_probable_and_the_first_of_equals():
    probabilities = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]])
    calls = pick_most_probable(probabilities)
    assert calls.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    labels = np.array([[0, 1, 0], [0, 1, 0], [0, 0, 1]], dtype=np.uint8)
    assert exact_match(calls, labels) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("counts", "undefined"),
    [
        (Counts(0, 0, 3, 5), {"precision"}),
        (Counts(0, 2, 0, 5), {"sensitivity", "specificity", "precision", "f1"}),
        (Counts(4, 0, 2, 0), {"sensitivity", "specificity", "precision", "f1"}),
        (Counts(2, 1, 1, 4), set()),
    ],
)
def test_what_has_no_denominator_is_undefined(counts, undefined):
    found = counts.as_dict()
    rates = ("sensitivity", "specificity", "precision", "f1")
    assert {name for name in rates if found[name] is None} == undefined
    assert [found[name] for name in ("tp", "fp", "fn", "tn")] == [
        counts.tp,
        counts.fp,
        counts.fn,
        counts.tn,
    ]


def test_a_threshold_itself_is_called_and_none_stands_for_a_half():
    probabilities = np.array([[0.3, 0.5], [0.29, 0.49]])
    assert apply_thresholds(probabilities, (0.3, None)).tolist() == [[1, 1], [0, 0]]
