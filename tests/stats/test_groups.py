"""Ranks, Holm and permutations against scipy and statsmodels."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from seedless.core.errors import StatsError
from seedless.stats.multiple import holm
from seedless.stats.permutation import flip_signs, permute_labels
from seedless.stats.ranks import friedman, levene

RNG = np.random.default_rng(9)


def name(rows):
    return {f"g{i}": row for i, row in enumerate(rows)}


@pytest.mark.parametrize("decimals", [1, 2, 8])  # from many ties to none
@pytest.mark.parametrize(("groups", "blocks"), [(3, 5), (4, 20), (7, 2)])
def test_friedman_is_scipys(groups, blocks, decimals):
    rows = RNG.normal(0.5, 0.2, (groups, blocks)).round(decimals)
    found, expected = friedman(name(rows)), stats.friedmanchisquare(*rows)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert sum(found.mean_ranks.values()) == pytest.approx(groups * (groups + 1) / 2)


@pytest.mark.parametrize("centre", ["median", "mean"])
@pytest.mark.parametrize("sizes", [(20, 20), (2, 3), (5, 9, 30)])
def test_levene_is_scipys(sizes, centre):
    groups = [RNG.normal(0, 1 + i, n) for i, n in enumerate(sizes)]
    found, expected = levene(name(groups), centre), stats.levene(*groups, center=centre)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_groups_that_cannot_be_ranked_are_refused():
    with pytest.raises(StatsError, match="at least 3 groups, got 2"):
        friedman(name([[1, 2], [2, 3]]))
    with pytest.raises(StatsError, match=r"equal length, got \[2, 3\]"):
        friedman(name([[1, 2], [2, 3], [1, 2, 3]]))
    with pytest.raises(StatsError, match="tied throughout"):
        friedman(name([[1, 2]] * 3))
    with pytest.raises(StatsError, match="equally far"):
        levene(name([[0.1, 0.3], [0.7, 0.7000000001]]))
    with pytest.raises(StatsError, match="g1: value 1 of 2 is nan"):
        levene(name([[1, 2], [math.nan, 2]]))


@pytest.mark.parametrize("count", [1, 2, 6, 40])
def test_holm_is_statsmodels(count):
    p = np.minimum(1, RNG.random(count) ** 3 + RNG.integers(0, 2, count) * 0.01).round(3)
    found = holm({str(i): value for i, value in enumerate(p)})
    survives, adjusted, *_ = multipletests(p, method="holm")
    assert list(found.adjusted.values()) == pytest.approx(list(adjusted))
    assert list(found.survives.values()) == list(survives)


def test_holm_refuses_what_is_no_p():
    for bad in ({}, {"x": 1.2}, {"x": math.nan}):
        with pytest.raises(StatsError):
            holm(bad)


def count_splits(a, b):
    """The definition, in rational steps of 0.01 so that ties are exact."""
    both = [round(100 * value) for value in [*a, *b]]
    total, n, m = sum(both), len(a), len(b)

    def gap(part):
        return abs(sum(part) * m - (total - sum(part)) * n)

    every = [gap(part) for part in combinations(both, n)]
    return sum(value >= gap(both[:n]) for value in every) / len(every)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (3, 3), (4, 7), (6, 6)])
def test_every_split_is_counted_with_its_ties(n, m):
    for _ in range(5):
        a, b = RNG.integers(0, 30, n) / 100, RNG.integers(5, 35, m) / 100
        found = permute_labels(a, b)
        assert found.exact
        assert found.p == count_splits(a, b)
        assert found.splits == math.comb(n + m, n)


def test_exact_permutation_is_scipys():
    a, b = RNG.normal(0, 1, 7), RNG.normal(1, 1, 7)
    expected = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x) - np.mean(y), n_resamples=math.inf
    )
    # scipy doubles the smaller tail, ours counts both: the same where the arms are equally long
    assert permute_labels(a, b).p == pytest.approx(expected.pvalue, rel=1e-12)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_every_sign_is_counted(n):
    a, b = RNG.integers(0, 30, n) / 100, RNG.integers(5, 35, n) / 100
    gaps = [round(100 * x) - round(100 * y) for x, y in zip(a, b, strict=True)]
    signed = [
        abs(sum(s * g for s, g in zip(signs, gaps, strict=True)))
        for signs in product((1, -1), repeat=n)
    ]
    expected = sum(value >= abs(sum(gaps)) for value in signed) / 2**n
    assert flip_signs(a, b).p == expected


def test_draws_come_near_all_splits():
    a, b = RNG.normal(0, 1, 9), RNG.normal(0.6, 1, 9)
    for question in (permute_labels, flip_signs):
        every, some = question(a, b), question(a, b, most=0)
        assert (every.exact, some.exact) == (True, False)
        assert some.p == pytest.approx(every.p, abs=4 * some.error)
        assert some.error < 0.005


def test_draws_are_the_same_every_time_and_blind_to_order():
    a, b = RNG.normal(0, 1, 15), RNG.normal(0.5, 1, 25)
    first = permute_labels(a, b)
    assert not first.exact
    assert permute_labels(a[::-1], b[::-1]).hits == first.hits
    assert permute_labels(b, a).hits == first.hits
    c, d = RNG.normal(0, 1, 25), RNG.normal(0.2, 1, 25)
    order = RNG.permutation(25)
    assert flip_signs(c, d).hits == flip_signs(c[order], d[order]).hits == flip_signs(d, c).hits


def test_a_sampled_p_is_never_0():
    found = permute_labels([0.0] * 5 + [1e-3] * 10, [1.0] * 15, draws=99)
    assert (found.hits, found.p) == (0, 0.01)
    with pytest.raises(StatsError, match="draws: expected at least 1, got 0"):
        permute_labels([1.0], [2.0], draws=0, most=0)
