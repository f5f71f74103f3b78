"""CPSC2018's MATLAB structs: real records, labels from REFERENCE.csv, damaged copies."""

import shutil

import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.signal import resample_poly

from seedless.core.dataset import TEST_ONLY
from seedless.core.errors import DataError
from seedless.data.leads import SIX, TWELVE
from seedless.data.readers.cpsc2018_original import CLASSES, read_cpsc2018_original

HEAD = "Recording,First_label,Second_label,Third_label\n"


def write_struct(path, data, sex="Male", age=50.0, **others):
    path.parent.mkdir(exist_ok=True)
    savemat(path, {"ECG": {"sex": sex, "age": age, "data": data, **others}})


def wave(seconds, rows=12):
    time = np.arange(int(seconds * 500)) / 500
    return np.stack([np.sin(2 * np.pi * (1 + row / 4) * time) for row in range(rows)])


def test_real_structs_load_unlabelled_with_a_warning(real_data):
    data = read_cpsc2018_original(real_data / "cpsc2018")
    assert data.ids.tolist() == [f"A198{n}" for n in range(5)]
    assert data.X.shape == (5, 12, 1000)
    assert (data.fs, data.leads, data.protocol) == (100.0, TWELVE, TEST_ONLY)
    assert data.sex.tolist() == ["M", "F", "M", "M", "F"]
    assert data.age.tolist() == [52, 48, 89, 49, 23]
    assert data.age.dtype == np.float32
    assert not data.Y.any()
    assert data.warnings == ("no REFERENCE.csv under cpsc2018: the records carry no label",)
    assert "documented order" in data.provenance["leads_from"]
    raw = loadmat(real_data / "cpsc2018" / "A1984.mat")["ECG"][0, 0]["data"]
    expected = resample_poly(raw, 1, 5, axis=1)[:, :1000]
    np.testing.assert_allclose(data.X[4], expected, atol=1e-6)
    # The order of leads is the documented one: Einthoven's and Goldberger's laws hold.
    one, two, three, avr = data.X[:, :4].transpose(1, 0, 2)
    assert np.abs(two - one - three).max() < 2e-3
    assert np.abs(avr + (one + two) / 2).max() < 2e-3


def test_labels_come_from_the_reference_table(real_data, tmp_path):
    for record in ("A1980", "A1981"):
        shutil.copy(real_data / "cpsc2018" / f"{record}.mat", tmp_path)
    table = HEAD + "A1980,2,,\nA1981,1,5,9\nA0001,3,,\n"
    (tmp_path / "REFERENCE.csv").write_text("\ufeff" + table, encoding="utf-8")
    data = read_cpsc2018_original(tmp_path, leads="6")
    assert data.leads == SIX
    names = [[CLASSES[k] for k in np.flatnonzero(row)] for row in data.Y]
    assert names == [["AFIB"], ["NORM", "RBBB", "STE"]]
    assert data.warnings == (f"REFERENCE.csv lists 1 records that are not in {tmp_path.name}",)


def test_sub_folders_are_walked_and_extra_records_counted(tmp_path):
    write_struct(tmp_path / "TrainingSet1" / "A0001.mat", wave(10), sex="Female", age=np.nan)
    write_struct(tmp_path / "TrainingSet2" / "A0002.mat", wave(12), sex="?", age=-1)
    write_struct(tmp_path / "TrainingSet2" / "Q0001.mat", wave(12))
    write_struct(tmp_path / "TrainingSet2" / "A0003.mat", wave(1))
    data = read_cpsc2018_original(tmp_path, skip=("A0003",))
    assert data.ids.tolist() == ["A0001", "A0002"]
    assert data.sex.tolist() == ["F", ""]
    assert np.isnan(data.age).all()
    assert data.provenance["excluded"] == {"CPSC-Extra (Q records)": 1, "asked for (skip)": 1}


def test_short_records_are_padded_or_refused(tmp_path):
    write_struct(tmp_path / "A0001.mat", wave(6))
    data = read_cpsc2018_original(tmp_path)
    assert not data.X[0, :, 600:].any()
    assert data.X[0, 1:, :600].any()
    with pytest.raises(DataError, match=r"A0001\.mat \(record A0001\): 600 samples.*1000"):
        read_cpsc2018_original(tmp_path, short="refuse")
    write_struct(tmp_path / "A0001.mat", wave(4.9))
    with pytest.raises(DataError, match=r"record A0001\): 490 samples of signal, at least 500"):
        read_cpsc2018_original(tmp_path)


def nan_lead():
    data = wave(10)
    data[2] = np.nan
    return data


def nan_samples():
    data = wave(10)
    data[11, 7] = np.inf
    return data


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda p: write_struct(p, wave(10, rows=11)), r"expected data of 12 leads.*\(11, 5000\)"),
        (lambda p: write_struct(p, wave(10).T), r"expected data of 12 leads"),
        (lambda p: write_struct(p, nan_lead()), r"lead III holds no valid sample"),
        (lambda p: write_struct(p, nan_samples()), r"lead V6 misses 1 of 5000"),
        (lambda p: savemat(p, {"ECG": {"sex": "Male", "data": wave(10)}}), r"with sex, age and"),
        (lambda p: savemat(p, {"ECG": wave(10)}), r"one struct with sex, age and data"),
        (lambda p: savemat(p, {"val": wave(10)}), r"read_challenge"),
        (lambda p: savemat(p, {"x": 1}), r"a struct named ECG, found none$"),
        (lambda p: p.write_bytes(b""), r"not a readable MATLAB file"),
        (lambda p: p.write_bytes(b"not MATLAB at all" * 40), r"not a readable MATLAB file"),
    ],
)
def test_damaged_structs_are_named(tmp_path, write, message):
    write(tmp_path / "A0007.mat")
    with pytest.raises(DataError, match=rf"A0007\.mat \(record A0007\): .*{message}"):
        read_cpsc2018_original(tmp_path)


def test_a_truncated_real_file_is_named(real_data, tmp_path):
    whole = (real_data / "cpsc2018" / "A1980.mat").read_bytes()
    (tmp_path / "A1980.mat").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"\(record A1980\): not a readable MATLAB file"):
        read_cpsc2018_original(tmp_path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("Recording,First_label\nA0001,1\n", "column Second_label, Third_label is missing"),
        (HEAD + "A0001,10,,\n", r"record A0001: .*found \['10'\]"),
        (HEAD + "A0001,,,\n", r"record A0001: .*found \[\]"),
        (HEAD + "A0001,__import__('os'),,\n", "record A0001: .*__import__"),
        (HEAD + "A0001,1,,\nA0001,2,,\n", "record A0001: .*in a second row"),
        (HEAD + "A0002,1,,\n", "record A0001 has a file and no row"),
        ("", "column Recording"),
    ],
)
def test_damaged_tables_are_named(tmp_path, table, message):
    write_struct(tmp_path / "A0001.mat", wave(10))
    (tmp_path / "REFERENCE.csv").write_text(table)
    with pytest.raises(DataError, match=rf"REFERENCE\.csv: .*{message}"):
        read_cpsc2018_original(tmp_path)


def test_folders_without_records(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        read_cpsc2018_original(tmp_path / "absent")
    with pytest.raises(DataError, match="no CPSC2018 records"):
        read_cpsc2018_original(tmp_path)
    write_struct(tmp_path / "Q0001.mat", wave(10))
    with pytest.raises(DataError, match="found 1 Q records"):
        read_cpsc2018_original(tmp_path)
    write_struct(tmp_path / "a" / "A0001.mat", wave(10))
    write_struct(tmp_path / "b" / "A0001.mat", wave(10))
    with pytest.raises(DataError, match="record A0001 is there twice"):
        read_cpsc2018_original(tmp_path)
