"""Draws for many keys agree with the counter; the cosine and the hump are what they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedless.data.simulators.exact_math import (
    TURN,
    bump,
    cosine,
    draw_noise,
    draw_rows,
    near_normal,
    to_phase,
)
from seedless.numerics.counter_random import draw_uniform


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=4), st.text(max_size=9))
def test_rows_are_the_counters_draws(keys, name):
    rows = draw_rows(np.array(keys), name, 5)
    np.testing.assert_array_equal(rows, [draw_uniform(key, name, 5) for key in keys])


def test_noise_is_centred_and_white():
    noise = draw_noise(np.arange(20), "noise", 5001)
    assert noise.shape == (20, 5001)
    assert noise.min() >= -255
    assert noise.max() <= 255
    assert noise.mean() == pytest.approx(0, abs=1.5)
    assert noise.std() == pytest.approx(104.5, rel=0.01)
    for lag in (1, 2, 8):
        assert abs(np.mean(noise[:, lag:] * noise[:, :-lag])) / 104.5**2 < 0.02
    np.testing.assert_array_equal(noise[7:8, :100], draw_noise(np.array([7]), "noise", 100))


def test_bell_has_mean_0_and_deviation_1():
    values = near_normal(draw_rows(np.arange(4000), "bell", 3))
    assert values.mean() == pytest.approx(0, abs=0.05)
    assert values.std() == pytest.approx(1, abs=0.03)


def test_cosine_is_the_cosine_at_the_nearest_of_1024_angles():
    turns = np.linspace(-3, 3, 10_001)
    np.testing.assert_allclose(cosine(to_phase(turns)), np.cos(2 * np.pi * turns), atol=0.0031)
    assert cosine(np.array([0, TURN // 4, TURN // 2, -TURN])).tolist() == [1, 0, -1, 1]


def test_bump_is_one_in_the_middle_and_nothing_outside():
    distance = np.array([-30.0, -20.0, -10.0, 0.0, 10.0, 20.0])
    np.testing.assert_array_equal(bump(distance, np.full(6, 20.0)), [0, 0, 0.75**3, 1, 0.75**3, 0])
