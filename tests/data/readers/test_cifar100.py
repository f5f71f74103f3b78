"""CIFAR-100: files in its own layout, as Python 2 and 3 write them; pickles that are not data."""

import builtins
import gzip
import io
import os
import pickle
import tarfile
from typing import ClassVar

import numpy as np
import pytest

from seedless.core.errors import DataError
from seedless.data.readers.cifar100 import read_cifar100, unpickle

NAMES = [f"class_{number:02d}".encode() for number in range(100)]


class Python2Pickler(pickle._Pickler):
    """Writes bytes and text as Python 2 wrote its strings, as in the published files."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_string(self, value):
        data = value if isinstance(value, bytes) else value.encode("latin1")
        self.write(pickle.BINSTRING + len(data).to_bytes(4, "little") + data)
        self.memoize(value)

    def save_global(self, value, name=None):
        module = value.__module__.replace("numpy._core", "numpy.core")
        self.write(pickle.GLOBAL + f"{module}\n{value.__name__}\n".encode())

    dispatch[bytes] = save_string
    dispatch[str] = save_string
    dispatch[type] = save_global
    dispatch[type(pickle.dumps)] = save_global


def dump(value, old=False):
    if not old:
        return pickle.dumps(value, protocol=2)
    stream = io.BytesIO()
    Python2Pickler(stream, protocol=2).dump(value)
    return stream.getvalue()


def part(count, shift=0):
    ramp = np.arange(count * 3072, dtype=np.int64)
    data = ((ramp * 31 + ramp // 3072 * 7 + shift) % 253).astype(np.uint8).reshape(count, 3072)
    return {
        b"filenames": [f"image_{row + shift:05d}.png".encode() for row in range(count)],
        b"batch_label": b"training batch 1 of 1",
        b"fine_labels": [(row * 3 + shift) % 100 for row in range(count)],
        b"coarse_labels": [0] * count,
        b"data": data,
    }


def parts(train=60, test=20):
    return {
        "train": part(train),
        "test": part(test, shift=90),
        "meta": {b"fine_label_names": NAMES, b"coarse_label_names": []},
    }


def write_folder(folder, content, old=False):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in content.items():
        (folder / name).write_bytes(value if isinstance(value, bytes) else dump(value, old))
    return folder


def write_archive(path, content, old=False, prefix="cifar-100-python/"):
    with tarfile.open(path, "w:gz") as archive:
        for name, value in content.items():
            data = value if isinstance(value, bytes) else dump(value, old)
            member = tarfile.TarInfo(prefix + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize("old", [True, False])
def test_archive_and_folder_are_read(tmp_path, old):
    content = parts()
    path = write_archive(tmp_path / "cifar-100-python.tar.gz", content, old)
    data = read_cifar100(path, validation=6)
    assert (data.X.shape, data.X.dtype) == ((80, 3, 32, 32), np.uint8)
    assert [len(data.rows(split)) for split in ("train", "val", "test")] == [54, 6, 20]
    assert (data.task, len(data.classes), data.classes[7]) == ("multi-class", 100, "class_07")
    image = content["train"][b"data"][4]
    np.testing.assert_array_equal(data.X[4, 1].ravel(), image[1024:2048])  # green comes second
    labels = content["train"][b"fine_labels"] + content["test"][b"fine_labels"]
    np.testing.assert_array_equal(data.Y.argmax(axis=1), labels)
    assert "this is not the official file" in data.warnings[0]
    folder = write_folder(tmp_path / "cifar-100-python", content, old)
    for place in (folder, tmp_path):
        assert read_cifar100(place, validation=6).digest == data.digest


def test_validation_is_picked_by_content_whatever_the_storage_order(tmp_path):
    content = parts()
    content["train"][b"data"][11] = content["train"][b"data"][12]  # equal images, other labels
    first = read_cifar100(write_folder(tmp_path / "a", content), validation=9)
    order = [row * 7 % 60 for row in range(60)]
    for key in (b"fine_labels", b"coarse_labels", b"filenames"):
        content["train"][key] = [content["train"][key][row] for row in order]
    content["train"][b"data"] = content["train"][b"data"][order]
    second = read_cifar100(write_folder(tmp_path / "b", content), validation=9)
    assert first.digest == second.digest
    picked = [set(data.ids[data.rows("val")].tolist()) for data in (first, second)]
    assert picked[0] == picked[1]
    held, kept = (first.digests[first.rows(split)].tolist() for split in ("val", "train"))
    assert max(held) <= min(kept)


class Run:
    """A pickle of this runs a command when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


class Evaluate:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (builtins.eval, (f"__import__('pathlib').Path({str(self.path)!r}).touch()",))


@pytest.mark.parametrize(("trap", "name"), [(Run, r"posix\.system"), (Evaluate, r"eval")])
@pytest.mark.parametrize("where", ["train", "meta"])
def test_a_malicious_pickle_is_refused_and_not_run(tmp_path, trap, name, where):
    mark, control = tmp_path / "was-run", tmp_path / "control"
    pickle.loads(dump(trap(control)))
    assert control.exists()  # so the trap works where nothing stops it
    content = parts()
    content[where][b"batch_label"] = trap(mark)
    path = write_archive(tmp_path / "cifar-100-python.tar.gz", content)
    with pytest.raises(DataError, match=rf"\({where}\): the pickle asks for .*{name}.*refused"):
        read_cifar100(path, validation=6)
    assert not mark.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"cnumpy.core.multiarray\nscalar\n.",
        b"cnumpy.testing\nrundocs\n.",
        b"cbuiltins\ngetattr\n.",
        b"c__main__\nx\n.",
        b"cnumpy\nload\n.",
        b"\x80\x04\x8c\x05numpy\x94\x8c\x0bndarray.sum\x94\x93\x94.",
        b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.",
    ],
)
def test_every_other_name_is_refused(data):
    with pytest.raises(DataError, match="refused"):
        unpickle(data, "a file")


def without(content, where, key):
    return {**content, where: {k: v for k, v in content[where].items() if k != key}}


def changed(content, where, key, value):
    return {**content, where: {**content[where], key: value}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: without(c, "train", b"fine_labels"), r"\(train\): fine_labels is missing"),
        (lambda c: without(c, "test", b"data"), r"\(test\): data is missing"),
        (lambda c: without(c, "meta", b"fine_label_names"), r"\(meta\): expected 100 fine_label"),
        (lambda c: changed(c, "meta", b"fine_label_names", NAMES[:99]), "expected 100"),
        (lambda c: changed(c, "train", b"fine_labels", [0] * 59), "expected 60 fine_labels"),
        (lambda c: changed(c, "train", b"fine_labels", [100] * 60), "from 0 to 99"),
        (lambda c: changed(c, "train", b"fine_labels", ["a"] * 60), "from 0 to 99"),
        (lambda c: changed(c, "train", b"data", np.zeros((60, 3))), r"\(n, 3072\).*float64"),
        (lambda c: changed(c, "train", b"data", [1]), r"\(n, 3072\), uint8; found <class 'list'>"),
        (lambda c: {**c, "train": b"\x80\x02}"}, r"\(train\): not a readable pickle"),
        (lambda c: {**c, "train": b""}, r"\(train\): not a readable pickle"),
        (lambda c: {**c, "train": dump([1])}, "expected a dictionary, found list"),
        (lambda c: {k: v for k, v in c.items() if k != "test"}, "test is missing from the archive"),
    ],
)
def test_damaged_parts_are_named(tmp_path, change, message):
    path = write_archive(tmp_path / "cifar-100-python.tar.gz", change(parts()))
    with pytest.raises(DataError, match=message):
        read_cifar100(path, validation=6)


def test_archives_that_are_not_whole_or_not_what_they_seem(tmp_path):
    path = write_archive(tmp_path / "cifar-100-python.tar.gz", parts())
    whole = path.read_bytes()
    for damaged in (b"", b"text", whole[:3000], gzip.compress(b"no tar in here")):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"not a readable archive|missing from the archive"):
            read_cifar100(path)
    outside = write_archive(tmp_path / "outside.tar.gz", parts(), prefix="../")
    with pytest.raises(DataError, match="train, test, meta is missing from the archive"):
        read_cifar100(outside)
    linked = tmp_path / "linked.tar.gz"
    with tarfile.open(linked, "w:gz") as archive:
        for name in ("train", "test", "meta"):
            member = tarfile.TarInfo(f"cifar-100-python/{name}")
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/hostname"
            archive.addfile(member)
    with pytest.raises(DataError, match="missing from the archive"):
        read_cifar100(linked)


def test_places_without_the_set(tmp_path):
    with pytest.raises(DataError, match=r"no such file; expected cifar-100-python\.tar\.gz"):
        read_cifar100(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_cifar100(tmp_path / "absent.tar.gz")
    folder = write_folder(tmp_path / "part", {"train": part(60)})
    with pytest.raises(DataError, match="test: cannot be read: No such file"):
        read_cifar100(folder)
    folder = write_folder(tmp_path / "whole", parts())
    with pytest.raises(DataError, match="cannot hold out 5000 of 60"):
        read_cifar100(folder)
