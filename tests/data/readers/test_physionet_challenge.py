"""The PhysioNet-Challenge form: real records of four sources, and damaged copies."""

import csv
import shutil

import numpy as np
import pytest
from scipy.io import loadmat
from scipy.signal import resample_poly

from seedless.core.errors import DataError, UnknownNameError
from seedless.data.catalog import RHYTHMS
from seedless.data.leads import SIX, TWELVE
from seedless.data.readers.physionet_challenge import (
    SNOMED,
    label_codes,
    read_challenge,
    read_codes,
)
from seedless.data.readers.wfdb_records import read_header


def copy_as(source, record, folder, name, change=lambda text: text):
    """Copy a record under another name, its header changed."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (source / f"{record}.hea").read_text().replace(record, name)
    (folder / f"{name}.hea").write_text(change(text))
    shutil.copy(source / f"{record}.mat", folder / f"{name}.mat")


def test_any_source_loads_every_record(real_data):
    data = read_challenge(real_data / "challenge")
    assert data.X.shape == (13, 12, 1000)
    assert (data.classes, data.leads, data.fs) == (RHYTHMS, TWELVE, 100.0)
    by_id = {name: row for row, name in enumerate(data.ids)}
    labels = {
        name: [RHYTHMS[k] for k in np.flatnonzero(data.Y[row])] for name, row in by_id.items()
    }
    assert labels["Q0048"] == ["AFIB"]
    assert labels["Q0001"] == ["STACH"]
    assert labels["JS20000"] == ["STACH"]
    assert labels["A5432"] == []
    # Both spellings of the comments: "#Age: 79" and "# Age: 84".
    assert [data.age[by_id[name]] for name in ("Q0048", "JS20000")] == [79, 84]
    assert [data.sex[by_id[name]] for name in ("Q0048", "Q0001")] == ["F", "M"]
    raw = loadmat(real_data / "challenge" / "Q0048.mat")["val"] / 1000
    expected = resample_poly(raw, 1, 5, axis=1)[:, :1000]
    np.testing.assert_allclose(data.X[by_id["Q0048"]], expected, atol=1e-6)


def test_codes_of_ptb_xl_records_give_the_labels_of_its_own_table(real_data):
    data = read_challenge(real_data / "challenge")
    table = real_data / "ptb-xl" / "ptbxl_database.rebuilt_rhythm_form.csv"
    with table.open(newline="") as file:
        codes = {int(row["ecg_id"]): row["scp_codes"] for row in csv.DictReader(file)}
    rows = [row for row, name in enumerate(data.ids) if name.startswith("HR")]
    assert len(rows) == 5
    for row in rows:
        listed = codes[int(data.ids[row][2:])]
        expected = {name for name in RHYTHMS if f"'{name}'" in listed}
        found = {RHYTHMS[k] for k in np.flatnonzero(data.Y[row])}
        # The Challenge writes sinus rhythm beside sinus bradycardia and tachycardia.
        assert found - {"SR"} == expected - {"SR"}
        assert "SR" in found


def test_every_rhythm_class_has_one_code_and_other_codes_none():
    assert sorted(SNOMED.values()) == sorted(RHYTHMS)
    for code, name in SNOMED.items():
        assert RHYTHMS[int(label_codes([code, "55930002"]).argmax())] == name
    assert not label_codes(["55930002", "164934002"]).any()


def test_ningbo_is_not_chapman(real_data):
    with pytest.raises(DataError, match=r"no records of source 'chapman'.*5 of Ningbo \(above JS"):
        read_challenge(real_data / "challenge", source="chapman")


def test_chapmans_id_range(real_data, tmp_path):
    source = real_data / "challenge"
    for number in (1, 10_646, 10_647, 45_551):
        copy_as(source, "JS20001", tmp_path / f"{number % 7:02d}" / "001", f"JS{number:05d}")
    data = read_challenge(tmp_path, source="chapman", leads="6")
    assert data.ids.tolist() == ["JS00001", "JS10646"]
    assert data.patients.tolist() == data.ids.tolist()
    assert (data.name, data.leads) == ("chapman", SIX)
    assert data.provenance["excluded"] == {"Ningbo (above JS10646)": 2}


def test_cpsc2018_is_the_a_records_without_cpsc_extra(real_data):
    data = read_challenge(real_data / "challenge", source="cpsc2018")
    assert data.ids.tolist() == ["A5432"]
    expected = {"CPSC-Extra": 2, "Ningbo (above JS10646)": 5, "PTB-XL": 5}
    assert data.provenance["excluded"] == expected


def merge_first_lines(text):
    """What happened to two headers of ecg-arrhythmia 1.0.0."""
    return text.replace("5000\n", "5000", 1)


def test_records_damaged_as_published_are_passed_over_where_they_are_damaged(real_data, tmp_path):
    source = real_data / "challenge"
    copy_as(source, "JS20001", tmp_path, "JS00001")
    copy_as(source, "JS20002", tmp_path, "JS01052", merge_first_lines)
    data = read_challenge(tmp_path, source="chapman")
    assert data.ids.tolist() == ["JS00001"]
    assert data.provenance["passed_over"] == ["JS01052"]
    assert "JS01052 is damaged as published" in data.warnings[0]
    copy_as(source, "JS20002", tmp_path, "JS01052")
    assert len(read_challenge(tmp_path, source="chapman")) == 2
    copy_as(source, "JS20002", tmp_path, "JS00002", merge_first_lines)
    with pytest.raises(DataError, match="JS00002"):
        read_challenge(tmp_path, source="chapman")
    data = read_challenge(tmp_path, source="chapman", skip=("JS00002",))
    assert data.provenance["excluded"] == {"asked for (skip)": 1}


def drop(text, line):
    return "\n".join(row for row in text.split("\n") if line not in row)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace(" 500 ", " 400 "), "expected 500 Hz.*found 400 Hz"),
        (lambda text: text.replace(" V3\n", " X\n"), "lead V3 is missing"),
        (lambda text: drop(text, "# Dx"), "no '#Dx:' line"),
        (lambda text: text.replace("Dx: ", "Dx: AFIB,"), "expected SNOMED codes.*'AFIB,"),
        (lambda text: text.replace("/mV", "/uV"), "lead I is in uV"),
        (lambda text: drop(text, " aVF"), "announces 12 signals and describes 11"),
    ],
)
def test_damaged_headers_are_named(real_data, tmp_path, change, message):
    copy_as(real_data / "challenge", "JS20003", tmp_path, "JS00003", change)
    with pytest.raises(DataError, match=rf"JS00003\.hea \(record JS00003\).*{message}"):
        read_challenge(tmp_path, source="chapman")


@pytest.mark.parametrize("what", ["missing", "truncated", "all-NaN lead", "NaN samples"])
def test_damaged_data_is_named(real_data, tmp_path, what):
    copy_as(real_data / "challenge", "JS20003", tmp_path, "JS00003")
    path = tmp_path / "JS00003.mat"
    data = bytearray(path.read_bytes())
    samples = np.frombuffer(data, dtype="<i2", offset=24).reshape(-1, 12)
    message = what
    if what == "missing":
        path.unlink()
        message = "No such file"
    elif what == "truncated":
        path.write_bytes(data[:-1000])
    else:
        rows = slice(None) if what == "all-NaN lead" else slice(7, 9)
        samples[rows, 4] = -32768
        path.write_bytes(data)
        message = "lead aVL (holds no valid sample|misses 2 of 5000)"
        text = (tmp_path / "JS00003.hea").read_text().split("\n")
        fields = text[5].split(" ")
        fields[6] = str(int(samples[:, 4].sum(dtype=np.int64)) % 65536)
        text[5] = " ".join(fields)
        (tmp_path / "JS00003.hea").write_text("\n".join(text))
    with pytest.raises(DataError, match=rf"record JS00003\).*{message}"):
        read_challenge(tmp_path, source="chapman")


def test_unknown_diagnosis_age_and_sex(real_data, tmp_path):
    def change(text):
        lines = [line for line in text.split("\n") if not line.startswith("#")]
        return "\n".join(lines) + "\n#Dx: Unknown\n#Age: NaN\n#Sex: Unknown\n"

    copy_as(real_data / "challenge", "JS20003", tmp_path, "JS00003", change)
    data = read_challenge(tmp_path)
    assert not data.Y.any()
    assert data.sex[0] == ""
    assert np.isnan(data.age[0])


def test_short_records_are_padded_or_refused(real_data, tmp_path):
    copy_as(real_data / "challenge", "JS20003", tmp_path, "JS00003")
    for samples, seconds in ((3000, 6), (2000, 4)):
        values = np.arange(12 * samples, dtype="<i2") % 100
        (tmp_path / "JS00003.mat").write_bytes(b"\0" * 24 + values.tobytes())
        lines = (real_data / "challenge" / "JS20003.hea").read_text().split("\n")
        lines[0] = f"JS00003 12 500 {samples}"
        for row in range(1, 13):
            fields = lines[row].split(" ")
            total = int(values[row - 1 :: 12].sum(dtype=np.int64)) % 65536
            lines[row] = " ".join(["JS00003.mat", *fields[1:6], str(total), *fields[7:]])
        (tmp_path / "JS00003.hea").write_text("\n".join(lines))
        if seconds == 6:
            assert not read_challenge(tmp_path).X[0, :, 600:].any()
            with pytest.raises(DataError, match=r"record JS00003\): 600 samples"):
                read_challenge(tmp_path, short="refuse")
        else:
            with pytest.raises(DataError, match=r"record JS00003\): 400 samples.*at least 500"):
                read_challenge(tmp_path)


def test_folders_without_records(real_data, tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        read_challenge(tmp_path / "absent")
    with pytest.raises(DataError, match="no WFDB headers"):
        read_challenge(tmp_path)
    with pytest.raises(UnknownNameError, match="known: any, chapman, cpsc2018"):
        read_challenge(tmp_path, source="ningbo")
    for folder in ("a", "b"):
        copy_as(real_data / "challenge", "JS20003", tmp_path / folder, "JS00003")
    with pytest.raises(DataError, match="record JS00003 is there twice"):
        read_challenge(tmp_path)


@pytest.mark.parametrize("record", ["JS20003", "A5432"])
def test_a_header_cut_anywhere_gives_the_same_labels_or_an_error(real_data, tmp_path, record):
    text = (real_data / "challenge" / f"{record}.hea").read_text()
    path = tmp_path / f"{record}.hea"
    path.write_text(text)
    expected, kept = read_codes(read_header(path)), 0
    for size in range(len(text)):
        path.write_text(text[:size])
        try:
            found = read_codes(read_header(path))
        except DataError:
            continue
        assert found == expected
        kept += 1
    assert kept <= 3  # before #Rx, #Hx and #Sx, which nothing is read from
