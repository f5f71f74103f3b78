"""Arrays are read as numpy wrote them, and files that say otherwise are refused."""

import io
import struct
import zipfile

import numpy as np
import pytest

from seedless.core.array_files import NUMBERS, load_npy, parse_npy, parse_npz
from seedless.core.errors import RunError

ARRAYS = [
    np.arange(6, dtype="f4").reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array(3, dtype="i8"),
    np.array([True, False]),
    np.zeros((0, 4), dtype="u1"),
    np.array(["a", "béc", "\U0001f600"]),
    np.array("one"),
    np.arange(3, dtype=">i4"),
]


def save(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def save_npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def with_header(text, data=b""):
    text = text.encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize("array", ARRAYS, ids=str)
def test_what_numpy_saved_is_read_back(array, tmp_path):
    (tmp_path / "a.npy").write_bytes(save(array))
    for read in (
        parse_npy(save(array), "a", kinds=NUMBERS + "U"),
        load_npy(tmp_path / "a.npy", kinds=NUMBERS + "U"),
        parse_npz(save_npz(a=array), "a", kinds=lambda name: NUMBERS + "U")["a"],
    ):
        assert read.dtype == array.dtype
        assert np.array_equal(read, array)


F4 = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "does not begin as"),
        (b"\x93NUMPY\x02\x00" + save(ARRAYS[0])[8:], "does not begin as"),
        (with_header(F4 % "1000000000000,", b"1234"), "expected 4,000,000,000,000 bytes"),
        (with_header(F4 % "1,", b"12345678"), "expected 4 bytes for float32"),
        (with_header(F4 % "0, 999999999999999999"), "has the shape"),
        (with_header(F4 % ("1, " * 40 + "1"), b"1234"), "41 dimensions"),
        (with_header(F4 % "-1,", b"1234"), "does not begin as"),
        (with_header(F4 % "1e3,"), "does not begin as"),
        (with_header("[" * 3000), "does not begin as"),
        (with_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"), "not begin"),
        (with_header("{'descr': '|O8', 'fortran_order': False, 'shape': (1,), }"), "got '|O8'"),
        (with_header("{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }"), "got '<f3'"),
        (with_header("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }"), "got '<c8'"),
        (with_header("{'descr': '<U0', 'fortran_order': False, 'shape': (9,), }"), "got '<U0'"),
        (
            with_header("{'descr': '<U1000000', 'fortran_order': False, 'shape': (1,), }"),
            "1,000,000 characters",
        ),
        (
            with_header("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", b"\0\xd8\0\0"),
            "not Unicode",
        ),
        (
            with_header("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", 4 * b"\xff"),
            "not Unicode",
        ),
    ],
)
def test_another_array_is_refused(content, why, tmp_path):
    with pytest.raises(RunError, match=why.replace("|", r"\|")):
        parse_npy(content, "a", kinds=NUMBERS + "U")
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(RunError, match=why.replace("|", r"\|")):
        load_npy(tmp_path / "a.npy", kinds=NUMBERS + "U")


def test_text_is_refused_where_numbers_are_expected():
    with pytest.raises(RunError, match="a: expected a dtype of kind 'biuf', got '<U3'"):
        parse_npy(save(np.array("one")), "a")


def test_pickles_are_refused():
    stream = io.BytesIO()
    np.save(stream, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(RunError, match="does not begin as"):
        parse_npy(stream.getvalue(), "a", kinds="biufUO")


def write_zip(*members, compression=zipfile.ZIP_STORED, comment=b""):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, content in members:
            file.writestr(name, content)
        file.comment = comment
    return stream.getvalue()


def overlap():
    """Return a zip whose two names share the bytes of one array."""
    content = bytearray(write_zip(("a.npy", save(ARRAYS[0])), ("b.npy", save(ARRAYS[0]))))
    second = content.rindex(b"PK\x01\x02")
    content[second + 42 : second + 46] = bytes(4)
    return bytes(content)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: write_zip(("a.npy", save(ARRAYS[0])), compression=zipfile.ZIP_DEFLATED), "compr"),
        (lambda: write_zip(("a.npy", save(ARRAYS[0])), compression=zipfile.ZIP_LZMA), "compressed"),
        (lambda: write_zip(*2 * [("a.npy", save(ARRAYS[0]))]), "'a.npy' twice"),
        (lambda: write_zip(("c.npy", save(ARRAYS[0]))), "'c', which does not belong"),
        (lambda: write_zip(("a", save(ARRAYS[0]))), "'a', which does not belong"),
        (lambda: write_zip(*((f"{i}.npy", b"") for i in range(65))), "holds 65 arrays"),
        (lambda: write_zip(("x" * 65_000, b"")), "x', which does not belong"),
        (
            lambda: write_zip(("a.npy", save(ARRAYS[0])), comment=b"more"),
            "no file that numpy.savez",
        ),
        (lambda: b"junk" + save_npz(a=ARRAYS[0]), "bytes that belong to no array"),
        (lambda: save_npz(a=ARRAYS[0]) + b"junk", "no file that numpy.savez"),
        (lambda: save_npz(a=ARRAYS[0])[:-30], "no file that numpy.savez"),
        (overlap, "bytes that belong to no array"),
        (lambda: b"", "no file that numpy.savez"),
    ],
)
def test_another_archive_is_refused(make, why):
    with pytest.raises(RunError, match=why):
        parse_npz(make(), "a", kinds=lambda name: "f" if name in "ab" else "")


def test_every_changed_byte_of_an_archive_is_refused_or_harmless():
    honest = save_npz(a=ARRAYS[0])
    for place in range(len(honest)):
        changed = bytearray(honest)
        changed[place] ^= 0x41
        try:
            read = parse_npz(bytes(changed), "a", kinds=lambda name: "f" if name == "a" else "")
        except RunError:
            continue
        assert np.array_equal(read["a"], ARRAYS[0]), place  # a time or an attribute was changed
