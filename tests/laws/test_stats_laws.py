"""Laws of the statistics: shifts, scales and swaps do what they must, and no number is NaN."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seedless.core.errors import StatsError
from seedless.stats.compare import compare_samples
from seedless.stats.effect import cohens_d
from seedless.stats.group_tests import friedman, levene
from seedless.stats.holm_correction import holm
from seedless.stats.permutation import flip_signs
from seedless.stats.power import find_power, find_runs_needed
from seedless.stats.t_tests import paired_t_test, welch_t_test

SCORES = st.integers(0, 10_000).map(lambda value: value / 10_000)
SAMPLE = st.lists(SCORES, min_size=2, max_size=12)
SHIFT = st.floats(-10, 10)
SCALE = st.floats(0.01, 100)
WILD = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=0, max_size=5)


def vary(*samples):
    assume(all(max(sample) > min(sample) for sample in samples))


@given(SAMPLE, SAMPLE, SHIFT, SCALE)
def test_t_and_d_do_not_see_shift_and_scale(a, b, shift, scale):
    vary(a, b)
    moved = [[shift + scale * value for value in sample] for sample in (a, b)]
    one, two = welch_t_test(a, b), welch_t_test(*moved)
    assert two.t == pytest.approx(one.t, rel=1e-6, abs=1e-6)
    assert two.difference == pytest.approx(scale * one.difference, rel=1e-6, abs=1e-9)
    assert cohens_d(*moved).d == pytest.approx(cohens_d(a, b).d, rel=1e-6, abs=1e-6)


@given(SAMPLE, SAMPLE)
def test_swapping_the_arms_changes_signs_alone(a, b):
    vary(a, b)
    one, two = welch_t_test(a, b), welch_t_test(b, a)
    assert (two.t, two.df, two.p) == (-one.t, pytest.approx(one.df), pytest.approx(one.p))
    assert two.interval == pytest.approx((-one.interval[1], -one.interval[0]), abs=1e-12)
    here, there = cohens_d(a, b), cohens_d(b, a)
    assert there.d == -here.d
    assert there.noncentral_t == pytest.approx(
        (-here.noncentral_t[1], -here.noncentral_t[0]), rel=1e-6, abs=1e-9
    )


@given(SAMPLE, SAMPLE, st.randoms(use_true_random=False))
def test_the_order_of_runs_never_shows(a, b, random):
    vary(a, b)
    mixed_a, mixed_b = random.sample(a, len(a)), random.sample(b, len(b))
    assert compare_samples(a, b, margin=0.1) == compare_samples(mixed_a, mixed_b, margin=0.1)
    if len(a) == len(b):
        pairs = random.sample(list(zip(a, b, strict=True)), len(a))
        assert flip_signs(a, b).p == flip_signs(*zip(*pairs, strict=True)).p


@given(SAMPLE, SAMPLE)
def test_the_intervals_hold_what_they_are_about(a, b):
    vary(a, b)
    for test in (welch_t_test(a, b), *([paired_t_test(a, b)] if is_paired(a, b) else [])):
        assert test.interval[0] <= test.difference <= test.interval[1]
        assert 0 <= test.p <= 1
        assert (test.p < 0.05) == (test.interval[0] > 0 or test.interval[1] < 0)
    found = cohens_d(a, b)
    for low, high in (found.wald, found.wald_t, found.noncentral_t):
        assert low <= found.d <= high
    assert found.wald_t[0] < found.wald[0]  # t has the longer tails


def is_paired(a, b):
    gaps = np.subtract(a, b) if len(a) == len(b) else np.zeros(1)
    return np.ptp(gaps) > 1e-9


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), min_size=1, max_size=9))
def test_holm_never_lowers_a_p_nor_changes_their_order(p_values):
    found = holm(p_values)
    for name, p in p_values.items():
        assert p <= found.adjusted[name] <= min(1, p * len(p_values) * (1 + 1e-12))
        for other in p_values:
            assert p_values[other] < p or found.adjusted[name] <= found.adjusted[other]


@given(SAMPLE, SAMPLE)
def test_a_permutation_p_is_a_share_above_0(a, b):
    short = min(len(a), len(b))
    a, b = a[:short], b[:short]
    found = flip_signs(a, b, draws=99, most=500)
    assert 0 < found.p <= 1
    assert 1 / found.splits <= found.p if found.exact else found.p >= 0.01
    assert flip_signs(b, a, draws=99, most=500).p == found.p


@given(st.floats(-4, 4), st.integers(2, 60), st.integers(2, 60))
def test_more_runs_have_more_power(d, n, m):
    power = find_power(d, n, m).power
    assert 0.05 - 1e-9 <= power <= 1
    assert find_power(-d, m, n).power == pytest.approx(power)
    assert find_power(d, n + 1, m + 1).power >= power - 1e-9


@given(st.floats(0.05, 5))
def test_runs_needed_are_enough_and_no_more(d):
    runs = find_runs_needed(d).per_arm
    assert find_power(d, runs).power >= 0.8 - 1e-9
    assert runs == 2 or find_power(d, runs - 1).power < 0.8


@given(WILD, WILD)
def test_any_numbers_give_a_row_without_nan_or_a_clear_refusal(a, b):
    questions = (
        lambda: compare_samples(a, b, margin=0.1, pairs=(a, b) if len(a) == len(b) else None),
        lambda: flip_signs(a, b),
        lambda: levene({"a": a, "b": b}),
        lambda: friedman({"a": a, "b": b, "c": a}),
    )
    for question in questions:
        try:
            found = question()
        except StatsError:
            continue
        check_numbers(dataclasses.asdict(found))


def check_numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            check_numbers(item)
    assert not isinstance(value, float) or math.isfinite(value)
