"""The area under the ROC curve against a count of all pairs, and against published values."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seedless.core.errors import DataError
from seedless.evaluate.auc import area_under_curve, macro_auc, score_classes


def count_pairs(scores, truth):
    """The definition: the share of (positive, negative) pairs in order, a tie counting half."""
    above = [s for s, t in zip(scores, truth, strict=True) if t]
    below = [s for s, t in zip(scores, truth, strict=True) if not t]
    if not above or not below:
        return None
    won = sum(1.0 if p > n else 0.5 if p == n else 0.0 for p, n in product(above, below))
    return won / (len(above) * len(below))


def area(scores, truth):
    return area_under_curve(np.array(scores, dtype=np.float64), np.array(truth, dtype=np.uint8))


# Few distinct values, so that ties are the rule; and any float there is.
VALUES = st.one_of(st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0]), st.floats(allow_nan=False))
RANKED = st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=40)


@given(RANKED)
def test_it_is_the_share_of_pairs_in_order(ranked):
    scores, truth = zip(*ranked, strict=True)
    assert area(scores, truth) == count_pairs(scores, truth)


@given(RANKED)
def test_turned_round_it_is_what_is_missing_to_one(ranked):
    scores, truth = np.array(ranked, dtype=np.float64).T
    here = area(scores, truth)
    assume(here is not None)
    assert area(-scores, truth) == pytest.approx(1 - here, abs=1e-15)
    assert area(scores, 1 - truth) == pytest.approx(1 - here, abs=1e-15)


@given(RANKED, st.randoms(use_true_random=False))
def test_only_the_order_of_the_scores_counts(ranked, random):
    scores, truth = np.array(ranked, dtype=np.float64).T
    ranks = np.unique(scores, return_inverse=True)[1]
    assert area(ranks, truth) == area(scores, truth)
    shuffled = random.sample(ranked, len(ranked))
    assert area(*zip(*shuffled, strict=True)) == area(scores, truth)


@pytest.mark.parametrize(
    ("scores", "truth", "expected"),
    [
        # The worked examples of sklearn.metrics.roc_auc_score and of its user guide.
        ([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 0.75),
        ([0.0, 0.0, 0.0, 0.0], [0, 1, 0, 1], 0.5),
        ([0.5, 0.5, 0.9], [0, 1, 1], 0.75),
        ([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], 1.0),
        ([4.0, 3.0, 2.0, 1.0], [0, 0, 1, 1], 0.0),
    ],
)
def test_known_values(scores, truth, expected):
    assert area(scores, truth) == expected


def test_the_published_example_with_many_ties():
    """Hanley and McNeil (1982), Table I: 109 CT images on a scale from 1 to 5, area 0.893."""
    normal, abnormal = [33, 6, 6, 11, 2], [3, 2, 2, 11, 33]
    scores = [*np.repeat(range(1, 6), normal), *np.repeat(range(1, 6), abnormal)]
    found = area(scores, [0] * 58 + [1] * 51)
    assert round(found, 3) == 0.893
    assert found == 2642 / (58 * 51)


@pytest.mark.parametrize("truth", [[0, 0, 0], [1, 1, 1]])
def test_one_kind_alone_has_no_area(truth):
    assert area([0.1, 0.2, 0.3], truth) is None


def test_zero_and_minus_zero_tie():
    assert area([0.0, -0.0], [0, 1]) == 0.5


def test_the_sum_is_exact_where_a_float32_sum_would_not_be():
    scores = np.arange(20001, dtype=np.float64)
    truth = (np.arange(20001) % 2 == 0).astype(np.uint8)  # 10001 positives, 10000 between them
    assert area(scores, truth) == 0.5
    swapped = truth.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    assert area(scores, swapped) == (10001 * 10000 / 2 + 1) / (10001 * 10000)


LABELS = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.tuples(VALUES, st.booleans()), min_size=width, max_size=width),
        min_size=1,
        max_size=20,
    )
)


@given(LABELS)
def test_the_macro_mean_skips_classes_without_an_area(table):
    array = np.array(table, dtype=np.float64)
    probabilities, labels = array[..., 0], array[..., 1].astype(np.uint8)
    areas = [count_pairs(probabilities[:, k], labels[:, k]) for k in range(labels.shape[1])]
    counted = [value for value in areas if value is not None]
    found = macro_auc(probabilities, labels)
    if not counted:
        assert found is None
    else:
        assert found == pytest.approx(sum(counted) / len(counted), abs=1e-15)
        assert 0 <= found <= 1


def test_scores_by_class_are_plain_values():
    probabilities = np.array([[0.9, 0.2, 0.5], [0.1, 0.6, 0.5], [0.4, 0.7, 0.5]])
    labels = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]], dtype=np.uint8)
    found = score_classes(probabilities, labels, ["a", "b", "c"])
    assert found == {
        "n": 3,
        "macro_auc": 0.75,
        "classes": {
            "a": {"auc": 1.0, "positives": 1},
            "b": {"auc": 0.5, "positives": 1},
            "c": {"auc": None, "positives": 0},
        },
    }
    assert [type(found[key]) for key in ("n", "macro_auc")] == [int, float]
    assert type(found["classes"]["a"]["positives"]) is int


def test_nan_has_no_rank():
    with pytest.raises(DataError, match="1 of the scores"):
        area([float("nan"), 0.2, 0.3], [0, 1, 0])
