"""Noise: read from both file formats, added at the requested ratio, by a pure function."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat
from scipy.signal import resample_poly

from seedless.core.errors import DataError, UnknownNameError
from seedless.data.leads import TWELVE
from seedless.data.readers.nstdb import KINDS, Noise, add_noise, draw_starts, read_noise

# wfdb 4.3 uses what pandas 3 is about to drop.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:wfdb")


def columns(length=7200, phase=0.0):
    time = np.arange(length)
    return np.stack(
        [time, 90 * np.sin(time / 40 + phase) + 7, 50 * np.cos(time / 9 - phase)], axis=1
    ).astype(np.int16)


def write_excerpts(folder):
    for index, kind in enumerate(KINDS):
        savemat(folder / f"{kind.upper()}.mat", {kind.upper(): columns(phase=index)})


def write_wfdb(folder, kind, table, fs=360):
    """Write two channels as NSTDB has them: format 212, no gain."""
    one, two = (table[:, column].astype(np.int64) & 0xFFF for column in (1, 2))
    packed = np.stack([one & 0xFF, (one >> 8) | (two >> 8 << 4), two & 0xFF], axis=1)
    (folder / f"{kind}.dat").write_bytes(packed.astype(np.uint8).tobytes())
    lines = [f"{kind} 2 {fs} {len(table)}"]
    for number in (1, 2):
        row = table[:, number]
        checksum = int(row.sum(dtype=np.int64)) % 65536
        lines.append(f"{kind}.dat 212 0 12 0 {row[0]} {checksum} 0 noise{number}")
    (folder / f"{kind}.hea").write_text("\n".join(lines) + "\n")


def made_noise(length=1200):
    time = np.arange(length)
    rows = np.stack([np.sin(time / 7), np.cos(time / 3) + 0.3 * np.sin(time)]).astype(np.float32)
    return Noise(dict.fromkeys(KINDS, rows), 100.0, {})


def made_samples(n=4, leads=12, length=300):
    time = np.arange(length, dtype=np.float64)
    rows = [
        np.sin(time / (5 + k)) * (1 + k / 3) + k / 5
        for k in np.arange(n * leads) % 17 + np.arange(n * leads) / 100
    ]
    return np.stack(rows).reshape(n, leads, length).astype(np.float32)


def power(samples):
    wide = samples.astype(np.float64)
    return ((wide - wide.mean(axis=2, keepdims=True)) ** 2).mean(axis=(1, 2))


def test_real_excerpts(real_data):
    noise = read_noise(real_data / "nstdb-excerpt")
    assert noise.fs == 100
    for kind in ("bw", "ma", "em"):
        assert noise.kinds[kind].shape == (2, 3000)
        assert noise.kinds[kind].dtype == np.float32
        assert np.abs(noise.kinds[kind].mean(axis=1)).max() < 0.5
    # Power below 1 Hz: all of baseline wander, and less of the others.
    for channel in (0, 1):
        share = {}
        for kind, wave in noise.kinds.items():
            spectrum = np.abs(np.fft.rfft(wave[channel])) ** 2
            share[kind] = spectrum[:31].sum() / spectrum.sum()
        assert share["bw"] > 0.99
        assert max(share["ma"], share["em"]) < 0.9


def test_both_forms_give_the_same_noise(tmp_path):
    excerpts, records = tmp_path / "excerpts", tmp_path / "records"
    excerpts.mkdir()
    records.mkdir()
    write_excerpts(excerpts)
    for index, kind in enumerate(KINDS):
        write_wfdb(records, kind, columns(phase=index))
    first, second = read_noise(excerpts), read_noise(records)
    table = columns(phase=1)[:, 1:].T.astype(np.float64)
    expected = resample_poly(table - table.mean(axis=1, keepdims=True), 5, 18, axis=1)
    np.testing.assert_allclose(first.kinds["ma"], expected, atol=1e-3)
    for kind in KINDS:  # 200 units a mV, where no gain is given
        np.testing.assert_allclose(first.kinds[kind], 200 * second.kinds[kind], atol=1e-3)


@given(st.sampled_from(sorted(KINDS)), st.floats(-6, 30), st.sampled_from([6, 12]))
def test_the_ratio_is_the_one_asked_for(kind, snr, leads):
    samples = made_samples(n=2, leads=leads)
    noisy = add_noise(samples, made_noise(), kind, snr)
    added = noisy.astype(np.float64) - samples
    found = 10 * np.log10(power(samples) / power(added))
    np.testing.assert_allclose(found, snr, atol=2e-3)
    assert np.abs(added.mean(axis=2)).max() < 1e-5  # no offset
    one, two, three, avr, avl, avf = added[:, :6].transpose(1, 0, 2)
    np.testing.assert_allclose(two - one, three, atol=1e-5)
    np.testing.assert_allclose(-(one + two) / 2, avr, atol=1e-5)
    np.testing.assert_allclose(avl - avf, 1.5 * (one - two), atol=1e-5)
    if leads == 12:
        for number in range(6, 12):
            np.testing.assert_allclose(added[:, number], (one, two)[number % 2], atol=1e-5)


def test_the_noise_of_a_sample_does_not_depend_on_its_place_in_the_batch():
    samples, noise = made_samples(n=6), made_noise()
    before = samples.copy()
    whole = add_noise(samples, noise, "em", 6)
    order = np.array([3, 0, 5])
    np.testing.assert_array_equal(add_noise(samples[order], noise, "em", 6), whole[order])
    np.testing.assert_array_equal(samples, before)
    keys = np.arange(6)
    keyed = add_noise(samples, noise, "em", 6, keys=keys)
    np.testing.assert_array_equal(keyed, add_noise(samples, noise, "em", 6, keys=keys))
    assert (keyed != whole).any()


def test_starts_cover_the_noise_and_differ_by_kind():
    keys = np.arange(-2000, 2000)
    starts = draw_starts(keys, "bw", 50)
    assert np.bincount(starts, minlength=50).min() > 40
    assert starts.max() == 49
    assert (draw_starts(keys, "ma", 50) != starts).mean() > 0.9
    assert draw_starts(keys, "bw", 1).max() == 0
    # The stretch a key gets may never change.
    assert draw_starts(np.array([0, 1, -1]), "em", 64_001).tolist() == [55032, 38139, 41262]


def test_leads_are_taken_by_name():
    samples, noise = made_samples(n=1), made_noise()
    keys = np.array([5])
    whole = add_noise(samples, noise, "ma", 0, keys=keys) - samples
    order = [11, 1, 4]
    part = add_noise(samples[:, order], noise, "ma", 0, leads=[TWELVE[k] for k in order], keys=keys)
    shape = (part - samples[:, order])[0]
    for row, k in enumerate(order):  # one factor for all leads; which, depends on the leads
        np.testing.assert_allclose(
            shape[row] / np.linalg.norm(shape), whole[0, k] / np.linalg.norm(whole[0, order]),
            atol=1e-4,
        )  # fmt: skip


def test_a_flat_sample_stays_as_it_is():
    samples = np.full((1, 6, 300), 0.25, dtype=np.float32)
    np.testing.assert_array_equal(add_noise(samples, made_noise(), "bw", 0), samples)


def test_what_cannot_be_added():
    samples, noise = made_samples(), made_noise()
    with pytest.raises(UnknownNameError, match="known: bw, em, ma"):
        add_noise(samples, noise, "hum", 6)
    with pytest.raises(DataError, match="fewer than the 300"):
        add_noise(samples, made_noise(200), "bw", 6)
    with pytest.raises(DataError, match="ratio in dB"):
        add_noise(samples, noise, "bw", float("nan"))
    with pytest.raises(DataError, match="one int64 key for each of 4 samples"):
        add_noise(samples, noise, "bw", 6, keys=np.zeros(3, dtype=np.int64))
    with pytest.raises(DataError, match="2 leads: name them"):
        add_noise(samples[:, :2], noise, "bw", 6)
    with pytest.raises(DataError, match="noise: lead X is missing"):
        add_noise(samples[:, :2], noise, "bw", 6, leads=("I", "X"))
    with pytest.raises(DataError, match=r"\(n, leads, time\), float32"):
        add_noise(samples.astype(np.float64), noise, "bw", 6)
    flat = Noise({"bw": np.zeros((2, 400), dtype=np.float32)}, 100.0, {})
    with pytest.raises(DataError, match="noise bw is flat"):
        add_noise(samples, flat, "bw", 6)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda p: p.unlink(), r"noise em \(electrode motion\) is missing"),
        (lambda p: p.write_bytes(p.read_bytes()[:100]), "not a readable MATLAB file"),
        (lambda p: savemat(p, {"EM": columns()[:, 1:]}), r"time by 3 columns, found \(7200, 2\)"),
        (lambda p: savemat(p, {"EM": columns(), "x": 1}), "expected one array"),
        (lambda p: savemat(p, {"EM": columns()[::-1]}), "a running index"),
        (lambda p: savemat(p, {"EM": columns() * [1, 1, 0]}), "two channels that vary"),
        (lambda p: savemat(p, {"EM": columns() * [1, 1, np.nan]}), "lead 2 holds no valid"),
    ],
)
def test_damaged_excerpts_are_named(tmp_path, write, message):
    write_excerpts(tmp_path)
    write(tmp_path / "EM.mat")
    with pytest.raises(DataError, match=message):
        read_noise(tmp_path)


def test_damaged_records_are_named(tmp_path):
    write_excerpts(tmp_path)
    write_wfdb(tmp_path, "ma", columns(), fs=250)
    with pytest.raises(DataError, match=r"ma\.hea \(record ma\): expected 360 Hz, found 250 Hz"):
        read_noise(tmp_path)
    write_wfdb(tmp_path, "ma", columns())
    data = (tmp_path / "ma.dat").read_bytes()
    (tmp_path / "ma.dat").write_bytes(data[:-30])
    with pytest.raises(DataError, match=r"ma\.dat \(record ma\): truncated"):
        read_noise(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        read_noise(tmp_path / "absent")
