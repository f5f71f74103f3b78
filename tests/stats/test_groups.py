"""Friedman, Levene, Holm and sign flips against their definitions and statsmodels."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import chdtrc, fdtrc
from statsmodels.stats.multitest import multipletests

from seedless.core.errors import StatsError
from seedless.stats.group_tests import friedman, levene
from seedless.stats.holm_correction import holm
from seedless.stats.permutation import flip_signs

RNG = np.random.default_rng(9)


def name(rows):
    return {f"g{i}": row for i, row in enumerate(rows)}


def define_friedman(rows):
    """Friedman (1937) with the correction for ties, as written: (groups, blocks) -> chi-square."""
    k, blocks = rows.shape
    sums, ties = np.zeros(k), 0
    for block in rows.T:
        below = (block[None, :] < block[:, None]).sum(axis=1)
        equal = (block[None, :] == block[:, None]).sum(axis=1)
        sums += below + (equal + 1) / 2
        ties += sum(int(t) ** 2 - 1 for t in equal)  # t^3 - t, shared by the t tied values
    raw = 12 / (blocks * k * (k + 1)) * (sums**2).sum() - 3 * blocks * (k + 1)
    return raw / (1 - ties / (blocks * k * (k * k - 1)))


@pytest.mark.parametrize("decimals", [1, 2, 8])  # from many ties to none
@pytest.mark.parametrize(("groups", "blocks"), [(3, 5), (4, 20), (7, 2)])
def test_friedman_is_its_definition(groups, blocks, decimals):
    rows = RNG.normal(0.5, 0.2, (groups, blocks)).round(decimals)
    found = friedman(name(rows))
    assert found.statistic == pytest.approx(define_friedman(rows), abs=1e-9)
    assert found.p == pytest.approx(chdtrc(groups - 1, found.statistic), abs=1e-12)
    assert sum(found.mean_ranks.values()) == pytest.approx(groups * (groups + 1) / 2)


def define_levene(groups, centre):
    """The F of a one-way analysis of the distances from each group's centre, in exact sums."""
    distances = [np.abs(group - centre(group)) for group in groups]
    total, k = sum(map(len, groups)), len(groups)
    grand = math.fsum(np.concatenate(distances)) / total
    means = [math.fsum(part) / len(part) for part in distances]
    between = sum(len(part) * (m - grand) ** 2 for part, m in zip(distances, means, strict=True))
    within = sum(math.fsum((part - m) ** 2) for part, m in zip(distances, means, strict=True))
    return (total - k) / (k - 1) * between / within, (k - 1, total - k)


@pytest.mark.parametrize("centre", ["median", "mean"])
@pytest.mark.parametrize("sizes", [(20, 20), (2, 3), (5, 9, 30)])
def test_levene_is_its_definition(sizes, centre):
    groups = [RNG.normal(0, 1 + i, n) for i, n in enumerate(sizes)]
    found = levene(name(groups), centre)
    statistic, df = define_levene(groups, getattr(np, centre))
    assert (found.statistic, found.df) == (pytest.approx(statistic, rel=1e-9), df)
    assert found.p == pytest.approx(fdtrc(*df, statistic), rel=1e-9)
    assert found == levene(name([group[::-1] for group in groups]), centre)


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


def test_draws_come_near_all_signs():
    a, b = RNG.normal(0, 1, 9), RNG.normal(0.6, 1, 9)
    every, some = flip_signs(a, b), flip_signs(a, b, most=0)
    assert (every.exact, some.exact) == (True, False)
    assert some.p == pytest.approx(every.p, abs=4 * some.error)
    assert some.error < 0.005


def test_draws_are_the_same_every_time_and_blind_to_order():
    a, b = RNG.normal(0, 1, 25), RNG.normal(0.2, 1, 25)
    order = RNG.permutation(25)
    first = flip_signs(a, b)
    assert not first.exact
    assert first.hits == flip_signs(a[order], b[order]).hits == flip_signs(b, a).hits


def test_a_sampled_p_is_never_0():
    found = flip_signs([1.0] * 20, [0.0] * 20, draws=99)
    assert (found.hits, found.p) == (0, 0.01)
    with pytest.raises(StatsError, match="draws: expected at least 1, got 0"):
        flip_signs([1.0, 2.0], [2.0, 4.0], draws=0, most=0)
