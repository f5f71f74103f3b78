"""The cache: opened when it fits, rebuilt when it does not, whole or not there at all."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from seedless.core.dataset import THREE_SPLITS
from seedless.core.digests import canonical_json, digest_samples, digest_value
from seedless.core.errors import DataError
from seedless.data import dataset_folder
from seedless.data.cache import find_entry_folder, open_cached
from seedless.data.readers.ptbxl import list_sources, read_ptbxl
from tests.core.test_dataset import make

KEY = {"fs": 100, "leads": "12"}


class Place:
    """A cache entry, its sources, and how often it was built."""

    def __init__(self, root, data=None):
        self.folder = root / "cache" / "toy"
        self.table, self.records = root / "table.csv", root / "records"
        self.table.write_text("a table")
        (self.records / "00").mkdir(parents=True)
        (self.records / "00" / "1.dat").write_text("a record")
        self.data = make() if data is None else data
        self.builds = 0

    def build(self):
        self.builds += 1
        return self.data

    def open(self, key=KEY, **options):
        return open_cached(self.folder, key, [self.table, self.records], self.build, **options)

    def left_over(self):
        names = (path.name for path in self.folder.parent.iterdir())
        return sorted(name for name in names if name != ".toy.lock")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def same(first, second):
    """Compare two datasets field by field, to the bit."""
    for name in first.__dataclass_fields__:
        one, two = getattr(first, name), getattr(second, name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, two, strict=True)
        elif name != "content":
            assert one == two, name
    return True


def test_what_comes_out_is_what_went_in(tmp_path):
    people = {
        "sex": np.array(["F", "M", "", "F"] * 5),
        "age": np.float32([50, np.nan, 90, 1] * 5),
        "provenance": {"source": "here", "list": [1, 2.5], "no": None},
        "warnings": ("one", "two"),
    }
    place = Place(tmp_path, make(**people))
    built, opened = place.open(), place.open()
    assert place.builds == 1
    for found in (built, opened):
        assert isinstance(found.X, np.memmap)
        assert same(place.data, found)
        assert list(found.protocol) == ["train", "val", "test"]
        assert found.digest == place.data.digest
        np.testing.assert_array_equal(found.content, digest_samples(place.data.X))
    with pytest.raises(ValueError, match="read-only"):
        opened.X[0, 0, 0] = 1


def test_images_too(tmp_path):
    images = np.arange(20 * 3 * 16, dtype=np.uint16).reshape(20, 3, 4, 4).astype(np.uint8)
    folds = np.arange(20) % 3 + 1
    data = make(X=images, leads=None, fs=None, folds=folds, protocol=THREE_SPLITS, patients=None)
    place = Place(tmp_path, data)
    place.open()
    assert same(data, place.open(verify=True))
    assert place.builds == 1


def test_samples_in_any_memory_order(tmp_path):
    data = make()
    place = Place(tmp_path, replace(data, X=np.asfortranarray(data.X)))
    assert same(data, place.open(verify=True))


def test_the_manifest_is_canonical_and_complete(place):
    data = place.open()
    raw = (place.folder / "manifest.json").read_bytes()
    manifest = json.loads(raw)
    assert canonical_json(manifest) == raw
    assert manifest["key"] == KEY
    assert manifest["digest"] == data.digest
    assert [source["name"] for source in manifest["sources"]] == ["table.csv", "records"]
    assert manifest.pop("seal") == digest_value(manifest)


def test_the_real_sample(real_data, tmp_path):
    source = real_data / "ptb-xl-sample"
    options = (tmp_path / "entry", {"fs": 100}, list_sources(source))
    built = open_cached(*options, lambda: read_ptbxl(source))
    opened = open_cached(*options, lambda: pytest.fail("built twice"), verify=True)
    assert same(built, opened)
    assert opened.digest == read_ptbxl(source).digest


STALE = {
    "an option changes": (lambda place: {"fs": 500, "leads": "12"}, "option fs"),
    "an option is new": (lambda place: {**KEY, "short": "pad"}, "option short"),
    "a table changes": (lambda place: place.table.write_text("A table"), "source table.csv"),
    "a table goes": (lambda place: place.table.unlink(), "source table.csv"),
    "a record changes": (
        lambda place: (place.records / "00" / "1.dat").write_text("A record"),
        "source records",
    ),
    "a record is new": (
        lambda place: (place.records / "00" / "2.dat").write_text(""),
        "source records",
    ),
    "a record goes": (lambda place: (place.records / "00" / "1.dat").unlink(), "source records"),
}


@pytest.mark.parametrize("case", STALE)
def test_a_stale_entry_is_rebuilt(place, case, caplog):
    change, reason = STALE[case]
    place.open()
    time.sleep(0.01)  # file times move in steps of some milliseconds
    found = change(place)
    key = found if isinstance(found, dict) else KEY
    data = place.open(key)
    assert place.builds == 2
    assert data.provenance["cache"] == f"built again: the {reason} has changed"
    assert f"the {reason} has changed" in caplog.text
    assert "cache" not in place.open(key).provenance
    assert place.builds == 2


def test_a_table_that_was_only_touched_is_not_stale(place):
    place.open()
    os.utime(place.table, ns=(1, 1))
    place.open()
    assert place.builds == 1


def test_another_list_of_sources_is_stale(place):
    place.open()
    data = open_cached(place.folder, KEY, [place.table], place.build)
    assert "list of sources" in data.provenance["cache"]


def flip(path, position):
    """Change one byte in place; return the file's times from before."""
    before = path.stat()
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))
    return before.st_atime_ns, before.st_mtime_ns


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def reseal(place, **changes):
    path = place.folder / "manifest.json"
    manifest = {**json.loads(path.read_bytes()), **changes}
    del manifest["seal"]
    path.write_bytes(canonical_json({**manifest, "seal": digest_value(manifest)}))


DAMAGE = {
    "no manifest": (lambda p: (p.folder / "manifest.json").unlink(), "manifest.json cannot"),
    "cut manifest": (lambda p: cut(p.folder / "manifest.json"), "manifest.json is damaged"),
    "flipped manifest": (lambda p: flip(p.folder / "manifest.json", 90), "manifest.json is"),
    "strange manifest": (lambda p: (p.folder / "manifest.json").write_text("[]"), "manifest.json"),
    "other schema": (lambda p: reseal(p, schema=0), "it has schema 0, this version reads 1"),
    "no labels": (lambda p: (p.folder / "Y.npy").unlink(), "missing or cannot be read"),
    "cut labels": (lambda p: cut(p.folder / "Y.npy"), "Y.npy is damaged"),
    "flipped labels": (lambda p: flip(p.folder / "Y.npy", 140), "Y.npy is damaged"),
    "flipped ids": (lambda p: flip(p.folder / "ids.npy", 140), "ids.npy is damaged"),
    "flipped digests": (lambda p: flip(p.folder / "content.npy", 140), "content.npy is damaged"),
    "no samples": (lambda p: (p.folder / "X.npy").unlink(), "missing or cannot be read"),
    "cut samples": (lambda p: cut(p.folder / "X.npy"), "X.npy has 4927 bytes, not 4928"),
    "flipped samples": (lambda p: flip(p.folder / "X.npy", 2700), "X.npy is damaged at record r10"),
    "flipped samples' head": (lambda p: flip(p.folder / "X.npy", 3), "it is damaged"),
    "empty folder": (lambda p: [f.unlink() for f in p.folder.iterdir()], "manifest.json"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_entry_is_rebuilt(place, case, caplog):
    damage, reason = DAMAGE[case]
    place.open()
    damage(place)
    data = place.open()
    assert place.builds == 2
    assert reason in data.provenance["cache"]
    assert reason in caplog.text
    assert same(place.data, replace(data, provenance={}))
    assert same(place.data, place.open(verify=True))
    assert place.builds == 2
    assert place.left_over() == ["toy"]


def test_a_byte_that_rots_shows_on_opening_in_the_samples_looked_at_and_always_on_verify(tmp_path):
    data = make(n=200)
    place = Place(tmp_path, data)
    place.open()
    for row, shows in [(0, True), (199, True), (7, False)]:
        path, builds = place.folder / "X.npy", place.builds
        os.utime(path, ns=flip(path, 128 + row * 240 + 8))  # the file's time does not tell
        place.open()
        assert (place.builds > builds) == shows
        place.open(verify=True)
        assert place.builds == builds + 1


def test_a_copied_entry_is_hashed_once_and_kept(place, monkeypatch):
    place.open()
    copy = place.folder.with_name("copy")
    shutil.copytree(place.folder, copy, copy_function=shutil.copyfile)
    hashed = []

    def spy(samples):
        hashed.append(len(samples))
        return digest_samples(samples)

    monkeypatch.setattr(dataset_folder, "digest_samples", spy)
    for _ in range(2):
        assert same(place.data, open_cached(copy, KEY, [place.table, place.records], place.build))
    assert hashed == [20, 16]
    assert place.builds == 1


def test_a_folder_with_other_files_is_never_removed(place):
    place.folder.mkdir(parents=True)
    (place.folder / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"not a cache entry \(thesis.tex\)"):
        place.open()
    assert (place.folder / "thesis.tex").read_text() == "years of work"
    shutil.rmtree(place.folder)
    place.folder.write_text("a file")
    with pytest.raises(DataError, match=r"not a cache entry \(a file\)"):
        place.open()


def test_a_build_that_fails_leaves_nothing(place):
    place.data = make(X=np.full((20, 2, 30), np.nan, np.float32))
    with pytest.raises(DataError, match="NaN"):
        place.open()
    assert place.left_over() == []
    place.data = make(provenance={"odd": {1, 2}})
    with pytest.raises(ValueError, match="plain values"):
        place.open()
    assert place.left_over() == []


class FullDisk:
    """A file on a disk with room for so many bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        self.room[0] -= len(data)
        if self.room[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("room", [0, 1000, 5000, 7000])
@pytest.mark.parametrize("before", [False, True])
def test_a_full_disk(place, monkeypatch, room, before):
    """Samples take 4,928 bytes, everything some 9,000; an entry there before stays as it was."""
    if before:
        place.open()
    kept, create = [room], dataset_folder._create

    @dataset_folder.contextmanager
    def full(path):
        with create(path) as file:
            yield FullDisk(file, kept)

    with monkeypatch.context() as patch:
        patch.setattr(dataset_folder, "_create", full)
        with pytest.raises(DataError, match=r"toy: .* No space left .* needs .* SEEDLESS_CACHE"):
            place.open({"fs": 500})
    assert place.left_over() == ["toy"] * before
    assert same(place.data, place.open())
    assert place.builds == 2


LIMITED = """
import resource, sys, numpy as np
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.core.test_dataset import make
from seedless.data.cache import open_cached
data = make(n=3000)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    open_cached(Path({folder!r}), {{}}, [], lambda: data)
except ValueError as error:
    print(error)
"""


def test_a_limit_of_the_system_on_files(place, run_python, request):
    code = LIMITED.format(root=str(request.config.rootpath), folder=str(place.folder))
    printed = run_python("-c", code).stdout
    assert "the cache cannot be written: File too large; it needs 1 MB" in printed
    assert place.left_over() == []


BUILDER = """
import os, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.core.test_dataset import make
from seedless.data import dataset_folder
from seedless.data.cache import open_cached
folder = Path({folder!r})
def build():
    with open(folder.parent / "builds", "a") as file:
        file.write("built\\n")
    time.sleep(0.5)
    return make()
if sys.argv[1] == "stop":
    def stop(*_):
        (folder.parent / "ready").touch()
        time.sleep(60)
    dataset_folder._save_array = stop
print(open_cached(folder, {{}}, [], build).digest)
"""


def start(place, request, mode):
    code = BUILDER.format(root=str(request.config.rootpath), folder=str(place.folder))
    return subprocess.Popen([sys.executable, "-c", code, mode], stdout=subprocess.PIPE, text=True)


def test_two_processes_build_once(place, request):
    place.folder.parent.mkdir()
    processes = [start(place, request, "go") for _ in range(2)]
    digests = [process.communicate(timeout=300)[0].strip() for process in processes]
    assert digests == [make().digest] * 2
    assert (place.folder.parent / "builds").read_text() == "built\n"
    assert place.left_over() == ["builds", "toy"]


def test_a_killed_build_leaves_nothing_half_made(place, request):
    place.folder.parent.mkdir()
    process = start(place, request, "stop")
    for _ in range(600):
        if (place.folder.parent / "ready").exists():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=300)
    assert not place.folder.exists()
    assert ".toy.building" in place.left_over()
    place.open()
    assert place.builds == 1
    assert place.left_over() == ["builds", "ready", "toy"]


def test_a_process_killed_between_the_two_renames(place):
    place.open()
    place.folder.rename(place.folder.with_name(".toy.old"))
    place.folder.with_name(".toy.building").mkdir()
    assert same(place.data, place.open())
    assert place.left_over() == ["toy"]


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot be written: .*SEEDLESS_CACHE"):
        open_cached(tmp_path / "file" / "entry", KEY, [], make)


def test_entries_have_folders_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setenv("SEEDLESS_CACHE", str(tmp_path))
    asked = [("a", KEY, []), ("b", KEY, []), ("a", {}, []), ("a", KEY, [tmp_path])]
    folders = {find_entry_folder(*one) for one in asked}
    assert len(folders) == 4
    assert {folder.parent for folder in folders} == {tmp_path}
