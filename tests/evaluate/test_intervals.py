"""DeLong's variance against its definition over all pairs, and intervals against scipy's."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from seedless.core.errors import DataError
from seedless.evaluate.intervals import (
    Interval,
    area_interval,
    compare_areas,
    count_wins,
    delong_covariance,
    delong_interval,
    difference_interval,
    pair_interval,
    quantile,
    wilson_interval,
)
from tests.evaluate.tables import make_table


def components(scores, truth):
    """DeLong et al. (1988), equations 4 and 5, as written: exact, over all pairs."""
    above = [s for s, t in zip(scores, truth, strict=True) if t]
    below = [s for s, t in zip(scores, truth, strict=True) if not t]

    def kernel(x, y):
        return Fraction(1) if y < x else Fraction(1, 2) if y == x else Fraction(0)

    v10 = [sum(kernel(x, y) for y in below) / len(below) for x in above]
    v01 = [sum(kernel(x, y) for x in above) / len(above) for y in below]
    return v10, v01


def covary(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    pairs = zip(a, b, strict=True)
    return sum((x - mean_a) * (y - mean_b) for x, y in pairs) / (len(a) - 1)


def slow_covariance(first, second, truth):
    (a10, a01), (b10, b01) = components(first, truth), components(second, truth)
    return float(covary(a10, b10) / len(a10) + covary(a01, b01) / len(a01))


@pytest.mark.parametrize("levels", [None, 3, 10])
@pytest.mark.parametrize("seed", range(4))
def test_the_variance_is_that_of_the_structural_components(levels, seed):
    scores, labels = make_table(60, 1, seed, levels)
    parts = delong_covariance(scores[:, 0], scores[:, 0], labels[:, 0])
    assert sum(parts) == pytest.approx(
        slow_covariance(scores[:, 0], scores[:, 0], labels[:, 0]), rel=1e-12
    )


@pytest.mark.parametrize("levels", [None, 4])
@pytest.mark.parametrize("seed", range(4))
def test_the_comparison_is_that_of_the_structural_components(levels, seed):
    scores, labels = make_table(50, 2, seed, levels)
    first, second, truth = scores[:, 0], scores[:, 1], labels[:, 0]
    found = compare_areas(first, second, truth)
    areas = [roc_auc_score(truth, s) for s in (first, second)]
    assert (found.first, found.second) == pytest.approx(areas, abs=1e-15)
    variance = (
        slow_covariance(first, first, truth)
        + slow_covariance(second, second, truth)
        - 2 * slow_covariance(first, second, truth)
    )
    z = (areas[0] - areas[1]) / math.sqrt(variance)
    assert found.z == pytest.approx(z, rel=1e-9)
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-9)
    half = stats.norm.ppf(0.975) * math.sqrt(variance)
    assert found.interval.low == pytest.approx(areas[0] - areas[1] - half, abs=1e-9)
    back = compare_areas(second, first, truth)
    assert (back.difference, back.p) == (-found.difference, found.p)


def test_equal_rankings_do_not_differ_and_perfect_opposites_cannot_be_judged():
    scores, labels = make_table(40, 1)
    same = compare_areas(scores[:, 0], scores[:, 0] ** 3, labels[:, 0])
    assert (same.difference, same.z, same.p, same.interval) == (0.0, 0.0, 1.0, None)
    truth = np.array([0, 0, 1, 1], dtype=np.uint8)
    ranks = np.arange(4.0)
    apart = compare_areas(ranks, -ranks, truth)
    assert (apart.difference, apart.z, apart.p) == (1.0, None, None)
    assert compare_areas(ranks, ranks, np.zeros(4, np.uint8)) is None
    few = compare_areas(ranks, -ranks, np.array([0, 0, 0, 1], dtype=np.uint8))
    assert (few.difference, few.interval, few.p) == (1.0, None, None)


def test_the_interval_is_students_on_the_logit_scale():
    scores, labels = make_table(80, 1, seed=3)
    v10, v01 = components(scores[:, 0], labels[:, 0])
    parts = [float(covary(v, v) / len(v)) for v in (v10, v01)]
    area = float(sum(v10) / len(v10))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(v) - 1) for part, v in zip(parts, (v10, v01), strict=True)
    )
    half = stats.t.ppf(0.95, freedom) * math.sqrt(sum(parts)) / (area * (1 - area))
    ends = [1 / (1 + math.exp(-(math.log(area / (1 - area)) + sign * half))) for sign in (-1, 1)]
    found = delong_interval(scores[:, 0], labels[:, 0], level=0.9)
    assert found.as_list() == pytest.approx(ends, abs=2e-9)
    assert found.method == "delong"


DEGENERATE = {
    "perfect": ([0.1, 0.2, 0.3, 0.8, 0.9], [0, 0, 0, 1, 1], 1.0),
    "perfectly wrong": ([0.1, 0.2, 0.3, 0.8, 0.9], [1, 1, 0, 0, 0], 0.0),
    "all equal": ([0.5] * 5, [0, 0, 0, 1, 1], 0.5),
    "one positive": ([0.1, 0.2, 0.3, 0.8, 0.15], [0, 0, 0, 0, 1], 0.25),
    "one negative": ([0.1, 0.2, 0.3, 0.8, 0.15], [1, 1, 0, 1, 1], 0.25),
}


@pytest.mark.parametrize("what", DEGENERATE)
def test_no_interval_claims_certainty(what):
    scores, truth, area = DEGENERATE[what]
    found = delong_interval(np.array(scores), np.array(truth, dtype=np.uint8))
    assert found.method == "pairs"
    assert found.low <= area <= found.high
    assert found.high - found.low > 0.6


@pytest.mark.parametrize("kind", [0, 1])
def test_one_kind_alone_has_no_interval(kind):
    truth = np.full(5, kind, dtype=np.uint8)
    assert delong_interval(np.arange(5.0), truth) is None
    assert delong_covariance(np.arange(5.0), np.arange(5.0), truth) is None


@pytest.mark.parametrize(("won", "pairs"), [(0, 4), (4, 4), (2, 7), (1, 1), (30, 31)])
def test_pairs_are_clopper_and_pearson(won, pairs):
    found = pair_interval(won / pairs, pairs, pairs + 3)
    expected = proportion_confint(won, pairs, method="beta")
    assert found.as_list() == pytest.approx(expected, abs=2e-9)


@pytest.mark.parametrize(("won", "tried"), [(0, 5), (5, 5), (3, 10), (1, 2000), (0, 1)])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_shares_are_wilsons(won, tried, level):
    found = wilson_interval(won, tried, level)
    expected = proportion_confint(won, tried, alpha=1 - level, method="wilson")
    assert found.as_list() == pytest.approx(expected, abs=2e-9)
    assert wilson_interval(0, 0) is None


def test_a_difference_of_shares_is_newcombes():
    around = [wilson_interval(56, 70), wilson_interval(48, 80)]
    found = difference_interval(0.8, around[0], 0.6, around[1])
    # Newcombe (1998), table II, example (a), method 10.
    assert [round(end, 4) for end in found.as_list()] == [0.0524, 0.3339]
    expected = confint_proportions_2indep(56, 70, 48, 80, method="newcomb")
    assert found.as_list() == pytest.approx(expected, abs=2e-9)


TABLES = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=4, max_size=30)


@given(TABLES)
def test_only_order_counts_and_turning_round_mirrors(table):
    scores, truth = np.array(table, dtype=np.float64).T
    truth = truth.astype(np.uint8)
    assume(0 < truth.sum() < len(truth))
    here = delong_interval(scores, truth)
    assert delong_interval(np.exp(scores), truth) == here
    turned = delong_interval(-scores, truth)
    assert [turned.low, turned.high] == pytest.approx([1 - here.high, 1 - here.low], abs=3e-9)
    flipped = delong_interval(scores, 1 - truth)
    assert [flipped.low, flipped.high] == pytest.approx([1 - here.high, 1 - here.low], abs=3e-9)
    assert 0 <= here.low <= here.high <= 1


@given(TABLES)
def test_wins_are_twice_the_area(table):
    scores, truth = np.array(table, dtype=np.float64).T
    truth = truth.astype(np.uint8)
    assume(0 < truth.sum() < len(truth))
    wins, positives, negatives = count_wins(scores, truth)
    area = wins / (2 * positives * negatives)
    assert area == pytest.approx(roc_auc_score(truth, scores), abs=1e-15)


def test_a_level_is_a_share():
    assert quantile(0.95) == pytest.approx(1.959963984540054, abs=1e-15)
    for wrong in (0, 1, 95, -0.5):
        with pytest.raises(DataError, match="expected a level between 0 and 1"):
            quantile(wrong)
    assert Interval(0.1, 0.2, "x").as_list() == [0.1, 0.2]


def test_the_interval_of_an_area_is_wilsons_of_disjoint_pairs():
    assert area_interval(0.8, 10, 90).as_list() == wilson_interval(8, 10).as_list()
    assert area_interval(0.8, 90, 10) == area_interval(0.8, 10, 90)
    assert area_interval(1.0, 4, 16).high == 1.0
    assert area_interval(0.0, 4, 16).low == 0.0
    wide, narrow = pair_interval(0.92, 5, 95), area_interval(0.92, 5, 95)
    assert wide.low < narrow.low < 0.92 < narrow.high < wide.high
    with pytest.raises(DataError, match="a positive and a negative"):
        area_interval(0.5, 0, 10)
