"""Accuracy, kappa and confusions on the page of a run with one class for each record."""

from types import SimpleNamespace

import numpy as np
import pytest

from seedless.evaluate.predictions import Predictions, SplitPredictions
from seedless.report.answers import MAX_MATRIX_CLASSES, show_answers
from seedless.report.render import render


def view(classes, labels, answers, task="multi-class", split="test"):
    """A run as `show_answers` reads it."""
    count = len(classes)
    ids = np.array([f"r{row}" for row in range(len(labels))])
    probabilities = np.full((len(labels), count), 0.1 / count)
    probabilities[np.arange(len(answers)), answers] += 0.9
    scored = SplitPredictions(ids, probabilities, np.eye(count, dtype=np.uint8)[labels])
    weights = "sha256:" + "0" * 64
    return SimpleNamespace(predictions=Predictions(tuple(classes), weights, {split: scored}, task))


def test_accuracy_kappa_and_matrix():
    found = show_answers(view(["a", "b", "c"], [0, 0, 1, 2], [0, 1, 1, 2]))
    assert (found["right"], found["n"], found["accuracy"]) == (3, 4, "0.750")
    assert found["largest"] == "0.500"
    assert [[cell["count"] for cell in row["cells"]] for row in found["rows"]] == [
        [1, 1, 0],
        [0, 1, 0],
        [0, 0, 1],
    ]
    assert found["weighted"] is None  # the classes have no order
    page = render("sections/answers.html", answers=found)
    assert page.count('class="right"') == 3
    assert page.count('class="wrong"') == 6
    assert "weighted kappa" not in page


def test_grades_have_a_weighted_kappa():
    found = show_answers(view([f"grade {k}" for k in range(3)], [0, 1, 2, 2], [0, 1, 2, 1]))
    assert 0 < float(found["weighted"]) < 1
    assert "weighted kappa" in render("sections/answers.html", answers=found)


def test_many_classes_are_a_list_of_the_most_frequent_confusions():
    names = [f"c{k}" for k in range(MAX_MATRIX_CLASSES + 1)]
    found = show_answers(view(names, [0, 0, 1, 2], [5, 5, 6, 2]))
    assert found["rows"] == []
    assert [(row["label"], row["answer"], row["count"]) for row in found["confused"]] == [
        ("c0", "c5", 2),
        ("c1", "c6", 1),
    ]
    assert "too many for a matrix" in render("sections/answers.html", answers=found)


def test_names_are_escaped():
    found = show_answers(view(["<b>", "x"], [0, 1], [0, 1]))
    assert "<b>" not in render("sections/answers.html", answers=found).replace("<li><b>", "")


@pytest.mark.parametrize("odd", ["multi-label", "train alone", "no predictions"])
def test_other_runs_have_no_such_section(odd):
    run = {
        "multi-label": view(["a", "b"], [0, 1], [0, 1], task="multi-label"),
        "train alone": view(["a", "b"], [0, 1], [0, 1], split="train"),
        "no predictions": SimpleNamespace(predictions=None),
    }[odd]
    assert show_answers(run) is None
    assert render("sections/answers.html", answers=None).strip() == ""
