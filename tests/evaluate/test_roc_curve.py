"""Curves against scikit-learn: fewer points, the same curve."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import metrics

from seedless.evaluate.auc import area_under_curve
from seedless.evaluate.roc_curve import draw_roc
from tests.evaluate.tables import make_table

ROWS = st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=2, max_size=40)


def split_rows(rows):
    scores, truth = np.array(rows, dtype=np.float64).T
    assume(0 < truth.sum() < len(truth))
    return scores, truth.astype(np.uint8)


@given(ROWS)
def test_the_roc_curve_is_whole_without_its_straight_points(rows):
    scores, truth = split_rows(rows)
    found = draw_roc(scores, truth)
    x, y, _ = metrics.roc_curve(truth, scores, drop_intermediate=False)
    area = area_under_curve(scores, truth)
    assert np.trapezoid(found.y, found.x) == pytest.approx(area, abs=1e-12)
    kept = set(zip(found.x.tolist(), found.y.tolist(), strict=True))
    assert kept <= set(zip(x.tolist(), y.tolist(), strict=True))
    for px, py in zip(x, y, strict=True):  # each point left out lies on a straight part
        on_line = [
            abs((bx - ax) * (py - ay) - (by - ay) * (px - ax)) < 1e-12
            and ax <= px <= bx
            and ay <= py <= by
            for ax, ay, bx, by in zip(found.x, found.y, found.x[1:], found.y[1:], strict=False)
        ]
        assert any(on_line)
    turns = (
        np.diff(found.x)[:-1] * np.diff(found.y)[1:] - np.diff(found.y)[:-1] * np.diff(found.x)[1:]
    )
    assert (abs(turns) > 0).all()
    assert (found.x[0], found.y[0], found.x[-1], found.y[-1]) == (0, 0, 1, 1)
    assert found.thresholds[0] == np.inf


def test_a_long_run_of_negatives_is_two_points():
    scores, truth = np.arange(1000.0), (np.arange(1000) >= 990).astype(np.uint8)
    assert len(draw_roc(scores, truth)) == 3


def test_one_kind_alone_has_no_curve():
    scores, _ = make_table(10, 1)
    for truth in (np.zeros(10, np.uint8), np.ones(10, np.uint8)):
        assert draw_roc(scores[:, 0], truth) is None
