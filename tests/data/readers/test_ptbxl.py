"""PTB-XL: every published count, every column of the genuine rows, and damage named by record."""

import csv
import shutil

import numpy as np
import pytest

from seedless.core.dataset import TEN_FOLDS
from seedless.core.errors import DataError, UnknownNameError
from seedless.data.class_names import RHYTHMS
from seedless.data.quality_checks import check_label_quality
from seedless.data.readers.ptbxl import list_sources, read_ptbxl
from seedless.data.readers.ptbxl_labels import read_labels
from tests.data.readers.test_wfdb_records import change, write

# Published for v1.0.3, one row a split, in the order of RHYTHMS.
COUNTS = {
    "train": (13404, 1211, 661, 618, 509, 237, 128, 66, 59, 21, 19, 16),
    "val": (1670, 151, 83, 77, 64, 29, 15, 8, 7, 3, 3, 2),
    "test": (1674, 152, 82, 77, 64, 28, 14, 8, 7, 3, 2, 2),
}
LEADS = ["I", "II", "III", "AVR", "AVL", "AVF", "V1", "V2", "V3", "V4", "V5", "V6"]
STATEMENTS = ",description,diagnostic,form,rhythm,diagnostic_class\n"


@pytest.fixture
def folder(tmp_path):
    """Three made-up records in PTB-XL's layout, with sex and age."""
    rows = [
        (1, "7.0", "{'NORM': 100.0, 'SR': 0.0}", 1, 0, 56),
        (2, "8.0", "{'IMI': 0.0, 'AFIB': 0.0}", 9, 1, 300),
        (3, "9.0", "{'SR': 0.0, 'PVC': 100.0}", 10, "", ""),
    ]
    (tmp_path / "records100").mkdir()
    with open(tmp_path / "ptbxl_database.csv", "w", newline="") as file:
        table = csv.writer(file)
        head = "ecg_id patient_id scp_codes strat_fold sex age filename_lr filename_hr"
        table.writerow(head.split())
        for number, *row in rows:
            files = [f"records{fs}/{number}_lr" for fs in (100, 500)]
            table.writerow([number, *row, *files])
            wave = np.arange(12)[:, None] * 10 + np.arange(1000) % 50 + number
            path = write(tmp_path / "records100", wave, name=f"{number}_lr")
            for k, lead in enumerate(LEADS):
                change(path, f" L{k}\n", f" {lead}\n")
    (tmp_path / "scp_statements.csv").write_text(
        STATEMENTS + "NORM,,1.0,,,NORM\nIMI,,1.0,,,MI\nSR,,,,1.0,\nAFIB,,,,1.0,\nPVC,,,1.0,,\n"
    )
    return tmp_path


def rewrite(folder, old, new):
    change(folder / "ptbxl_database.csv", old, new)


def test_all_36_published_counts(real_data):
    labels = read_labels(real_data / "ptb-xl" / "ptbxl_database.rebuilt_rhythm_form.csv")
    assert len(labels.ids) == 21_799
    found = check_label_quality(labels)
    assert found.splits == {"train": 17_418, "val": 2_183, "test": 2_198}
    assert {split: tuple(row.values()) for split, row in found.counts.items()} == COUNTS
    assert labels.classes == RHYTHMS
    assert 21_799 - sum(found.unlabelled.values()) == 21_030
    assert found.warnings == ()  # no class absent, no patient in two splits
    assert (labels.sex, labels.age) == (None, None)


@pytest.mark.parametrize("task", ["rhythm", "superclass"])
def test_the_genuine_rows_parse_with_every_column(real_data, task):
    path = real_data / "ptb-xl" / "ptbxl_database.first520rows.csv"
    labels = read_labels(path, real_data / "ptb-xl" / "scp_statements.csv", task)
    assert len(labels.ids) == 521
    assert set(labels.sex) == {"F", "M"}
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows[0]) == 28
    for row, name, patient, fold, sex, age in zip(
        *(rows, labels.ids, labels.patients, labels.folds, labels.sex, labels.age), strict=True
    ):
        assert (name, f"{patient}.0", str(fold)) == (
            *(row["ecg_id"], row["patient_id"], row["strat_fold"]),
        )
        assert sex == "MF"[int(row["sex"])]
        np.testing.assert_equal(age, np.float32(row["age"] or "nan"))
    assert labels.files[500][0] == "records500/00000/00001_hr"
    assert labels.warnings == ()


def test_superclasses_count_a_code_whatever_its_likelihood(real_data):
    folder = real_data / "ptb-xl"
    path = folder / "ptbxl_database.first520rows.csv"
    labels = read_labels(path, task="superclass")  # the statements beside the table
    with open(folder / "scp_statements.csv", encoding="utf-8") as file:
        classes = {row[""]: row["diagnostic_class"] for row in csv.DictReader(file)}
    with open(path, encoding="utf-8", newline="") as file:
        texts = [row["scp_codes"] for row in csv.DictReader(file)]
    for text, row in zip(texts, labels.Y, strict=True):
        expected = {classes[code] for code in classes if f"'{code}':" in text} - {""}
        assert {name for name, hot in zip(labels.classes, row, strict=True) if hot} == expected


def test_the_real_sample(real_data):
    data = read_ptbxl(real_data / "ptb-xl-sample")
    assert data.X.shape == (150, 12, 1000)
    assert data.X.dtype == np.float32
    assert (data.fs, data.protocol, data.task) == (100.0, TEN_FOLDS, "multi-label")
    assert data.provenance["units"] == "z"
    derived = np.load(real_data / "ptb-xl-derived100.npz", allow_pickle=False)
    rows = [derived["ids"].tolist().index(int(name)) for name in data.ids]
    expected = derived["X"][rows] * derived["scale"]
    np.testing.assert_allclose(data.X, expected, atol=5.01e-3)  # that file is rounded to 0.01
    np.testing.assert_array_equal(data.Y, derived["Y"][rows])
    np.testing.assert_array_equal(data.folds, derived["folds"][rows])
    np.testing.assert_array_equal(data.patients, derived["patients"][rows].astype(str))


def test_six_leads_are_the_first_six(real_data):
    twelve, six = (read_ptbxl(real_data / "ptb-xl-sample", leads=leads) for leads in ("12", "6"))
    assert six.leads == ("I", "II", "III", "aVR", "aVL", "aVF")
    np.testing.assert_array_equal(six.X, twelve.X[:, :6])


def test_sex_age_and_labels(folder):
    data = read_ptbxl(folder)
    assert data.sex.tolist() == ["M", "F", ""]
    np.testing.assert_array_equal(data.age, np.float32([56, 90, np.nan]))
    assert data.patients.tolist() == ["7", "8", "9"]
    assert data.Y.sum(axis=0).tolist()[:2] == [2, 1]
    assert read_ptbxl(folder, task="superclass").Y.tolist() == [
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0] * 5,
    ]
    np.testing.assert_array_equal(data.X[0, 3, :3], np.float32([0.031, 0.032, 0.033]))


def test_leads_are_found_by_name(folder):
    expected = read_ptbxl(folder).X
    path = folder / "records100" / "2_lr.hea"
    first, *lines, comment = path.read_text().splitlines()
    data = np.fromfile(folder / "records100" / "2_lr.dat", "<i2").reshape(1000, 12)
    data[:, ::-1].tofile(folder / "records100" / "2_lr.dat")
    path.write_text("\n".join([first, *reversed(lines), comment, ""]))
    np.testing.assert_array_equal(read_ptbxl(folder).X, expected)


def test_without_the_statement_table_rhythms_still_read(folder):
    expected = read_ptbxl(folder).digest
    (folder / "scp_statements.csv").unlink()
    assert read_ptbxl(folder).digest == expected
    with pytest.raises(DataError, match=r"scp_statements.csv: no such file"):
        read_ptbxl(folder, task="superclass")


def test_the_order_of_the_table_does_not_show(folder):
    expected = read_ptbxl(folder).digest
    table = folder / "ptbxl_database.csv"
    head, *rows = table.read_text().splitlines()
    table.write_text("\n".join([head, *reversed(rows)]))
    assert read_ptbxl(folder).digest == expected


def test_codes_without_a_statement_are_counted(folder):
    rewrite(folder, "'PVC'", "'XYZ'")
    assert read_ptbxl(folder).warnings == (
        "records with the code XYZ, which scp_statements.csv does not list: 1",
    )


@pytest.mark.parametrize(
    ("change_of", "message"),
    [
        (("strat_fold", "fold"), "column strat_fold is missing; found ecg_id, patient_id"),
        (("filename_lr", "files"), "column filename_lr, needed at 100 Hz"),
        (("'AFIB': 0.0}", "'AFIB': 0.0"), r"ecg_id 2: expected scp_codes .* found"),
        (("{'IMI': 0.0, 'AFIB': 0.0}", "__import__('os').abort()"), "ecg_id 2: expected scp_codes"),
        (("{'IMI': 0.0, 'AFIB': 0.0}", "['AFIB']"), "ecg_id 2: expected scp_codes"),
        (("'AFIB': 0.0", "'AFIB': 'x'"), "ecg_id 2: expected scp_codes"),
        (("'AFIB': 0.0", "1: 0.0"), "ecg_id 2: expected scp_codes"),
        (("{'IMI'", "(" * 3000 + "{'IMI'"), "ecg_id 2: expected scp_codes"),
        (("\n2,", "\n1,"), "ecg_id 1 occurs 2 times"),
        (("\n2,", "\ntwo,"), "ecg_id two: ecg_id: expected a whole number, found 'two'"),
        (("8.0", ""), "ecg_id 2: patient_id: expected a whole number, found ''"),
        ((",9,1,300,", ",11,1,300,"), "ecg_id 2: strat_fold: expected a fold from 1 to 10"),
        ((",9,1,300,", ",9,2,300,"), r"ecg_id 2: sex: expected 0 \(male\), 1 \(female\)"),
        ((",9,1,300,", ",9,1,old,"), "ecg_id 2: age: expected years, found 'old'"),
        ((",9,1,300,", ",9,1,"), "line 3: expected 8 columns"),
        (("records100/2_lr", "../2_lr"), "ecg_id 2: expected a path inside"),
        (("records100/2_lr", "/etc/2_lr"), "ecg_id 2: expected a path inside"),
        (
            ("records100/2_lr", "records100/4_lr"),
            "2 of 6 record files are missing: records100/4_lr.hea",
        ),
    ],
)
def test_a_damaged_table(folder, change_of, message):
    rewrite(folder, *change_of)
    with pytest.raises(DataError, match=message) as caught:
        read_ptbxl(folder)
    assert str(folder) in str(caught.value)


def set_samples(folder, values, lead=4):
    """Put values into a lead of record 2, and what then is the checksum into its header."""
    path = folder / "records100" / "2_lr.dat"
    data = np.fromfile(path, "<i2").reshape(1000, 12)
    before = data[:, lead].sum(dtype=np.int64) % 65536
    data[: len(values), lead] = values
    after = data[:, lead].sum(dtype=np.int64) % 65536
    data.tofile(path)
    change(path.with_suffix(".hea"), f" {before} 0 {LEADS[lead]}", f" {after} 0 {LEADS[lead]}")


def test_missing_samples_are_named(folder):
    set_samples(folder, [5, 5, -32768, 5, -32768])
    message = r"2_lr.hea \(record 2_lr\): lead aVL misses 2 of 1000 samples, the first at 2"
    with pytest.raises(DataError, match=message):
        read_ptbxl(folder)
    set_samples(folder, np.full(1000, -32768))
    with pytest.raises(DataError, match=r"\(record 2_lr\): lead aVL holds no valid sample"):
        read_ptbxl(folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2_lr 12 100 1000", "2_lr 12 500 1000", "expected a rate of 100 Hz, found 500"),
        (" 0 AVL", " 0 MLII", "lead aVL is missing; the record has I, II, III, AVR, MLII"),
        ("1000(0)/mV", "0(0)/mV", "lead I has a gain of 0"),
        ("2_lr 12 100 1000", "2_lr 12 100 990", "2_lr.dat .* longer than its header"),
    ],
)
def test_a_damaged_header(folder, old, new, message):
    change(folder / "records100" / "2_lr.hea", old, new)
    with pytest.raises(DataError, match=message) as caught:
        read_ptbxl(folder)
    assert "record 2_lr" in str(caught.value)


def test_a_truncated_record(folder):
    path = folder / "records100" / "2_lr.dat"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(DataError, match=r"2_lr.dat \(record 2_lr\): truncated: .* found 23998"):
        read_ptbxl(folder)


def test_records_in_different_units_are_refused(folder):
    path = folder / "records100" / "2_lr.hea"
    path.write_text(path.read_text().replace("/mV", "/uV"))
    with pytest.raises(DataError, match=r"different units: mV in .*1_lr.* uV in .*2_lr"):
        read_ptbxl(folder)


@pytest.mark.parametrize(("length", "word"), [(900, "under"), (1100, "over")])
def test_records_that_do_not_last_ten_seconds(folder, length, word):
    path = folder / "records100" / "2_lr.hea"
    old = path.read_text()
    write(folder / "records100", np.ones((12, length)), name="2_lr")
    for k, lead in enumerate(LEADS):
        change(path, f" L{k}\n", f" {lead}\n")
    assert path.read_text() != old
    if word == "under":
        with pytest.raises(DataError, match=r"record 2_lr\): 900 samples .* 1000 expected"):
            read_ptbxl(folder)
    data = read_ptbxl(folder, short="pad")
    assert data.X.shape == (3, 12, 1000)
    assert data.X[1, 0].tolist() == [np.float32(0.001)] * min(length, 1000) + [0] * (1000 - length)
    assert f"records {word} 10 s" in data.warnings[0]
    assert data.warnings[0].endswith(": 1")


def test_folders_that_hold_no_ptbxl(folder, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match=r"empty/ptbxl_database.csv: no such file; .* data fetch"):
        read_ptbxl(empty)
    shutil.rmtree(folder / "records100")
    with pytest.raises(DataError, match="records100: no such folder"):
        read_ptbxl(folder)
    table = folder / "ptbxl_database.csv"
    table.write_text(table.read_text().splitlines()[0] + "\n")
    with pytest.raises(DataError, match="holds no records"):
        read_ptbxl(folder)
    table.write_text("")
    with pytest.raises(DataError, match=r"ecg_id, .* missing; found an empty file"):
        read_ptbxl(folder)
    table.write_bytes(b"ecg_id\n\xff\xfe\n")
    with pytest.raises(DataError, match="cannot be read"):
        read_ptbxl(folder)


def test_unknown_options(folder):
    with pytest.raises(UnknownNameError, match="did you mean 'rhythm'"):
        read_ptbxl(folder, task="rythm")
    with pytest.raises(DataError, match="100 and 500 Hz; got fs=250"):
        read_ptbxl(folder, fs=250)
    with pytest.raises(UnknownNameError, match="short records"):
        read_ptbxl(folder, short="drop")
    with pytest.raises(DataError, match="records500: no such folder"):
        read_ptbxl(folder, fs=500)


def test_sources(folder):
    names = ["ptbxl_database.csv", "scp_statements.csv", "records500"]
    assert [path.name for path in list_sources(folder, 500)] == names
