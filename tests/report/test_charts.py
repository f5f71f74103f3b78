"""Charts are well-formed, say in words what they show, and keep their marks inside."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from seedless.evaluate.calibration import bin_reliability
from seedless.evaluate.roc_curve import draw_roc as find_roc
from seedless.report.charts import (
    choose_scale,
    draw_axis,
    draw_reliability,
    draw_roc,
    draw_strip,
)


def places(svg, attribute):
    return [float(value) for value in re.findall(rf'\b{attribute}="([-\d.]+)"', svg)]


def test_a_roc_curve_goes_from_corner_to_corner():
    scores, truth = np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1], dtype=np.uint8)
    curve = find_roc(scores, truth)
    svg = draw_roc("A<B", list(zip(curve.x, curve.y, strict=True)), 0.75)
    ElementTree.fromstring(svg)
    trace = re.search(r'class="trace" d="M([^"]+)"', svg)[1]
    corners = [tuple(map(float, point.split())) for point in trace.split("L")]
    assert corners[0] == (36.0, 134.0)
    assert corners[-1] == (162.0, 8.0)
    assert 'aria-label="ROC curve of A&lt;B, area 0.750"' in svg
    for text in ("false positive rate", "true positive rate", ">0.5<"):
        assert text in svg


def test_reliability_draws_a_mark_a_filled_bin():
    scores = np.array([0.05, 0.06, 0.55, 0.95])
    truth = np.array([0, 0, 1, 1], dtype=np.uint8)
    svg = draw_reliability("A", bin_reliability(scores, truth), 0.1)
    ElementTree.fromstring(svg)
    assert len(places(svg, "cx")) == 3
    assert all(36 <= x <= 162 for x in places(svg, "cx"))


@pytest.mark.parametrize(
    ("values", "ends"),
    [([0.91, 0.93], (0.91, 0.93)), ([0.5, 0.99], (0.5, 1.0)), ([0.9, 0.9], (0.9, 0.901))],
)
def test_a_scale_has_round_ends_that_hold_all_values(values, ends):
    scale = choose_scale(values)
    assert (scale.low, scale.high) == pytest.approx(ends)
    assert 2 <= len(scale.ticks) <= 6
    assert scale.low <= min(values)
    assert max(values) <= scale.high


def test_a_strip_has_a_dot_a_run_and_a_star_a_seed_free_run():
    scale = choose_scale([0.5, 0.9])
    svg = draw_strip("TRIGU", [0.5, 0.6, 0.9], [0.8], scale)
    ElementTree.fromstring(svg)
    assert svg.count('class="one"') == 3
    assert svg.count('class="star"') == 1
    assert svg.count('class="mean"') == 1
    assert all(0 < x < 240 for x in places(svg, "cx"))
    assert "TRIGU: 0.500, 0.600, 0.900; seed-free 0.800" in svg
    assert svg == draw_strip("TRIGU", [0.5, 0.6, 0.9], [0.8], scale)
    assert draw_axis(scale).count("<text") == len(scale.ticks)


def test_one_run_has_neither_mean_nor_spread():
    assert 'class="mean"' not in draw_strip("A", [0.5], [], choose_scale([0.5]))
