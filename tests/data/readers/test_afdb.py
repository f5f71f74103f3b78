"""Rhythm-annotated records: seconds and window labels against counts made with wfdb directly."""

import math
import shutil
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import resample_poly

from seedless.core.dataset import TEST_ONLY
from seedless.core.errors import DataError
from seedless.data.catalog import find_entry
from seedless.data.leads import SIX
from seedless.data.readers.afdb import count_windows, list_records, read_rhythms
from seedless.data.readers.rhythm_annotations import Span, label_windows, read_spans
from seedless.data.readers.wfdb_records import read_header

with warnings.catch_warnings():  # wfdb 4.3 uses what pandas 3 is about to drop
    warnings.simplefilter("ignore", DeprecationWarning)
    import wfdb

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:wfdb")
MITDB_LEAD_MAP = {"MLII": "II", "V1": "I", "V2": "I", "V4": "I", "V5": "I"}  # stand-ins
RECORDS = {
    "mitdb": ("100", "203", "221"),
    "cpsc2021": (
        "data_101_6",
        "data_21_7",
        "data_35_10",
        "data_84_1",
        "data_8_2",
        "data_8_3",
        "data_92_12",
        "data_92_19",
    ),
}
ALL = [(folder, record) for folder, records in RECORDS.items() for record in records]


def rhythm_seconds(folder, record):
    """Return the seconds each rhythm of a record holds, such as {"AFIB": 1804.2, "N": 12.5}."""
    header = read_header(folder / record)
    samples = Counter()
    for span in read_spans(header):
        samples[span.rhythm] += span.stop - span.start
    return {rhythm: count / header.fs for rhythm, count in samples.items()}


def rhythm_of_every_sample(path):
    """The rhythm at each sample, "" where none, by walking wfdb's own annotations."""
    header, notes = wfdb.rdheader(str(path)), wfdb.rdann(str(path), "atr")
    rhythm = np.full(header.sig_len, "", dtype="U8")
    for sample, note in zip(notes.sample, notes.aux_note, strict=True):
        if note[:1] == "(":
            rhythm[sample:] = note[1:].rstrip("\x00")
    return rhythm, header.fs


def write_record(folder, record, digital, names, fs=100, gain="200", notes=()):
    """Write (channels, time) as a format-16 record with rhythm annotations."""
    digital = np.asarray(digital, dtype="<i2")
    lines = [f"{record} {len(names)} {fs} {digital.shape[1]}"]
    for row, name in zip(digital, names, strict=True):
        checksum = int(row.sum(dtype=np.int64)) % 65536
        lines.append(f"{record}.dat 16 {gain} 16 0 {row[0]} {checksum} 0 {name}")
    (folder / f"{record}.hea").write_text("\n".join(lines) + "\n")
    (folder / f"{record}.dat").write_bytes(digital.T.tobytes())
    samples, texts = zip(*notes, strict=True) if notes else ((0,), ("(N",))
    wfdb.wrann(
        record,
        "atr",
        np.array(samples),
        symbol=["+"] * len(samples),
        aux_note=list(texts),
        write_dir=str(folder),
    )


def wave(seconds, fs=100, channels=2):
    time = np.arange(seconds * fs) / fs
    rows = [100 * np.sin(2 * math.pi * (1 + row) * time) for row in range(channels)]
    return np.round(rows).astype(np.int16)


@pytest.mark.parametrize(("folder", "record"), ALL)
def test_seconds_of_each_rhythm_equal_a_count_made_with_wfdb(real_data, folder, record):
    rhythm, fs = rhythm_of_every_sample(real_data / folder / record)
    names, counts = np.unique(rhythm[rhythm != ""], return_counts=True)
    expected = dict(zip(names.tolist(), (counts / fs).tolist(), strict=True))
    assert rhythm_seconds(real_data / folder, record) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("folder", RECORDS)
def test_window_labels_are_the_majority_of_each_windows_samples(real_data, folder):
    lead_map = MITDB_LEAD_MAP if folder == "mitdb" else None
    data = read_rhythms(real_data / folder, lead_map=lead_map)
    seconds = 0.0
    for record in RECORDS[folder]:
        rhythm, fs = rhythm_of_every_sample(real_data / folder / record)
        rows = np.flatnonzero(np.char.startswith(data.ids, f"{record}/"))
        cut = rhythm[: len(rows) * 10 * fs].reshape(len(rows), 10 * fs)
        for column, name in enumerate(("AFIB", "AFL")):
            expected = (cut == name).mean(axis=1) > 0.5
            np.testing.assert_array_equal(data.Y[rows, column], expected, record)
        seconds += rhythm_seconds(real_data / folder, record).get("AFIB", 0)
        changes = np.count_nonzero(rhythm[1:] != rhythm[:-1]) + 1
        afib = rhythm_seconds(real_data / folder, record).get("AFIB", 0)
        assert abs(10 * int(data.Y[rows, 0].sum()) - afib) <= 5 * (changes + 1) + 10
    assert 10 * int(data.Y[:, 0].sum()) == pytest.approx(seconds, rel=0.1)


def test_cpsc2021_leads_are_found_by_name_and_the_others_derived(real_data):
    data = read_rhythms(real_data / "cpsc2021")
    assert (len(data), data.X.shape[1:], data.fs, data.leads) == (189, (6, 1000), 100.0, SIX)
    assert data.protocol == TEST_ONLY
    assert data.classes == ("AFIB", "AFLT")
    assert data.Y.sum(axis=0).tolist() == [109, 0]
    assert data.provenance["channels_taken_as_I_and_II"] == {"I and II": 8}
    assert data.provenance["approximate"] is False
    assert [text for text in data.warnings if "unlabelled" not in text] == []
    assert data.provenance["unlabelled_windows"] == 50
    assert set(data.patients[np.char.startswith(data.ids, "data_8_")]) == {"8"}
    raw = wfdb.rdrecord(str(real_data / "cpsc2021" / "data_92_12")).p_signal.T
    one, two = resample_poly(raw, 1, 2, axis=1)[:, 1000:2000]
    row = data.ids.tolist().index("data_92_12/00001")
    expected = [one, two, two - one, -(one + two) / 2, one - two / 2, two - one / 2]
    np.testing.assert_allclose(data.X[row], np.stack(expected), atol=2e-6)


def test_mit_bih_is_read_with_a_lead_map_only_and_is_flagged_approximate(real_data):
    with pytest.raises(DataError, match=r"100\.hea.*no channels for lead I,.*MLII, V5.*lead_map"):
        read_rhythms(real_data / "mitdb")
    data = read_rhythms(real_data / "mitdb", lead_map=MITDB_LEAD_MAP, records=["203", "221"])
    assert len(data) == 2 * 180
    assert data.provenance["approximate"] is True
    assert [text[:12] for text in data.warnings] == ["approximate:"]
    assert "V1 and MLII taken as leads I and II in 2 records" in data.warnings[0]
    assert (data.sex[0], data.age[0], data.patients[0]) == ("M", 43, "203")


def test_unnamed_channels_and_records_without_signals_as_in_afdb(real_data, tmp_path):
    """AFDB's own header form: no gain, channels ECG1 and ECG2, and two records with no signals."""
    source = real_data / "mitdb"
    text = (source / "203.hea").read_text()
    text = text.replace(" 212 200 ", " 212 0 ").replace("MLII", "ECG1").replace(" V1", " ECG2")
    (tmp_path / "203.hea").write_text(text)
    for suffix in ("dat", "atr"):
        shutil.copy(source / f"203.{suffix}", tmp_path)
    for record in ("00735", "03665"):
        (tmp_path / f"{record}.hea").write_text(f"{record} 0 250 0\n")
        shutil.copy(source / "100.atr", tmp_path / f"{record}.atr")
    assert list_records(tmp_path)[0] == ["203"]
    with pytest.raises(DataError, match="the record has ECG1, ECG2"):
        read_rhythms(tmp_path)
    data = read_rhythms(tmp_path, lead_map=find_entry("afdb").lead_map, name="afdb", rate=360)
    assert list(data.provenance["passed_over"]) == ["00735", "03665"]
    assert any("without signals: 00735, 03665" in text for text in data.warnings)
    assert any("does not name: ECG1 and ECG2 taken" in text for text in data.warnings)
    assert data.provenance["approximate"] is False
    assert any("state no gain; 200 units a mV" in text for text in data.warnings)
    digital = wfdb.rdrecord(str(source / "203"), physical=False).d_signal[:, 0]
    expected = resample_poly((digital - 1024) / 200, 5, 18)[:1000]
    np.testing.assert_allclose(data.X[0, 0], expected, atol=2e-6)
    with pytest.raises(DataError, match=r"no records with signals.*skipped: 00735"):
        read_rhythms(tmp_path, records=["00735"])


def test_afdb_gives_the_published_number_of_windows():
    lengths = [9_205_760] * 22 + [8_325_000]  # 06453 ends after nine hours and a quarter
    assert sum(count_windows(length, 250) for length in lengths) == 84_334
    assert find_entry("afdb").sizes["test"] == 84_334


def test_one_record_after_another_gives_the_same_windows(real_data):
    folder = real_data / "cpsc2021"
    data = read_rhythms(folder, records=["data_8_2", "data_101_6"])
    parts = [read_rhythms(folder, records=[record]) for record in ("data_101_6", "data_8_2")]
    assert [len(part.X) for part in parts] == [11, 21]
    np.testing.assert_array_equal(data.X, np.concatenate([part.X for part in parts]))
    np.testing.assert_array_equal(data.Y, np.concatenate([part.Y for part in parts]))


def test_half_a_window_is_no_majority_and_time_before_the_first_note_is_unlabelled(tmp_path):
    notes = [(1500, "(AFIB"), (2000, "(N"), (2499, "(AFL"), (3000, "(N"), (3400, "(AFIB")]
    write_record(tmp_path, "r", wave(45), ("I", "II"), notes=notes)
    data = read_rhythms(tmp_path)
    assert data.Y.tolist() == [[0, 0], [0, 0], [0, 1], [1, 0]]
    assert data.provenance["unlabelled_windows"] == 2
    seconds = rhythm_seconds(tmp_path, "r")
    assert seconds == pytest.approx({"AFIB": 16.0, "N": 8.99, "AFL": 5.01})


@given(
    st.lists(st.tuples(st.integers(0, 120), st.sampled_from(["AFIB", "AFL", "N"])), max_size=8),
    st.integers(1, 10),
)
def test_labels_equal_a_count_sample_by_sample(marks, length):
    marks = sorted(dict(marks).items())
    stops = [start for start, _ in marks[1:]] + [120] * bool(marks)
    spans = [Span(name, start, stop) for (start, name), stop in zip(marks, stops, strict=True)]
    rhythm = np.full(120, "", dtype="U4")
    for span in spans:
        rhythm[span.start : span.stop] = span.rhythm
    count = 120 // length
    cut = rhythm[: count * length].reshape(count, length)
    labels, unlabelled = label_windows(spans, (("AFIB",), ("AFL",)), length, count)
    for column, name in enumerate(("AFIB", "AFL")):
        np.testing.assert_array_equal(labels[:, column], (cut == name).sum(axis=1) * 2 > length)
    np.testing.assert_array_equal(unlabelled, (cut != "").sum(axis=1) * 2 <= length)
    assert (labels.sum(axis=1) <= 1).all()


def damage(folder, what):
    write_record(folder, "good", wave(30), ("I", "II"))
    if what == "signal file missing":
        (folder / "good.dat").unlink()
    elif what == "signal truncated":
        (folder / "good.dat").write_bytes((folder / "good.dat").read_bytes()[:-100])
    elif what == "annotations missing":
        (folder / "good.atr").unlink()
    elif what == "annotations truncated":
        (folder / "good.atr").write_bytes((folder / "good.atr").read_bytes()[:-2])
    elif what == "annotations past the end":
        write_record(folder, "good", wave(30), ("I", "II"), notes=[(0, "(N"), (9999, "(AFIB")])
    elif what == "header missing":
        (folder / "good.hea").unlink()
    elif what == "lead missing":
        write_record(folder, "good", wave(30), ("II", "V5"))
    elif what == "lead twice":
        write_record(folder, "good", wave(30), ("I", "i"))
    elif what == "all-NaN lead":
        write_record(folder, "good", [wave(30)[0], np.full(3000, -32768)], ("I", "II"))
    elif what == "NaN samples":
        digital = wave(30)
        digital[0, 5:9] = -32768
        write_record(folder, "good", digital, ("I", "II"))
    elif what == "too short":
        write_record(folder, "good", wave(9), ("I", "II"))
    elif what == "wrong rate":
        write_record(folder, "good", wave(30, fs=125), ("I", "II"), fs=125)
    elif what == "wrong unit":
        write_record(folder, "good", wave(30), ("I", "II"), gain="200/uV")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("signal file missing", r"good\.dat \(record good\).*No such file"),
        ("signal truncated", r"good\.dat \(record good\): truncated"),
        ("annotations missing", r"good\.atr \(record good\): no such annotation file"),
        ("annotations truncated", r"good\.atr \(record good\): truncated"),
        ("annotations past the end", r"good\.atr \(record good\).*0 to 3000.*0 to 9999"),
        ("header missing", r"good\.hea: no such header file"),
        ("lead missing", r"\(record good\): no channels for lead I, .*II, V5"),
        ("lead twice", r"\(record good\): 2 channels for lead I,"),
        ("all-NaN lead", r"\(record good\): lead II holds no valid sample"),
        ("NaN samples", r"\(record good\): lead I misses 4 of 3000 samples"),
        ("too short", r"\(record good\): 9 s of signal"),
        ("wrong rate", r"\(record good\): expected 100 Hz, found 125 Hz"),
        ("wrong unit", r"\(record good\): lead I is in uV, expected mV"),
    ],
)
def test_damaged_records_are_named(tmp_path, what, message):
    damage(tmp_path, what)
    with pytest.raises(DataError, match=message):
        read_rhythms(tmp_path, rate=100)


def test_what_cannot_be_asked_for(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        read_rhythms(tmp_path / "absent")
    with pytest.raises(DataError, match="no records with signals"):
        read_rhythms(tmp_path)
    write_record(tmp_path, "r", wave(30), ("I", "II"))
    with pytest.raises(DataError, match="record x is not there"):
        read_rhythms(tmp_path, records=["x"])
    with pytest.raises(DataError, match="not 12 leads"):
        read_rhythms(tmp_path, leads="12")
    with pytest.raises(DataError, match="lead_map: expected leads such as I and II, found X"):
        read_rhythms(tmp_path, lead_map={"I": "X"})
