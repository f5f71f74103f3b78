"""Confusions and kappa: against scikit-learn, and where they are not defined."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from seedless.evaluate.agreement import are_grades, compute_kappa, count_confusions


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_counts_and_kappa_are_those_of_scikit_learn(classes):
    draw = np.random.default_rng(classes)
    truth = draw.integers(0, classes, 200)
    probabilities = draw.random((200, classes)) + np.eye(classes)[truth]
    answers = probabilities.argmax(axis=1)
    counts = count_confusions(probabilities, np.eye(classes, dtype=np.uint8)[truth])
    np.testing.assert_array_equal(counts, confusion_matrix(truth, answers))
    assert compute_kappa(counts) == pytest.approx(cohen_kappa_score(truth, answers))
    quadratic = cohen_kappa_score(truth, answers, weights="quadratic")
    assert compute_kappa(counts, weighted=True) == pytest.approx(quadratic)


def test_a_class_that_is_missing_keeps_its_place():
    counts = count_confusions(np.array([[0.2, 0.7, 0.1]]), np.array([[1, 0, 0]], dtype=np.uint8))
    assert counts.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_kappa_is_not_defined_where_all_is_one_class():
    assert compute_kappa(np.array([[5, 0], [0, 0]])) is None
    assert compute_kappa(np.array([[3, 0], [0, 2]])) == 1.0


def test_a_far_answer_weighs_more_than_a_near_one():
    near, far = np.diag([4, 4, 4]), np.diag([4, 4, 4])
    near[0, 1] += 2
    far[0, 2] += 2
    assert compute_kappa(near, weighted=True) > compute_kappa(far, weighted=True)


@pytest.mark.parametrize(
    ("classes", "graded"),
    [
        (["grade 0", "grade 1", "grade 2"], True),
        (["Stage 1", "stage 2", "stage 3", "stage 4"], True),
        (["KL-0", "KL-1", "KL-2"], True),
        (["class 0", "class 1", "class 2"], False),  # names that were left out
        (["0", "1", "2"], False),
        (["grade 0", "grade 1"], False),
        (["grade 0", "grade 2", "grade 4"], False),
        (["grade 0", "stage 1", "stage 2"], False),
        (["cat", "dog", "horse"], False),
    ],
)
def test_grades_are_one_word_with_numbers_that_go_up(classes, graded):
    assert are_grades(classes) is graded
