"""The published claims about starts: against closed forms, and where they do not hold."""

import math

import numpy as np
import pytest
from scipy import integrate

from seedless.init.bases import basis
from seedless.studies.shared import published_theory as theory
from seedless.studies.shared.basis_theory import covariance
from seedless.studies.shared.published_theory_tables import tabulate_coherence, tabulate_growth


def test_information_as_published_crosses_near_the_published_correlation():
    crossing = theory.find_crossing()
    assert crossing == pytest.approx(0.3, abs=0.05)
    below, above = crossing - 0.05, crossing + 0.05
    assert theory.dct_information(below) < theory.kaiming_information(below)
    assert theory.dct_information(above) > theory.kaiming_information(above)


def test_louder_rows_have_more_information_so_the_scale_matters():
    rows, white = basis("dct", 64)[:16], covariance(64, 0.0)
    assert theory.scaled_information(rows, white) == pytest.approx(8 * math.log(11))
    louder = theory.scaled_information(math.sqrt(2) * rows, white)
    assert louder == pytest.approx(8 * math.log(21))


def test_moments_of_kaimings_energy_are_the_published_ones():
    mean, variance = theory.measure_energy_moments(8, 16)
    error = math.sqrt(8 * 8 / 16**2 / theory.MOMENT_DRAWS)
    assert mean == pytest.approx(1.0, abs=4 * error)
    assert variance == pytest.approx(0.25, rel=0.3)


def test_condition_numbers_approach_the_limit_of_marchenko_and_pastur():
    assert theory.limit_condition(0.25) == pytest.approx(3)
    gaps = [abs(theory.measure_condition(0.25, size) - 3) for size in (16, 256)]
    assert gaps[1] < 0.3 < gaps[0]


def test_bases_that_differ_may_share_rows_so_their_coherence_is_one():
    assert theory.find_coherence("dct", "hadamard") == (pytest.approx(1), 2)
    coherence, shared = theory.find_coherence("dct", "sinusoidal")
    assert coherence < 0.95
    assert shared == 0
    assert {tuple(value["pair"]) for value in tabulate_coherence().values if value["shared"]} >= {
        ("dct", "hadamard"),
        ("dct", "hartley"),
        ("hadamard", "hartley"),
    }


def test_growth_is_compound_interest():
    bounds = {value["scale"]: value["bound"] for value in tabulate_growth().values}
    assert bounds[0.01] == pytest.approx(1.3887, abs=1e-4)
    assert bounds[1.0] == 2**33


@pytest.mark.parametrize("deviation", [0.1, 1.0, 3.0])
def test_a_gelu_keeps_between_a_quarter_and_half_of_the_second_moment(deviation):
    def weigh(x):
        value = x * 0.5 * math.erfc(-x / math.sqrt(2))
        density = math.exp(-0.5 * (x / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))
        return value * value * density

    known = integrate.quad(weigh, -9 * deviation, 9 * deviation)[0] / deviation**2
    found = theory.gelu_ratio(deviation)
    assert found == pytest.approx(known, rel=1e-6)
    assert 0.25 < found < 0.5


def test_gain_of_a_convolution_is_the_largest_over_frequencies():
    average = np.full((1, 1, 5), 0.2)
    assert theory.find_gain(average) == pytest.approx(1)  # at frequency 0
    difference = np.array([[[1.0, -1.0]]])
    assert theory.find_gain(difference) == pytest.approx(2)  # at the highest frequency
    rows = basis("dct", 8)[:4, :, None]
    assert theory.find_gain(rows) == pytest.approx(1)  # a kernel of one sample is its matrix


def test_no_branch_of_the_conformer_is_an_isometry():
    gains = theory.measure_branch_gains("dct")
    assert len(gains) == 3
    assert not any(gain == pytest.approx(1, abs=0.05) for gain in gains)
