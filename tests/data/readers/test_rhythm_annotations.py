"""Annotation files: a zeroed or cut stretch never changes the rhythms without an error."""

import shutil
import struct

import pytest

from seedless.core.errors import DataError
from seedless.data.readers.rhythm_annotations import read_spans
from seedless.data.readers.wfdb_records import read_header
from tests.data.readers.test_afdb import wave, write_record

NOTES = [(0, "(N"), (700, "(AFIB"), (2900, "(N")]


@pytest.fixture
def record(tmp_path):
    """A record of 30 s with three rhythms; its annotations have one interval above 1,023."""
    write_record(tmp_path, "good", wave(30), ("I", "II"), notes=NOTES)
    return tmp_path / "good.atr"


def spans(path):
    return read_spans(read_header(path.with_suffix(".hea")))


def count_silent(path, change):
    """Return in how many places a change of the file changes its rhythms without an error."""
    content, expected, silent = path.read_bytes(), spans(path), []
    for place in range(0, len(content), 2):
        path.write_bytes(change(content, place))
        try:
            if spans(path) != expected:
                silent.append(place)
        except DataError:
            pass
    path.write_bytes(content)
    return silent


def zero(size):
    return lambda content, place: content[:place] + bytes(size) + content[place + size :]


def test_a_whole_file_is_read(record):
    assert [(span.rhythm, span.start, span.stop) for span in spans(record)] == [
        ("N", 0, 700),
        ("AFIB", 700, 2900),
        ("N", 2900, 3000),
    ]


@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_zeroed_stretch_is_found_wherever_it_is(record, size):
    assert count_silent(record, zero(size)) == []


def test_a_file_cut_anywhere_is_found(record):
    assert count_silent(record, lambda content, place: content[:place]) == []
    assert count_silent(record, lambda content, place: content[: place + 1]) == []


@pytest.mark.parametrize(("folder", "name"), [("mitdb", "203"), ("cpsc2021", "data_92_12")])
def test_a_zeroed_stretch_of_a_real_file_is_found(real_data, tmp_path, folder, name):
    for suffix in (".hea", ".atr"):
        shutil.copyfile(real_data / folder / f"{name}{suffix}", tmp_path / f"{name}{suffix}")
    path = tmp_path / f"{name}.atr"
    content, expected = path.read_bytes(), spans(path)
    assert len(expected) >= 2
    for size in (2, 6, 100):
        for place in range(0, len(content) - 2, 2 if len(content) < 1000 else 74):
            path.write_bytes(zero(size)(content, place)[: len(content)])
            with pytest.raises(DataError, match=r"\.atr"):
                pytest.fail(f"{len(spans(path))} spans with {size} bytes zeroed at {place}")


DAMAGE = {
    "an end mark before the end": (bytes(2), "an end mark at byte 0"),
    "no word at the end": (b"\0", "odd number of bytes"),
    "a note of no kind": (struct.pack("<H", 55 << 10), "a note of kind 55"),
    "a time without a note": (struct.pack("<H", 5), "a note of kind 0"),
    "a text that is cut": (struct.pack("<H", 63 << 10 | 900), "ends within a text"),
    "an interval of 0": (struct.pack("<H4x", 59 << 10), "an interval of 0"),
    "a text with a zero": (struct.pack("<H", 63 << 10 | 4) + b"(A\0B", "a text that is damaged"),
    "a text that is no text": (struct.pack("<H", 63 << 10 | 2) + b"\xff\x01", "text that is dam"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_what_no_annotation_file_holds_is_named(record, case):
    words, message = DAMAGE[case]
    content = record.read_bytes()
    record.write_bytes(content + words if len(words) == 1 else words + content)
    with pytest.raises(DataError, match=rf"good\.atr \(record good\): .*{message}"):
        spans(record)


def test_a_rhythm_without_its_name_is_named(record):
    change = struct.pack("<HHH", 28 << 10 | 1, 63 << 10 | 2, int.from_bytes(b"xx", "little"))
    record.write_bytes(change + record.read_bytes())
    with pytest.raises(DataError, match=r"expected a rhythm such as '\(AFIB' .*, got 'xx'"):
        spans(record)
