"""Leads by name; limb leads by Einthoven and Goldberger; lengths and rates."""

import numpy as np
import pytest

from seedless.core.errors import DataError, UnknownNameError
from seedless.data.leads import (
    SIX,
    TWELVE,
    derive_limb_leads,
    get_lead_set,
    select_leads,
    spell_lead,
)
from seedless.data.resample import fit_length, resample


def test_leads_are_found_by_name_in_any_spelling_and_order():
    names = [name.upper() for name in reversed(TWELVE)]
    signal = np.arange(24, dtype=np.float32).reshape(12, 2)
    picked = select_leads(signal, names, SIX, "record 7")
    np.testing.assert_array_equal(picked, signal[::-1][:6])
    assert spell_lead(" avr ") == "aVR"
    assert spell_lead("MLII") == "MLII"


def test_a_missing_lead_names_the_record_and_what_it_has():
    with pytest.raises(DataError, match=r"record 7: lead I, II, III, aVR.* is missing.* MLII, V5"):
        select_leads(np.zeros((2, 5), np.float32), ["MLII", "V5"], SIX, "record 7")


def test_lead_sets():
    assert get_lead_set("6") == SIX
    with pytest.raises(UnknownNameError, match="known: 12, 6"):
        get_lead_set("15")


def test_limb_leads_obey_einthoven_and_goldberger():
    first, second = (np.cos(np.arange(50.0) / k).astype(np.float32) for k in (3, 5))
    i, ii, iii, avr, avl, avf = derive_limb_leads(first, second).astype(np.float64)
    np.testing.assert_array_equal(i, first)
    np.testing.assert_allclose(iii, ii - i, atol=1e-6)
    np.testing.assert_allclose(avr + avl + avf, 0, atol=1e-6)
    np.testing.assert_allclose(avl, (i - iii) / 2, atol=1e-6)


@pytest.mark.parametrize(("rate", "length"), [(500, 5000), (250, 2500), (360, 3600), (200, 2000)])
def test_a_slow_wave_survives_resampling(rate, length):
    time = np.arange(length) / rate
    wave = np.sin(2 * np.pi * 3 * time)[None].astype(np.float32)
    out = resample(wave, rate, 100)
    assert out.shape == (1, 1000)
    assert out.dtype == np.float32
    expected = np.sin(2 * np.pi * 3 * np.arange(1000) / 100)
    np.testing.assert_allclose(out[0, 50:-50], expected[50:-50], atol=5e-3)


def test_the_same_rate_changes_nothing():
    signal = np.ones((2, 10), np.float32)
    assert resample(signal, 100, 100) is signal


def test_lengths_are_cut_padded_or_refused():
    signal = np.ones((2, 10), np.float32)
    assert fit_length(signal, 4, "r").shape == (2, 4)
    padded = fit_length(signal, 12, "r")
    assert padded[:, 10:].sum() == 0
    assert padded[:, :10].sum() == 20
    with pytest.raises(DataError, match=r'r: 10 samples.* 12 expected.*short="pad"'):
        fit_length(signal, 12, "r", short="refuse")
    with pytest.raises(DataError, match="at least 11 expected"):
        fit_length(signal, 12, "r", short="pad", least=11)
    with pytest.raises(UnknownNameError, match="pad, refuse"):
        fit_length(signal, 12, "r", short="cut")
