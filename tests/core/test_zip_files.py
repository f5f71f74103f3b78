"""A zip file's directory is bounded before it is read, and bytes of no file in it are seen."""

import io
import struct
import zipfile

import pytest

from seedless.core.errors import RunError
from seedless.core.zip_files import check_zip_directory, has_other_bytes


def write_zip(*members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def test_a_directory_is_bounded_before_it_is_read():
    content = write_zip(*((f"{number}", b"") for number in range(100)))
    check_zip_directory(io.BytesIO(content), "a", 10_000)
    with pytest.raises(RunError, match="declares a directory of 4,790 bytes; at most 1,000"):
        check_zip_directory(io.BytesIO(content), "a", 1_000)
    check_zip_directory(io.BytesIO(b"PK"), "a", 1_000)


def test_the_directory_of_a_large_archive_is_bounded_too():
    # The record for files above 4 GiB, its locator, and an end whose own fields say "look there".
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, 10**12, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 2**32 - 1, 2**32 - 1, 0)
    with pytest.raises(RunError, match="declares a directory of 1,000,000,000,000 bytes"):
        check_zip_directory(io.BytesIO(record + locator + end), "a", 2**20)


def test_a_false_end_within_the_end_hides_no_directory():
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 10**9, 0x06054B50, 0)
    with pytest.raises(RunError, match="declares a directory of 1,000,000,000 bytes"):
        check_zip_directory(io.BytesIO(bytes(100) + end), "a", 2**20)


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: b"before" + whole,
        lambda whole: whole[:-2] + b"\x05\x00after",
        lambda whole: write_zip(("a", b"a"), ("b", b"b")).replace(b"PK\x01\x02", b"XPK\x01\x02", 1),
    ],
    ids=["before", "comment", "between"],
)
def test_bytes_of_no_file_are_seen(tmp_path, change):
    whole, file = write_zip(("a", b"one"), ("b", b"two")), tmp_path / "a.zip"
    file.write_bytes(whole)
    assert not has_other_bytes(file)
    file.write_bytes(change(whole))
    assert has_other_bytes(file)
