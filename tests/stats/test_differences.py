"""Tests of means against scipy and statsmodels."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower
from statsmodels.stats.weightstats import ttost_ind, ttost_paired

from seedless.core.errors import StatsError
from seedless.stats.effect import cohens_d
from seedless.stats.equivalence import paired_tost, tost
from seedless.stats.power import find_power, find_runs_needed
from seedless.stats.t_tests import paired_t_test, welch_t_test

RNG = np.random.default_rng(5)
SAMPLES = [
    (RNG.normal(0.95, 0.01, n), RNG.normal(0.945, sd, m))
    for n, m, sd in [(20, 20, 0.02), (2, 2, 0.01), (5, 18, 0.1), (200, 3, 0.001)]
]
both = pytest.mark.parametrize(("a", "b"), SAMPLES)


@both
def test_welch_is_scipys(a, b):
    found, expected = welch_t_test(a, b, 0.9), stats.ttest_ind(a, b, equal_var=False)
    assert found.t == pytest.approx(expected.statistic, rel=1e-9)
    assert found.df == pytest.approx(expected.df, rel=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.interval == pytest.approx(expected.confidence_interval(0.9), rel=1e-9)
    assert found.n == (len(a), len(b))


@pytest.mark.parametrize("n", [2, 5, 20, 300])
def test_paired_is_scipys(n):
    a, b = RNG.normal(0.9, 0.02, n), RNG.normal(0.89, 0.02, n)
    found, expected = paired_t_test(a, b), stats.ttest_rel(a, b)
    assert (found.t, found.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)
    assert found.interval == pytest.approx(expected.confidence_interval(), rel=1e-9)


@both
@pytest.mark.parametrize("margin", [0.001, 0.015, 0.5])
def test_tost_is_statsmodels(a, b, margin):
    found = tost(a, b, margin)
    p, above, below = ttost_ind(a, b, -margin, margin, usevar="unequal")
    ours = (found.p, found.p_above_lower, found.p_below_upper)
    assert ours == pytest.approx((p, above[1], below[1]), rel=1e-8)
    assert found.equivalent == (p < 0.05)
    inside = -margin < found.interval[0] and found.interval[1] < margin
    assert found.equivalent == inside  # the two ways to put it


@both
@pytest.mark.parametrize("margin", [0.001, 0.015, 0.5])
def test_paired_tost_is_statsmodels(a, b, margin):
    size = min(len(a), len(b))
    a, b = np.array(a[:size]), np.array(b[:size])
    found = paired_tost(a, b, margin)
    p, above, below = ttost_paired(a, b, -margin, margin)
    ours = (found.p, found.p_above_lower, found.p_below_upper)
    assert ours == pytest.approx((p, above[1], below[1]), rel=1e-8)
    assert found.n == (size,)
    assert found.df == size - 1
    assert found.equivalent == (-margin < found.interval[0] and found.interval[1] < margin)


def test_published_degrees_of_freedom_are_more():
    a, b = SAMPLES[0]
    ours, published = tost(a, b, 0.015), tost(a, b, 0.015, degrees="published")
    assert published.df == 38 > ours.df
    assert published.p < ours.p
    assert "equal variances" in published.assumption


@both
def test_noncentral_interval_has_the_tails_it_should(a, b):
    found = cohens_d(a, b)
    n, m = len(a), len(b)
    root, df = math.sqrt(n * m / (n + m)), n + m - 2
    low, high = found.noncentral_t
    assert stats.nct.sf(found.d * root, df, low * root) == pytest.approx(0.025, rel=1e-6)
    assert stats.nct.cdf(found.d * root, df, high * root) == pytest.approx(0.025, rel=1e-6)
    spread = math.sqrt((np.var(a, ddof=1) + np.var(b, ddof=1)) / 2)
    assert found.d == pytest.approx((a.mean() - b.mean()) / spread, rel=1e-9)
    assert abs(found.g) < abs(found.d)


def test_the_noncentral_interval_of_a_huge_effect_is_that_of_its_mirror_image():
    """There scipy's distribution is NaN where the probability is 0."""
    a, b = np.array([0.9, 0.91, 0.92]), np.array([1.7, 1.71, 1.72])
    low, high = cohens_d(a, b).noncentral_t
    assert cohens_d(b, a).noncentral_t == pytest.approx((-high, -low), rel=1e-9)
    assert low < cohens_d(a, b).d < high


@pytest.mark.parametrize("d", [0, 0.1, -0.5, 0.815, 3, 30])
@pytest.mark.parametrize(("n", "m"), [(2, 2), (20, 20), (5, 50)])
def test_power_is_statsmodels(d, n, m):
    expected = TTestIndPower().power(abs(d), n, 0.05, ratio=m / n)
    assert find_power(d, n, m).power == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("d", [0.05, -0.5, 0.815, 1.5])
def test_runs_needed_are_statsmodels(d):
    found = find_runs_needed(d)
    expected = TTestIndPower().solve_power(abs(d), power=0.8, alpha=0.05)
    assert found.exact == pytest.approx(expected, rel=1e-6)
    assert find_power(d, found.per_arm).power >= 0.8 > find_power(d, found.per_arm - 1).power


def test_power_at_the_ends():
    assert find_power(1e12, 2).power == 1
    assert find_power(0, 20).power == pytest.approx(0.05)
    assert find_runs_needed(1e9).per_arm == 2
    for d in (0.0, 1e-12):
        found = find_runs_needed(d)
        assert (found.exact, found.per_arm) == (None, None)
        assert "No number of runs" in found.sentence


def test_one_arm_without_spread_leaves_the_others_degrees():
    found = welch_t_test([0.1] * 7, [0.5, 0.7, 0.9])
    assert found.df == pytest.approx(2)
    assert found.standard_error == pytest.approx(0.2 / math.sqrt(3))


BAD = {
    "one value": ([1.0], [1.0, 2.0]),
    "none": ([], [1.0, 2.0]),
    "NaN": ([1.0, math.nan], [1.0, 2.0]),
    "None": ([1.0, None], [1.0, 2.0]),
    "infinity": ([1.0, 2.0], [1.0, math.inf]),
    "text": (["0.9", "0.8"], [1.0, 2.0]),
    "a number": (0.9, [1.0, 2.0]),
    "a table": ([[1.0, 2.0]], [1.0, 2.0]),
    "complex": ([1j, 2.0], [1.0, 2.0]),
    "too large": ([1e200, 2.0], [1.0, 2.0]),
    "no spread": ([0.1] * 3, [0.2] * 3),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize(
    "question", [welch_t_test, paired_t_test, cohens_d, lambda a, b: tost(a, b, 0.1)]
)
def test_what_is_no_sample_is_refused(question, name):
    with pytest.raises(StatsError):
        question(*BAD[name])


def test_errors_say_what_and_what_to_do():
    with pytest.raises(StatsError, match="second sample: value 2 of 3 is nan; set failed runs"):
        welch_t_test([1, 2], [1, math.nan, 3])
    with pytest.raises(StatsError, match="equal length, got 3 and 2 values; match them by seed"):
        paired_t_test([1, 2, 3], [1, 2])
    with pytest.raises(StatsError, match=r"all 3 paired differences are 0\.1"):
        paired_t_test([0.4, 0.7, 0.9], [0.3, 0.6, 0.8])  # equal but for rounding
    with pytest.raises(StatsError, match="deterministic run are one observation"):
        welch_t_test([0.1, 0.1, 0.1], [0.2, 0.2])
    with pytest.raises(StatsError, match="margin: expected a positive number, got -1"):
        tost([1, 2], [1, 2], -1)
    with pytest.raises(StatsError, match="margin"):
        paired_tost([1, 2], [1, 3], 0)
    with pytest.raises(StatsError, match="level: expected a number between 0 and 1, got 95"):
        welch_t_test([1, 2], [1, 2], 95)
    for question in (welch_t_test, cohens_d):
        with pytest.raises(StatsError, match="is -inf: the values are too large"):
            question([1e-159, 3e-159], [1e150, 1e150])


def test_a_row_reads():
    found = welch_t_test([3, 4, 5], [1, 2, 3])
    assert str(found) == (
        "The means differ by 2, 95% interval [-0.267, 4.267]; by Welch's t test t = 2.449, "
        "df = 4, p = 0.07048.\n  n = 3 and 3; assumes independent runs, means of runs near normal; "
        "the variances may differ"
    )
    assert found.as_values()["interval"] == found.interval
