"""Honest archives unpack to the byte; hostile and broken ones leave nothing behind."""

import errno
import gzip
import io
import stat
import struct
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedless.core import archive as module
from seedless.core.errors import DataError, StorageError
from seedless.data.download.unpack import extract

FILES = {"set/train": b"train" * 1000, "set/deep/er/test": bytes(range(256)), "set/empty": b""}


def add(tar, name, data=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data))


def make_tar(path, members=FILES, more=()):
    with tarfile.open(path, "w:gz") as tar:
        for name, data in dict(members).items():
            add(tar, name, data)
        for name, fields in more:
            add(tar, name, **fields)
    return path


def make_zip(path, members=FILES, more=()):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in dict(members).items():
            file.writestr(name, data)
        for name, mode in more:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            file.writestr(info, "/etc/passwd")
    return path


MAKE = {"a.tar.gz": make_tar, "a.zip": make_zip}
BOTH = pytest.mark.parametrize("name", sorted(MAKE))


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refused(tmp_path, archive, match, **options):
    """The refusal leaves the archive, and nothing else, in the folder."""
    before = tree(tmp_path)
    with pytest.raises(DataError, match=match) as refusal:
        extract(archive, tmp_path / "out", **options)
    assert archive.name in str(refusal.value)
    assert tree(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == [archive.name]


@BOTH
def test_an_honest_archive_unpacks_to_the_byte(tmp_path, name):
    archive = MAKE[name](tmp_path / name)
    out = extract(archive, tmp_path / "out")
    assert out == tmp_path / "out"
    assert tree(out) == FILES
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "out"]
    assert stat.S_IMODE(out.stat().st_mode) == stat.S_IMODE((out / "set").stat().st_mode)


@BOTH
def test_a_folder_of_the_same_name_is_not_doubled(tmp_path, name):
    extract(MAKE[name](tmp_path / name), tmp_path / "set")
    assert (tmp_path / "set" / "train").is_file()


@BOTH
@pytest.mark.parametrize(
    "member", ["../evil", "set/../../evil", "/tmp/evil", "C:/evil", "set\\..\\evil", "a\nb", "\\x"]
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path, name, member):
    archive = MAKE[name](tmp_path / name, {"set/ok": b"ok", member: b"evil"})
    refused(tmp_path, archive, "could lead out of its folder")


@pytest.mark.parametrize(
    ("member", "fields"),
    [
        ("link", {"type": tarfile.SYMTYPE, "linkname": "/etc"}),
        ("link", {"type": tarfile.SYMTYPE, "linkname": "../.."}),
        ("link", {"type": tarfile.SYMTYPE, "linkname": "set/train"}),
        ("link", {"type": tarfile.LNKTYPE, "linkname": "../../etc/passwd"}),
        ("device", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}),
        ("device", {"type": tarfile.BLKTYPE, "devmajor": 8}),
        ("pipe", {"type": tarfile.FIFOTYPE}),
    ],
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, member, fields):
    archive = make_tar(tmp_path / "a.tar.gz", more=[(member, fields)])
    refused(tmp_path, archive, "not a plain file or a folder")


def test_a_file_through_a_link_cannot_be_written(tmp_path):
    link = {"type": tarfile.SYMTYPE, "linkname": str(tmp_path.parent)}
    more = [("up", link), ("up/evil", {"data": b"evil"})]
    refused(tmp_path, make_tar(tmp_path / "a.tar.gz", more=more), "not a plain file or a folder")
    assert not (tmp_path.parent / "evil").exists()


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
def test_links_and_devices_in_a_zip_are_refused(tmp_path, kind):
    archive = make_zip(tmp_path / "a.zip", more=[("link", kind | 0o777)])
    refused(tmp_path, archive, "not a plain file or a folder")


def test_a_file_twice_is_refused(tmp_path):
    more = [("set/train", {"data": b"other"})]
    refused(tmp_path, make_tar(tmp_path / "a.tar.gz", more=more), "twice")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_twice_in_a_zip_is_refused_however_it_is_spelled(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"a/b": b"1", "a/./b": b"2"})
    refused(tmp_path, archive, "twice")


@BOTH
def test_a_file_that_is_a_folder_too_is_refused(tmp_path, name):
    archive = MAKE[name](tmp_path / name, {"a": b"1", "a/b": b"2"})
    refused(tmp_path, archive, "'a' both as a file and as a folder")


@BOTH
def test_a_bomb_is_refused_by_ratio(tmp_path, name):
    archive = MAKE[name](tmp_path / name, {"zeros": bytes(80 * 2**20)})
    assert archive.stat().st_size < 2**20 // 8
    refused(tmp_path, archive, "would unpack to more than")


@BOTH
def test_a_bomb_is_refused_by_limit(tmp_path, name):
    refused(tmp_path, MAKE[name](tmp_path / name), "more than 1,000 bytes", limit=1000)


@BOTH
def test_too_many_members_are_refused(tmp_path, name):
    archive = MAKE[name](tmp_path / name)
    rules = module.Rules(DataError, "get it again", max_members=2, strict=False)
    kind = name.removeprefix("a.")
    with (
        pytest.raises(DataError, match="more than 2 members"),
        module.unpack(archive, kind, tmp_path, rules),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_zip_that_declares_a_wrong_size_is_refused(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"zeros": bytes(100_000)})
    data = bytearray(archive.read_bytes())
    entry = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, entry + 24, 10)  # the size in the directory
    archive.write_bytes(data)
    refused(tmp_path, archive, "damaged")


def test_a_header_of_gigabytes_is_refused_before_it_is_read(tmp_path):
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 3 * 2**30
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(gzip.compress(info.tobuf() + bytes(2**20)))
    refused(tmp_path, archive, "a header of 3221225472 bytes")


def test_a_size_below_zero_is_refused_and_does_not_loop(tmp_path):
    block = bytearray(tarfile.TarInfo("negative").tobuf())
    block[124:136] = b"\xff" * 10 + struct.pack(">h", -1024)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(gzip.compress(bytes(block) * 4))
    refused(tmp_path, archive, "have -1024 bytes|invalid offset")  # depends on Python's version


def test_a_sparse_file_is_refused(tmp_path):
    more = [("holes", {"type": tarfile.GNUTYPE_SPARSE})]
    refused(tmp_path, make_tar(tmp_path / "a.tar.gz", more=more), "not a plain file|damaged")


@BOTH
@pytest.mark.parametrize("keep", [0, 10, 0.5, -1])
def test_an_archive_cut_short_is_refused(tmp_path, name, keep):
    archive = MAKE[name](tmp_path / name)
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * keep) if isinstance(keep, float) else keep])
    refused(tmp_path, archive, "damaged or cut short|cannot unpack")


@given(cut=st.integers(0, 700), flips=st.lists(st.integers(0, 700), max_size=3))
def test_damage_anywhere_gives_one_kind_of_error(cut, flips):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        for name, make in MAKE.items():
            path = make(Path(folder) / name)
            data = bytearray(path.read_bytes())
            for place in flips:
                data[place % len(data)] ^= 0x5A
            path.write_bytes(data[: len(data) - cut % len(data)])
            try:
                extract(path, Path(folder) / "out")
            except DataError:
                assert sorted(p.name for p in Path(folder).iterdir()) == [name]
            else:
                assert tree(Path(folder) / "out") is not None
                import shutil

                shutil.rmtree(Path(folder) / "out")
            path.unlink()


def test_an_encrypted_zip_is_refused(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"a": b"secret"})
    data = bytearray(archive.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    data[6] |= 1
    archive.write_bytes(data)
    refused(tmp_path, archive, "encrypted")


def test_other_kinds_of_file_are_refused(tmp_path):
    archive = tmp_path / "a.rar"
    archive.write_bytes(b"Rar!")
    refused(tmp_path, archive, r"expected a \.tar\.gz")


def test_what_is_there_already_is_left_alone(tmp_path):
    archive = make_zip(tmp_path / "a.zip")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(DataError, match="there already"):
        extract(archive, tmp_path / "out")
    assert tree(tmp_path / "out") == {"mine": b"mine"}


@BOTH
def test_a_full_disk_leaves_nothing_and_is_not_the_archives_fault(tmp_path, monkeypatch, name):
    archive = MAKE[name](tmp_path / name)

    class Full(io.FileIO):
        def write(self, _data):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "open", lambda path, mode: Full(path, mode), raising=False)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(
        StorageError, match=r"No space left .*; this says nothing about the archive"
    ):
        extract(archive, tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == before


@BOTH
def test_a_name_that_is_too_long_is_the_archives_fault(tmp_path, name):
    archive = MAKE[name](tmp_path / name, {"x" * 300: b"content"})
    refused(tmp_path, archive, "a name of 300 characters")


def test_an_interruption_leaves_nothing(tmp_path, monkeypatch):
    archive = make_zip(tmp_path / "a.zip")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module._Check, "name", interrupt)
    with pytest.raises(KeyboardInterrupt):
        extract(archive, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_missing_archive_or_folder_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.zip"):
        extract(tmp_path / "nothing.zip", tmp_path / "out")
    archive = make_zip(tmp_path / "a.zip")
    with pytest.raises(DataError, match="cannot unpack"):
        extract(archive, tmp_path / "no" / "such" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def read_strictly(path, folder):
    """Unpack an archive as one that this package wrote; return the error."""
    rules = module.Rules(DataError, "get it again")
    with pytest.raises(DataError) as raised, module.unpack(path, "zip", folder, rules):
        pass
    assert not list(folder.glob(".seedless*"))
    return str(raised.value)


@BOTH
def test_a_name_costs_little_however_deep(tmp_path, name):
    archive = MAKE[name](tmp_path / name, {"a/" * 30_000 + "b": b""})
    refused(tmp_path, archive, "a name of 60,001 characters and 30,000 folders")


def test_a_directory_of_gigabytes_is_refused_before_it_is_read(tmp_path):
    path = make_zip(tmp_path / "a.zip")
    content = bytearray(path.read_bytes())
    content[-10:-6] = struct.pack("<L", 2**31)
    path.write_bytes(content)
    with pytest.raises(DataError, match="declares a directory of 2,147,483,648 bytes"):
        extract(path, tmp_path / "out")


def test_files_that_lie_over_each_other_are_refused(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name in ("first", "other"):
            file.writestr(name, bytes(10**6))
    content = bytearray(path.read_bytes())
    start, end = content.index(b"PK\x03\x04", 4), content.index(b"PK\x01\x02")
    second = content.rindex(b"PK\x01\x02")
    content[second + 42 : second + 46] = bytes(4)  # the second file begins where the first does
    content[-6:-2] = struct.pack("<L", start)
    path.write_bytes(content[:start] + content[end:])
    assert "files of 2,000,000 bytes in it" in read_strictly(path, tmp_path)
