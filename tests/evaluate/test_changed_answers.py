"""Two models asked for the most probable class: counted by hand, matched by id."""

import numpy as np
import pytest

from seedless.core.errors import DataError
from seedless.evaluate.changed_answers import compare_answers
from seedless.evaluate.churn import compare_decisions
from seedless.evaluate.predictions import Predictions, SplitPredictions

CLASSES = ("A", "B", "C")
LABELS = {"r1": "A", "r2": "B", "r3": "AB", "r4": "", "r5": "C"}
FIRST = {"r1": "A", "r2": "A", "r3": "A", "r4": "A", "r5": "C"}
SECOND = {"r1": "B", "r2": "B", "r3": "B", "r4": "C", "r5": "C"}


def predict(answers, scale=1.0, order=("r1", "r2", "r3", "r4", "r5")):
    rows = [[0.9 if name == answers[one] else 0.2 for name in CLASSES] for one in order]
    labels = [[name in LABELS[one] for name in CLASSES] for one in order]
    test = SplitPredictions(
        ids=np.array(order),
        probabilities=scale * np.array(rows),
        labels=np.array(labels, dtype=np.uint8),
    )
    return Predictions(CLASSES, "sha256:" + 64 * "0", {"test": test})


def test_counts_agree_with_a_count_by_hand():
    found = compare_answers(predict(FIRST), predict(SECOND))
    assert (found.share.count, found.share.n) == (4, 5)
    # r1: the first alone is right; r2: the second alone; r3 has both labels; r4 has none.
    assert (found.first_only, found.second_only, found.both, found.neither) == (1, 1, 1, 1)
    assert [record.id for record in found.records] == ["r1", "r2", "r3", "r4"]
    third = found.records[2]
    assert (third.labels, third.answers) == (("A", "B"), ("A", "B"))
    assert third.probabilities == (0.9, 0.9)


def test_records_are_matched_by_id_and_not_by_place():
    turned = predict(SECOND, order=["r4", "r2", "r5", "r1", "r3"])
    assert compare_answers(predict(FIRST), turned) == compare_answers(
        predict(FIRST), predict(SECOND)
    )


def test_a_model_that_is_only_surer_changes_no_answer():
    """With thresholds of its own each run may decide otherwise: that is why none are used."""
    surer, less_sure = predict(FIRST), predict(FIRST, scale=0.5)
    assert compare_answers(surer, less_sure).share.count == 0
    both = {"surer": surer, "less sure": less_sure}
    assert compare_decisions(both, thresholds="half").exact.count == 5


def test_other_records_are_refused():
    with pytest.raises(DataError, match="lacks records"):
        compare_answers(predict(FIRST), predict(SECOND, order=["r1", "r2"]))
