"""Ranges, failures to converge, and the whole row."""

import math

import numpy as np
import pytest
from scipy import stats

from seedless.core.errors import StatsError
from seedless.stats.compare import compare_samples
from seedless.stats.samples import split_converged
from seedless.stats.spread import find_range

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("n", [2, 5, 20, 100])
def test_the_interval_of_a_range_is_from_the_studentized_range(n):
    found = find_range(RNG.normal(size=n))
    law = stats.studentized_range(n, 1e6)  # so many degrees of freedom: the SD is known
    low, high = law.ppf(0.025), law.ppf(0.975)
    mean = found.interval[0] * high / found.range
    assert found.interval[1] * low / found.range == pytest.approx(mean, rel=1e-4)
    if n == 2:
        assert mean == pytest.approx(2 / math.sqrt(math.pi), rel=1e-4)
    if n == 20:
        assert mean == pytest.approx(3.735, abs=2e-3)  # the tables of d2


def test_the_interval_of_a_range_covers_what_it_says():
    truth, hits = 3.7349, 0
    for _ in range(2000):
        low, high = find_range(RNG.normal(size=20)).interval
        hits += low <= truth <= high
    assert hits / 2000 == pytest.approx(0.95, abs=0.02)


def test_shares_inside_hold_for_any_distribution():
    inside, enough = [], 0
    for _ in range(2000):
        values = RNG.exponential(size=10)
        found = find_range(values)
        covered = math.exp(-found.low) - math.exp(-found.high)
        inside.append(covered)
        enough += covered >= found.share_inside
    assert np.mean(inside) == pytest.approx(found.next_inside, abs=0.01)
    assert enough / 2000 == pytest.approx(0.95, abs=0.015)
    assert found.share_inside == pytest.approx(0.6058, abs=1e-4)  # Wilks' table, n = 10


def test_without_spread_a_range_is_0():
    found = find_range([0.5] * 4)
    assert (found.range, found.interval) == (0, (0, 0))
    with pytest.raises(StatsError, match="at least 2 values, got 1"):
        find_range([1.0])


def test_failures_are_counted():
    found = split_converged([0.95, 0.5909, 0.96, 0.6676], above=0.67)
    assert found.kept == (0.95, 0.96)
    assert found.places == (0, 2)
    assert found.set_aside == (0.5909, 0.6676)
    assert found.sentence == "2 of 4 runs converged (above 0.67); set aside: 0.5909, 0.6676."
    assert split_converged([0.9], above=0.9).kept == ()
    with pytest.raises(StatsError):
        split_converged([0.9, math.nan], above=0.5)


def test_the_whole_row():
    a, b = [0.95, 0.96, 0.97], [0.94, 0.95, 0.93]
    row = compare_samples(a, b, names=("new", "old"), pairs=(a, b), margin=0.05)
    assert (row.a.mean, row.b.low, row.b.high) == (pytest.approx(0.96), 0.93, 0.95)
    assert row.welch.p == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)
    assert row.paired.p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert row.equivalence.margin == 0.05
    assert row.undefined == ()
    assert row.sentence.startswith("new 0.96 (n = 3), old 0.94 (n = 3): the means are not shown")


def test_what_is_undefined_is_none_and_said():
    row = compare_samples([0.9, 0.9], [0.8, 0.8, 0.8], pairs=([1, 2], [0, 1]), margin=0.1)
    nothing = (row.welch, row.effect, row.paired, row.equivalence, row.power, row.runs_needed)
    assert nothing == (None,) * 6
    assert len(row.undefined) == 2
    assert "neither arm varies" in row.sentence
    with pytest.raises(StatsError, match="A: expected at least 2 values, got 1"):
        compare_samples([0.9], [0.8, 0.7])
