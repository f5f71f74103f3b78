"""Bundles: the same run gives the same bytes; hostile and broken ones leave nothing behind."""

import hashlib
import os
import re
import shutil
import stat
import struct
import zipfile
from pathlib import Path

import pytest

import seedless
from seedless.core.digests import canonical_json
from seedless.core.errors import SeedlessError
from seedless.proof import source_digest
from seedless.proof.bundle import is_bundle, open_bundle, write_bundle
from seedless.proof.bundle_contents import list_source_files

FILES = {
    "config.toml": b"[train]\nepochs = 2\n",
    "weights.safetensors": bytes(range(256)) * 9,
    "checkpoints/epoch-0002.safetensors": b"two",
    "checkpoints/epoch-0001.safetensors": b"",
}
# What stands for this package in a bundle: the files of the source digest, and py.typed.
PACKAGE = {"__init__.py": b"version = 1\n", "core/words.toml": b"[a]\n", "py.typed": b""}
SOURCE = {f"source/seedless/{name}": content for name, content in PACKAGE.items()}


def write_all(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def make_receipt(files):
    covered = {name: f"sha256:{hashlib.sha256(data).hexdigest()}" for name, data in files.items()}
    hasher = hashlib.sha256()
    for name in sorted({*PACKAGE} - {"py.typed"}):
        hasher.update(name.encode() + b"\0" + hashlib.sha256(PACKAGE[name]).digest())
    source = {"digest": f"sha256:{hasher.hexdigest()}"}
    predicate = {"schema": "2.0", "files": covered, "source": source, "data": {"content": "x"}}
    return canonical_json({"predicate": predicate}) + b"\n"


def make_run(folder, files=FILES):
    write_all(folder, {**files, "receipt.json": make_receipt(files)})
    return folder


@pytest.fixture(autouse=True)
def _small_package(tmp_path_factory, monkeypatch):
    """Let a small package be the one that is installed."""
    folder = tmp_path_factory.mktemp("installed") / "seedless"
    write_all(folder, PACKAGE)
    monkeypatch.setattr(source_digest, "PACKAGE", folder)


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run")


@pytest.fixture
def bundle(tmp_path, run):
    write_bundle(run, tmp_path / "a.zip")
    return tmp_path / "a.zip"


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def make_zip(path, members=None, more=(), compression=zipfile.ZIP_STORED):
    """A zip file as a bundle would be, of run files and ``more`` (name, content, fields)."""
    if members is None:
        members = {**FILES, "receipt.json": make_receipt(FILES), **SOURCE}
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
        for name, content, fields in more:
            info = zipfile.ZipInfo(name)
            for key, value in fields.items():
                setattr(info, key, value)
            file.writestr(info, content)
    return path


def refused(tmp_path, path, match):
    """The refusal names the file and leaves nothing but what was there."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SeedlessError) as refusal:
        open_bundle(path, tmp_path / "out")
    said = str(refusal.value).replace(str(tmp_path), "")  # which holds the test's own name
    assert path.name in said
    assert re.search(match, said)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_goes_in_comes_out(tmp_path, run):
    write_all(run, {"receipt.dsse.json": b"{}", "model.sig": b"{}", "provenance.json": b"{}"})
    expected = tree(run)
    write_all(run, {"report.html": b"<p>", ".lock": b"", "progress.png": b"", "stray.txt": b"mine"})
    out = tmp_path / "deep" / "a.zip"
    digest = write_bundle(run, out)
    assert digest == f"sha256:{hashlib.sha256(out.read_bytes()).hexdigest()}"
    assert [file.name for file in out.parent.iterdir()] == ["a.zip"]
    folder = open_bundle(out, tmp_path / "far" / "out")
    assert folder == tmp_path / "far" / "out" / "run"
    assert tree(folder) == expected
    assert tree(folder.parent / "source" / "seedless") == PACKAGE
    assert sorted(file.name for file in folder.parent.iterdir()) == ["run", "source"]
    assert [file.name for file in folder.parent.parent.iterdir()] == ["out"]


def test_what_comes_out_can_be_bundled_to_the_same_bytes(tmp_path, bundle):
    again = open_bundle(bundle, tmp_path / "out")
    write_bundle(again, tmp_path / "b.zip")
    assert (tmp_path / "b.zip").read_bytes() == bundle.read_bytes()


def test_bytes_repeat_across_processes_times_modes_and_places(tmp_path, bundle, run_python):
    """Another process, time zone, umask, and a copy made later in another order of files."""
    copy = tmp_path / "elsewhere"
    for name, content in reversed(tree(tmp_path / "run").items()):
        write_all(copy, {name: content})
        os.utime(copy / name, (10**9, 10**9))
        os.chmod(copy / name, 0o600)
    code = (
        "import os, sys; os.umask(0o077)\n"
        "from pathlib import Path\n"
        "from seedless.proof import source_digest\n"
        "from seedless.proof.bundle import write_bundle\n"
        "source_digest.PACKAGE = Path(sys.argv[3])\n"
        "print(write_bundle(Path(sys.argv[1]), Path(sys.argv[2])))"
    )
    out = tmp_path / "b.zip"
    done = run_python(
        "-c",
        code,
        str(copy),
        str(out),
        str(source_digest.PACKAGE),
        TZ="Asia/Tokyo",
        PYTHONHASHSEED=7,
    )
    assert out.read_bytes() == bundle.read_bytes()
    assert done.stdout.strip() == f"sha256:{hashlib.sha256(bundle.read_bytes()).hexdigest()}"


def test_the_bytes_are_these(bundle):
    """Committed, so that no version of Python or zlib changes them unseen."""
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
    assert digest == "7e46d8d7ec712c19978d5364f1336b55d214e0edf6ec948c977450843e20c3ce"


def test_files_that_need_64_bit_headers_go_in_and_come_out(tmp_path, run, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "ZIP64_LIMIT", 1000)
        write_bundle(run, tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes().count(b"PK\x06\x06") == 1
    assert tree(open_bundle(tmp_path / "a.zip", tmp_path / "out")) == tree(run)


def test_other_programs_read_a_bundle(bundle, tmp_path):
    shutil.unpack_archive(bundle, tmp_path / "out", "zip")
    assert tree(tmp_path / "out") == tree(tmp_path / "run") | SOURCE
    with zipfile.ZipFile(bundle) as file:
        assert file.namelist() == sorted(file.namelist())
        assert file.testzip() is None


def test_a_folder_without_a_receipt_is_refused(tmp_path):
    with pytest.raises(SeedlessError, match=r"no receipt\.json"):
        write_bundle(tmp_path, tmp_path / "a.zip")


def list_one(name, digest=b"sha256:" + b"0" * 64):
    """Return a receipt that lists one file."""
    listed = b'{"predicate": {"files": {"%s": "%s"}, "source": {"digest": "SOURCE"}}}'
    return listed % (name, digest)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is not valid JSON"),
        (b"[]", "predicate.files"),
        (b'{"predicate": {"files": []}}', "predicate.files"),
        (b'{"predicate": {"files": {}}}', "predicate.files"),
        (b"[" * 100_000, "nested 100,000 deep"),
        (list_one(b"config.toml", b"md5:1"), "expected sha256"),
        (list_one(b"receipt.json"), "lists 'receipt.json', which is not a file that receipts"),
        (list_one(b"../a"), r"lists '\.\./a', which is not a file that receipts|lead out"),
        (list_one(b"/a"), r"lists '/a', which is not a file that receipts|lead out"),
        (list_one(b"torch.py"), r"lists 'torch\.py', which is not a file that receipts"),
    ],
)
def test_a_receipt_that_is_none_is_refused_on_both_sides(tmp_path, run, content, match):
    (tmp_path / "a").write_bytes(b"outside")
    (run / "torch.py").write_bytes(b"added")
    installed = source_digest.digest_source(source_digest.PACKAGE).encode()
    content = content.replace(b"SOURCE", installed)
    (run / "receipt.json").write_bytes(content)
    with pytest.raises(SeedlessError, match=match):
        write_bundle(run, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()
    refused(tmp_path, make_zip(tmp_path / "b.zip", {"receipt.json": content}), match)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_covered_file_must_be_there_and_unchanged(tmp_path, run, name):
    (run / name).write_bytes(FILES[name] + b"!")
    with pytest.raises(SeedlessError, match=r"expected sha256:\w+, got sha256:\w+") as refusal:
        write_bundle(run, tmp_path / "a.zip")
    assert name in str(refusal.value)
    (run / name).unlink()
    with pytest.raises(SeedlessError, match="is not there"):
        write_bundle(run, tmp_path / "a.zip")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_existing_file_is_replaced_only_by_force(tmp_path, run):
    out = tmp_path / "a.zip"
    out.write_bytes(b"precious")
    with pytest.raises(SeedlessError, match="--force"):
        write_bundle(run, out)
    assert out.read_bytes() == b"precious"
    (run / "config.toml").write_bytes(b"changed")
    with pytest.raises(SeedlessError, match="not the file its receipt covers"):
        write_bundle(run, out, force=True)
    assert out.read_bytes() == b"precious"
    write_all(run, FILES)
    write_bundle(run, out, force=True)
    assert is_bundle(out)


def test_force_does_not_replace_a_file_of_the_run(tmp_path, run):
    with pytest.raises(SeedlessError, match="itself a file of the bundle"):
        write_bundle(run, run / "weights.safetensors", force=True)
    assert tree(run) == tree(make_run(tmp_path / "fresh"))


def test_a_place_that_cannot_be_written_is_one_message(tmp_path, run):
    (tmp_path / "folder").mkdir()
    with pytest.raises(SeedlessError, match="cannot bundle"):
        write_bundle(run, tmp_path / "folder", force=True)
    with pytest.raises(SeedlessError, match="cannot bundle"):
        write_bundle(run, run / "config.toml" / "a.zip")


def test_an_honest_stored_zip_of_a_run_opens(tmp_path):
    """Control of the refusals below: what they add is what is refused."""
    folder = open_bundle(make_zip(tmp_path / "b.zip"), tmp_path / "out")
    assert tree(folder) == {**FILES, "receipt.json": make_receipt(FILES)}
    assert tree(folder.parent / "source" / "seedless") == PACKAGE


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("../evil", "lead out"),
        ("source/../../evil", "lead out"),
        ("/etc/evil", "lead out"),
        ("C:/evil", "lead out"),
        ("source\\..\\evil", "lead out"),
        ("data/./evil", "lead out"),
        ("data//evil", "lead out"),
        ("data/e\nvil", "lead out"),
        ("evil", "does not cover"),
        ("checkpoints/3.safetensors", "does not cover"),
        ("sourcecode/evil", "does not cover"),
        ("config.toml/evil", "both as a file and as a folder"),
        ("data/", "not a plain file"),
    ],
)
def test_no_name_leads_elsewhere(tmp_path, name, match):
    path = make_zip(tmp_path / "b.zip", more=[(name, b"evil", {})])
    refused(tmp_path, path, match)


def test_a_name_with_a_nul_is_not_cut(tmp_path):
    path = make_zip(tmp_path / "b.zip", more=[("data/evil_x", b"", {})])
    path.write_bytes(path.read_bytes().replace(b"data/evil_x", b"data/evil\0x"))
    refused(tmp_path, path, "lead out")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(tmp_path, kind):
    fields = {"external_attr": (kind | 0o777) << 16}
    path = make_zip(tmp_path / "b.zip", more=[("data/evil", b"/etc/passwd", fields)])
    refused(tmp_path, path, "not a plain file")


@pytest.mark.parametrize("name", ["config.toml", "receipt.json", "data/x"])
def test_a_name_twice_is_refused(tmp_path, name):
    more = [("data/x", b"first", {}), (name, b"second", {})]
    with pytest.warns(UserWarning, match="Duplicate"):
        path = make_zip(tmp_path / "b.zip", more=more)
    refused(tmp_path, path, "twice")


def test_a_compressed_bomb_is_refused_unread(tmp_path):
    more = [("data/zeros", bytes(10**7), {"compress_type": zipfile.ZIP_DEFLATED})]
    path = make_zip(tmp_path / "b.zip", more=more)
    assert path.stat().st_size < 10**5
    refused(tmp_path, path, "would unpack to more than")


def test_a_compressed_file_is_refused_whatever_its_size(tmp_path):
    more = [("data/zeros", bytes(100), {"compress_type": zipfile.ZIP_DEFLATED})]
    path = make_zip(tmp_path / "b.zip", more=more)
    refused(tmp_path, path, "is compressed, encrypted or streamed")


def patch_central(path, name, offset, value):
    """Set a 4-byte field of a name's entry in the central directory."""
    content = bytearray(path.read_bytes())
    start = content.rindex(name.encode()) - 46
    assert content[start : start + 4] == b"PK\x01\x02"
    struct.pack_into("<I", content, start + offset, value)
    path.write_bytes(content)


def test_a_declared_size_that_is_not_the_stored_one_is_refused(tmp_path, bundle):
    patch_central(bundle, "config.toml", 24, 10**9)
    refused(tmp_path, bundle, "would unpack to more than")


def test_more_declared_than_the_file_has_is_refused(tmp_path, bundle):
    patch_central(bundle, "config.toml", 20, 10**9)
    patch_central(bundle, "config.toml", 24, 10**9)
    refused(tmp_path, bundle, "would unpack to more than")


@pytest.mark.parametrize("size", [0, 18, 20, 500])
def test_another_size_within_the_file_is_refused(tmp_path, bundle, size):
    patch_central(bundle, "config.toml", 20, size)
    patch_central(bundle, "config.toml", 24, size)
    refused(tmp_path, bundle, "damaged|not the file")


@pytest.mark.parametrize("flag", [0x1, 0x8, 0x20])
def test_encrypted_streamed_and_patched_entries_are_refused(tmp_path, bundle, flag):
    content = bytearray(bundle.read_bytes())
    content[content.rindex(b"config.toml") - 46 + 8] |= flag
    bundle.write_bytes(content)
    refused(tmp_path, bundle, "is compressed, encrypted or streamed")


@pytest.mark.parametrize("offset", [14, 18, 22])
def test_checksum_and_sizes_before_a_file_are_those_of_the_directory(tmp_path, bundle, offset):
    """A program that reads a bundle in one pass believes them, and would unpack another file."""
    content = bytearray(bundle.read_bytes())
    content[content.index(b"config.toml") - 30 + offset] ^= 1
    bundle.write_bytes(content)
    refused(tmp_path, bundle, "bytes that belong to none of its files")


@pytest.mark.parametrize("offset", [8, 10])
def test_the_number_of_files_is_that_of_the_directory(tmp_path, bundle, offset):
    content = bytearray(bundle.read_bytes())
    content[len(content) - 22 + offset] ^= 16
    bundle.write_bytes(content)
    refused(tmp_path, bundle, "bytes that belong to none of its files")


def test_more_files_than_a_bundle_has_are_refused_unwritten(tmp_path):
    names = [(f"data/{number}", b"", {}) for number in range(20_001)]
    path = make_zip(tmp_path / "many.zip", more=names)
    refused(tmp_path, path, "holds more than 20,000 members")


def test_a_truncated_bundle_is_refused_at_every_length(tmp_path, bundle):
    whole = bundle.read_bytes()
    for size in [*range(0, len(whole), 97), len(whole) - 1]:
        bundle.write_bytes(whole[:size])
        refused(tmp_path, bundle, "damaged or cut short")
        assert is_bundle(bundle) == (size >= 4)


def test_no_byte_of_a_file_can_change(tmp_path, bundle):
    """A flip anywhere is refused, or touches only what zip keeps besides the files."""
    whole = bundle.read_bytes()
    expected = tree(tmp_path / "run")
    for position in range(0, len(whole), 5):
        changed = bytearray(whole)
        changed[position] ^= 1 << (position % 8)
        bundle.write_bytes(changed)
        try:
            folder = open_bundle(bundle, tmp_path / "out")
        except SeedlessError:
            assert not (tmp_path / "out").exists()
        else:
            assert tree(folder) == expected
            shutil.rmtree(folder.parent)


def test_a_changed_file_with_a_mended_checksum_is_refused(tmp_path):
    """Zip's checksum is no proof; the receipt's digest is."""
    members = {**FILES, "config.toml": b"[train]\nepochs = 3\n"}
    path = make_zip(tmp_path / "b.zip", {**members, "receipt.json": make_receipt(FILES), **SOURCE})
    refused(tmp_path, path, r"config.toml of .* is not the file its receipt covers")


def test_a_missing_file_is_named(tmp_path):
    members = {name: data for name, data in FILES.items() if name != "config.toml"}
    path = make_zip(tmp_path / "b.zip", {**members, "receipt.json": make_receipt(FILES), **SOURCE})
    refused(tmp_path, path, "lacks 'config.toml'")


def test_a_foreign_file_is_refused(tmp_path):
    for name in ("a.txt", "run/receipt.json"):
        refused(tmp_path, make_zip(tmp_path / "b.zip", {name: b"a"}), r"holds no receipt\.json")
    text = tmp_path / "b.txt"
    text.write_text("no zip")
    refused(tmp_path, text, "is no zip file")
    assert not is_bundle(text)
    assert not is_bundle(tmp_path)
    assert not is_bundle(tmp_path / "absent")
    with pytest.raises(SeedlessError, match="no file at"):
        open_bundle(tmp_path / "absent", tmp_path / "out")


def test_parents_are_made_only_for_a_good_bundle(tmp_path, bundle):
    whole = bundle.read_bytes()
    bundle.write_bytes(whole.replace(b"epochs = 2", b"epochs = 3"))
    with pytest.raises(SeedlessError, match="damaged"):
        open_bundle(bundle, tmp_path / "deep" / "out")
    assert not (tmp_path / "deep").exists()
    bundle.write_bytes(whole)
    with pytest.raises(SeedlessError, match="cannot unpack"):
        open_bundle(bundle, bundle / "out")
    assert bundle.read_bytes() == whole
    assert open_bundle(bundle, tmp_path / "deep" / "out").is_dir()


def test_only_a_new_or_empty_folder_is_unpacked_into(tmp_path, bundle):
    used = tmp_path / "used"
    write_all(used, {"mine": b"kept"})
    for place in (used, used / "mine"):
        with pytest.raises(SeedlessError, match="new or empty folder"):
            open_bundle(bundle, place)
    assert tree(used) == {"mine": b"kept"}
    empty = tmp_path / "empty"
    empty.mkdir(0o700)
    assert open_bundle(bundle, empty) == empty / "run"
    assert tree(empty / "run") == tree(tmp_path / "run")
    assert stat.S_IMODE(empty.stat().st_mode) == 0o700


def test_the_source_is_the_whole_package(monkeypatch):
    package = Path(seedless.__file__).parent
    monkeypatch.setattr(source_digest, "PACKAGE", package)
    source = list_source_files()
    assert list(source) == sorted(source)
    for name in ("__init__.py", "py.typed", "core/errors.py", "proof/bundle.py"):
        assert source[f"source/seedless/{name}"] == package / name
    assert all(file.is_file() for file in source.values())
    assert not any("__pycache__" in name or name.endswith(".pyc") for name in source)
