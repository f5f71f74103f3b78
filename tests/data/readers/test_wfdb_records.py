"""WFDB records: our header and format-16 readers agree with wfdb to the bit; damage is named."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedless.core.errors import DataError
from seedless.data.readers.wfdb_records import read_header, read_signal

with warnings.catch_warnings():  # wfdb 4.3 uses what pandas 3 is about to drop
    warnings.simplefilter("ignore")
    import wfdb


def write(folder, digital, *, name="r1", form="16", preamble=b"", line=None, first=None):
    """Write (leads, time) of int16 as a record of gain 1000 and baseline 0, checksums and all."""
    digital = np.asarray(digital, dtype=np.int16)
    suffix = "mat" if preamble else "dat"
    rows = [
        f"{name}.{suffix} {form} 1000(0)/mV 16 0 {lead[0] if len(lead) else 0} "
        f"{int(lead.sum(dtype=np.int64)) % 65536} 0 L{k}"
        for k, lead in enumerate(digital)
    ]
    head = first or f"{name} {len(digital)} 100 {digital.shape[1]}"
    (folder / f"{name}.hea").write_text("\n".join([head, *rows, "# Age: 50", ""]))
    (folder / f"{name}.{suffix}").write_bytes(preamble + digital.T.astype("<i2").tobytes())
    if line is not None:
        change(folder / f"{name}.hea", *line)
    return folder / f"{name}.hea"


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def ramp(leads=3, length=20):
    return np.arange(leads * length).reshape(leads, length) * 7 - 100


def by_wfdb(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values, fields = wfdb.rdsamp(str(path.with_suffix("")))
    return np.ascontiguousarray(values.T.astype(np.float32)), fields


FOLDERS = ["ptb-xl-sample/records100", "challenge", "cpsc2021", "mitdb"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_real_records_are_read_as_wfdb_reads_them(real_data, folder):
    paths = sorted((real_data / folder).rglob("*.hea"))
    assert paths
    for path in paths[::4]:
        header = read_header(path)
        expected, fields = by_wfdb(path)
        assert read_signal(header).tobytes() == expected.tobytes()
        assert list(header.leads) == fields["sig_name"]
        assert [signal.units for signal in header.signals] == fields["units"]
        assert (header.fs, header.length) == (fields["fs"], fields["sig_len"])
        assert list(header.comments) == fields["comments"]


def test_every_record_of_the_sample_is_read_as_wfdb_reads_it(real_data):
    paths = sorted((real_data / "ptb-xl-sample").rglob("*.hea"))
    assert len(paths) == 150
    for path in paths:
        assert read_signal(read_header(path)).tobytes() == by_wfdb(path)[0].tobytes()


def test_header_fields(real_data):
    header = read_header(real_data / "challenge" / "HR06000")
    assert (header.record, header.fs, header.length) == ("HR06000", 500.0, 5000)
    signal = header.signals[1]
    assert signal == ("II", "HR06000.mat", "16", 1, 0, 24, 1000.0, 0, "mv", -20, -11799, True)
    assert header.comments[1] == "Sex: Female"


@settings(max_examples=40)
@given(
    digital=st.lists(st.tuples(*[st.integers(-32768, 32767)] * 2), min_size=1, max_size=8).map(
        lambda rows: np.array(rows).T
    ),
    gain=st.sampled_from(["1000", "200.5(12)/mV", "3e2(-161790)/uV", "1.5e-1/z"]),
)
def test_any_format_16_record_is_read_as_wfdb_reads_it(tmp_path_factory, digital, gain):
    path = write(tmp_path_factory.mktemp("w"), digital, line=("1000(0)/mV", gain))
    found, expected = read_signal(read_header(path)), by_wfdb(path)[0]
    assert found.tobytes() == expected.tobytes()
    assert np.isnan(found).sum() == (digital == -32768).sum()


@pytest.mark.parametrize("form", ["16+24", "16x1+24"])
def test_the_challenges_mat_files_are_format_16_after_24_bytes(tmp_path, form):
    path = write(tmp_path, ramp(), form=form, preamble=b"\7" * 24)
    np.testing.assert_array_equal(read_signal(read_header(path)), (ramp() / 1000).astype("f4"))


def test_signals_in_two_files(tmp_path):
    write(tmp_path, ramp(2), name="a")
    write(tmp_path, ramp(1) + 5, name="b")
    lines = [(tmp_path / f"{name}.hea").read_text().splitlines() for name in "ab"]
    (tmp_path / "c.hea").write_text("\n".join(["c 3 100 20", *lines[0][1:3], lines[1][1], ""]))
    found = read_signal(read_header(tmp_path / "c"))
    assert found.tobytes() == by_wfdb(tmp_path / "c.hea")[0].tobytes()


def test_defaults_are_those_of_wfdb(tmp_path):
    (tmp_path / "d.hea").write_text("#first\n\nd 1\nd.dat 16\n# last\n")
    np.arange(6, dtype="<i2").tofile(tmp_path / "d.dat")
    header = read_header(tmp_path / "d")
    assert (header.fs, header.length, header.comments) == (250.0, 0, ("first", "last"))
    assert header.signals[0][6:] == (200.0, 0, "mV", None, None, False)
    np.testing.assert_array_equal(read_signal(header), np.float32([np.arange(6) / 200]))


def test_a_gain_of_zero_is_200_and_not_calibrated(tmp_path):
    path = write(tmp_path, ramp(), line=("1000(0)/mV", "0"))
    header = read_header(path)
    assert [signal.calibrated for signal in header.signals] == [False, True, True]
    assert read_signal(header).tobytes() == by_wfdb(path)[0].tobytes()


def test_a_missing_baseline_is_the_adc_zero(tmp_path):
    path = write(tmp_path, ramp(), line=("1000(0)/mV 16 0", "1000/mV 16 30"))
    assert read_header(path).signals[0].baseline == 30
    assert read_signal(read_header(path)).tobytes() == by_wfdb(path)[0].tobytes()


def test_a_record_with_annotations_only(tmp_path):
    (tmp_path / "00735.hea").write_text("00735 0 250 0\n")
    header = read_header(tmp_path / "00735.hea")
    assert header.leads == ()
    with pytest.raises(DataError, match=r"00735.hea \(record 00735\): .* no signals"):
        read_signal(header)


def test_a_truncated_file(tmp_path):
    path = write(tmp_path, ramp())
    data = (tmp_path / "r1.dat").read_bytes()
    (tmp_path / "r1.dat").write_bytes(data[:-7])
    with pytest.raises(
        DataError, match=r"r1.dat \(record r1\): truncated: .* 120 bytes, found 113"
    ):
        read_signal(read_header(path))


def test_a_truncated_file_in_another_format(real_data, tmp_path):
    header = (real_data / "mitdb" / "100.hea").read_text()
    (tmp_path / "100.hea").write_text(header)
    (tmp_path / "100.dat").write_bytes(bytes(3000))
    with pytest.raises(DataError, match=r"truncated: .* take 1950000 bytes, found 3000"):
        read_signal(read_header(tmp_path / "100"))


def test_a_checksum_in_another_format(real_data, tmp_path):
    (tmp_path / "100.hea").write_text((real_data / "mitdb" / "100.hea").read_text())
    data = bytearray((real_data / "mitdb" / "100.dat").read_bytes())
    data[3000] ^= 1
    (tmp_path / "100.dat").write_bytes(data)
    with pytest.raises(DataError, match=r"100.dat \(record 100\): lead MLII: .*checksum"):
        read_signal(read_header(tmp_path / "100"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("r1 3 100 20", "r1 3 100 19"), "longer than its header says: .* 114 bytes, found 120"),
        (("r1 3 100 20", "r1 3 100 21"), "truncated"),
        (("r1 3 100 20", "r1 4 100 20"), "announces 4 signals and describes 3"),
        (("r1 3 100 20", "r1 2 100 20"), "announces 2 signals and describes 3"),
        (("r1 3 100 20", "r1/2 3 100 20"), "several segments"),
        (("r1 3 100 20", "r1 3 0 20"), "rate from 0.01"),
        (("r1 3 100 20", "r1 3 1e999 20"), "rate from 0.01"),
        (("r1 3 100 20", "r1 3 0.00001 20"), "rate from 0.01"),
        (("r1 3 100 20", "r1 3 100 " + "9" * 5000), "5000 digits"),
        (("r1 3 100 20", "three leads"), "not a WFDB header: .* found 'three leads'"),
        (("r1.dat 16", "r1.dat sixteen"), r"record r1\): not a signal line"),
        (("1000(0)", "1e999(0)"), "not a signal line"),
        (("r1.dat 16", "r\0.dat 16"), "damaged: it holds zero bytes"),
        (("r1.dat 16", "../r1.dat 16"), "expected a signal file in the folder"),
        (("r1.dat 16", "r2.dat 16"), "r2.dat .* cannot be read: No such file"),
        (("r1.dat 16", "r1.dat 16x2"), "must have the same format"),
        (("r1.dat 16", "r1.dat 16+2"), "must have the same format"),
        ((" 0 L0", " 0 L0\nr1.dat 16 1 16 0 0 0 0 more"), "announces 3 signals and describes 4"),
    ],
)
def test_headers_that_disagree_with_themselves_or_the_data(tmp_path, line, message):
    path = write(tmp_path, ramp(), line=line)
    with pytest.raises(DataError, match=message) as caught:
        read_signal(read_header(path))
    assert str(tmp_path) in str(caught.value)


def test_samples_a_frame_and_skew_are_refused(tmp_path):
    path = write(tmp_path, ramp(), form="16x2:3")
    with pytest.raises(DataError, match="2 samples per frame and a skew of 3"):
        read_signal(read_header(path))


def test_a_changed_sample_breaks_the_checksum(tmp_path):
    path = write(tmp_path, ramp())
    data = bytearray((tmp_path / "r1.dat").read_bytes())
    data[2] ^= 1
    (tmp_path / "r1.dat").write_bytes(data)
    with pytest.raises(DataError, match=r"r1.dat \(record r1\): lead L1: .*checksum is \d+"):
        read_signal(read_header(path))


def test_a_wrong_initial_value_is_no_error(tmp_path):
    path = write(tmp_path, ramp(), line=("16 0 -100", "16 0 999"))
    assert read_header(path).signals[0].initial == 999
    read_signal(read_header(path))


def test_files_that_are_no_headers(tmp_path):
    with pytest.raises(DataError, match=r"none.hea: no such header"):
        read_header(tmp_path / "none")
    (tmp_path / "empty.hea").write_text("# only a comment\n")
    with pytest.raises(DataError, match="no record line"):
        read_header(tmp_path / "empty")
    (tmp_path / "binary.hea").write_bytes(bytes(range(256)))
    with pytest.raises(DataError, match="not a WFDB header"):
        read_header(tmp_path / "binary")
    (tmp_path / "folder.hea").mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        read_header(tmp_path / "folder")


def test_an_unknown_format_is_wfdbs_to_refuse(tmp_path):
    path = write(tmp_path, ramp(), form="9999")
    with pytest.raises(DataError, match=r"r1.hea \(record r1\): wfdb cannot read it"):
        read_signal(read_header(path))


def test_a_header_cut_anywhere_is_refused_or_lacks_whole_comments_only(tmp_path):
    path = write(tmp_path, ramp())
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    ends = {len(b"".join(lines[:count])) for count in range(4, len(lines) + 1)}  # after signals
    for size in range(len(content)):
        path.write_bytes(content[:size])
        if size in ends:
            assert read_header(path).leads == ("L0", "L1", "L2")
        else:
            with pytest.raises(DataError, match=r"cut short|announces 3|not a WFDB header"):
                pytest.fail(f"{read_header(path)} of the first {size} bytes")


def test_a_header_with_a_zeroed_stretch_is_refused(tmp_path):
    path = write(tmp_path, ramp())
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes(2) + content[place + 2 :])
        with pytest.raises(DataError, match=r"zero bytes|cut short|not a WFDB header"):
            read_header(path)
