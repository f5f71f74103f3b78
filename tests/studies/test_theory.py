"""The closed forms that the study of theory rests on, and the study itself, which has no runs."""

import json
import math

import numpy as np
import pytest
from scipy.fft import dct as scipy_dct

from seedless.core.config import DataConfig
from seedless.core.errors import StudyError
from seedless.init.bases import BASES, basis
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.runner import run_study
from seedless.studies.shared import basis_theory
from tests.studies.plans import plan

EXACT = tuple(name for name in BASES if name != "hadamard")


@pytest.mark.parametrize("size", [5, 12, 64, 100])
@pytest.mark.parametrize("name", EXACT)
def test_an_orthonormal_basis_has_condition_number_one(name, size):
    assert basis_theory.condition(basis(name, size)) == pytest.approx(1, abs=1e-12)


def test_a_cut_hadamard_a_gaussian_and_a_singular_matrix_have_another():
    assert basis_theory.condition(basis("hadamard", 64)) == pytest.approx(1, abs=1e-12)
    assert basis_theory.condition(basis("hadamard", 60)) == pytest.approx(4, abs=1e-9)
    assert basis_theory.condition(basis_theory.draw_gaussian(64, 64)) > 10
    assert basis_theory.condition(np.ones((3, 3))) is None
    assert basis_theory.condition(np.diag([6.0, 3.0, 2.0])) == pytest.approx(3)


def test_random_matrices_are_functions_of_their_seed_and_orthonormal_ones_are():
    one, again, other = (basis_theory.draw_orthonormal(16, seed) for seed in (0, 0, 1))
    assert (one == again).all()
    assert np.abs(one - other).max() > 0.1
    np.testing.assert_allclose(one @ one.T, np.eye(16), atol=1e-12)
    drawn = basis_theory.draw_gaussian(200, 50)
    assert drawn.var() == pytest.approx(2 / 50, rel=0.05)  # He's


def test_without_correlation_all_orthonormal_filters_have_the_same_information():
    white = basis_theory.covariance(64, 0.0)
    known = 16 / 2 * math.log(1 + 1 / 0.1)
    for name in BASES:
        assert basis_theory.information(basis(name, 64)[:16], white, 0.1) == pytest.approx(known)
    random = basis_theory.draw_orthonormal(64)[:16]
    assert basis_theory.information(random, white, 0.1) == pytest.approx(known)
    # Rows that overlap say some things twice.
    assert basis_theory.information(basis_theory.draw_gaussian(16, 64), white, 0.1) < known - 0.1


def test_information_does_not_depend_on_how_loud_a_filter_is_but_on_the_noise():
    signal, rows = basis_theory.covariance(64, 0.7), basis("dct", 64)[:16]
    found = basis_theory.information(rows, signal, 0.1)
    assert basis_theory.information(rows * np.arange(1, 17)[:, None], signal, 0.1) == pytest.approx(
        found
    )
    assert basis_theory.information(rows, signal, 0.2) < found
    with pytest.raises(StudyError, match="variance above 0"):
        basis_theory.information(rows, signal, 0.0)


def test_information_of_the_klt_is_that_of_independent_channels_and_bounds_all():
    signal = basis_theory.covariance(64, 0.9)
    largest = np.sort(np.linalg.eigvalsh(signal))[::-1][:16]
    best = basis_theory.information(basis_theory.find_klt(signal)[:16], signal, 0.1)
    assert best == pytest.approx(0.5 * np.log1p(largest / 0.1).sum())
    for name in BASES:
        assert basis_theory.information(basis(name, 64)[:16], signal, 0.1) <= best + 1e-9


@pytest.mark.parametrize("rho", [0.3, 0.9, 0.99])
def test_no_basis_keeps_more_energy_than_the_klt(rho):
    signal = basis_theory.covariance(64, rho)
    bound = basis_theory.energy_shares(basis_theory.find_klt(signal), signal)
    for name in BASES:
        kept = basis_theory.energy_shares(basis(name, 64), signal)
        assert (kept <= bound + 1e-12).all()
        assert kept[-1] == pytest.approx(1)


def test_the_dct_approaches_the_klt_as_correlation_grows():
    def lag(rho):
        signal = basis_theory.covariance(64, rho)
        bound = basis_theory.energy_shares(basis_theory.find_klt(signal), signal)
        return float((bound - basis_theory.energy_shares(basis("dct", 64), signal)).max())

    lags = [lag(rho) for rho in (0.9, 0.99, 0.999, 0.9999)]
    assert lags == sorted(lags, reverse=True)
    assert lags[-1] < 1e-4
    assert (
        basis_theory.spread_off_diagonal(basis("dct", 64), basis_theory.covariance(64, 0.9999))
        < 1e-4
    )


def test_off_diagonal_energy_is_that_of_a_sum_over_pairs():
    signal, rows = basis_theory.covariance(6, 0.5), basis_theory.draw_gaussian(6, 6)
    turned = rows @ signal @ rows.T
    pairs = sum(turned[i, j] ** 2 for i in range(6) for j in range(6) if i != j)
    found = basis_theory.spread_off_diagonal(rows, signal)
    assert found == pytest.approx(
        pairs / sum(turned[i, j] ** 2 for i in range(6) for j in range(6))
    )
    assert basis_theory.spread_off_diagonal(basis_theory.find_klt(signal), signal) < 1e-20


def test_energy_of_samples_is_that_of_their_coefficients():
    draw = np.random.default_rng(0)
    samples = draw.normal(size=(basis_theory.BLOCK + 5, 2, 40)).cumsum(axis=-1).astype("f4") + 3
    lines = samples.reshape(-1, 40).astype("f8")
    lines -= lines.mean(axis=1, keepdims=True)
    energy = (scipy_dct(lines, norm="ortho") ** 2).sum(axis=0)
    found = basis_theory.energy_shares(basis("dct", 40), basis_theory.find_moment(samples))
    np.testing.assert_allclose(found, np.cumsum(energy) / energy.sum(), atol=1e-9)


def test_bounds_on_the_scale_of_residual_exits():
    assert basis_theory.bound_scales(33, 3) == (
        pytest.approx(0.0303, abs=1e-4),
        pytest.approx(0.417, abs=1e-3),
    )
    assert basis_theory.bound_scales(16, 2)[1] == pytest.approx(0.25)
    assert basis_theory.bound_scales(12, 1)[1] is None
    with pytest.raises(StudyError, match="at least 1"):
        basis_theory.bound_scales(0, 3)
    counts = {model: basis_theory.count_branches(model) for model in basis_theory.BRANCHES}
    assert counts == {"conformer": 30, "baseline": 12, "xresnet1d101": 33, "resnet18": 8}


@pytest.mark.parametrize("rho", [1.0, -1.0, float("nan")])
def test_a_correlation_of_one_is_refused(rho):
    with pytest.raises(StudyError, match="between -1 and 1"):
        basis_theory.covariance(4, rho)


def test_a_study_without_runs_ends_in_tables_and_a_figure(tmp_path):
    options = StudyOptions(device="cpu")
    assert str(plan("theory", options).grid).startswith("theory: no runs, sha256:")
    written = run_study(plan("theory", options), tmp_path)
    assert written.counts == {}
    assert written.figure.read_bytes()[:4] == b"\x89PNG"
    assert len(written.tables) == 13
    assert not any((tmp_path / "runs").iterdir())
    kept = json.loads(written.markdown.with_suffix(".json").read_bytes())["tables"][1]["values"]
    shares = {value["basis"]: value["share"] for value in kept}
    assert shares["dct"] > 0.99
    assert shares["hartley"] < 0.7


def test_images_have_no_signal_to_look_at():
    with pytest.raises(StudyError, match="holds images"):
        basis_theory.find_sample_energy(DataConfig(name="simulated-images", records=20))
