"""Correctly rounded cosines and square roots against evaluation to many digits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedless.numerics import correct_rounding
from seedless.numerics.correct_rounding import round_real, rounded_cosines, rounded_sqrt


@given(st.integers(-(10**6), 10**6), st.integers(1, 5000))
@settings(deadline=None)
def test_cosines_are_correctly_rounded(numerator, denominator):
    with mpmath.workdps(60):
        exact = mpmath.cos(mpmath.pi * numerator / denominator)
        if 2 * numerator % denominator == 0 and (2 * numerator // denominator) % 2:
            expected = 0.0
        else:
            mantissa, exponent = exact.man_exp
            expected = float(
                Fraction(mantissa) * Fraction(2) ** exponent * (1 if exact > 0 else -1)
            )
    assert rounded_cosines(np.array([numerator]), denominator)[0] == expected


def test_amplitude_and_cosine_are_rounded_together():
    values = rounded_cosines(np.array([0, 1]), 4, Fraction(1))
    assert rounded_cosines(np.array([1]), 4, Fraction(2))[0] == 1.0  # sqrt 2 cos(pi/4)
    assert values.tolist() == [1.0, math.sqrt(0.5)]
    assert rounded_sqrt(Fraction(1, 3)) == 0.5773502691896257


def test_negative_and_zero_reals_round():
    assert round_real(lambda mp: -mp.pi) == -math.pi
    assert round_real(lambda mp: mp.mpf(0)) == 0.0
    assert round_real(lambda mp: mp.sqrt(2) ** 2) == 2.0


@pytest.mark.parametrize("power", [Fraction(1), Fraction(2, 301)])
@pytest.mark.parametrize("denominator", [1, 2, 3, 64, 301, 602])
def test_a_table_of_cosines_has_the_bits_of_single_ones(denominator, power):
    phases = np.arange(-denominator, 3 * denominator)
    single = [rounded_cosines(np.array([phase]), denominator, power)[0] for phase in phases]
    table = rounded_cosines(phases, denominator, power)
    assert table.tobytes() == np.array(single).tobytes()


def test_a_single_cosine_does_not_cost_a_table(monkeypatch):
    monkeypatch.setattr(correct_rounding, "_quarter_of_cosines", pytest.fail)
    assert rounded_cosines(np.array([0]), 10**9)[0] == 1.0
