"""A packed dataset from someone else: any manifest is read as it must be, or refused in words."""

import json
import os
import shutil

import numpy as np
import pytest

from seedless.core.digests import canonical_json, digest_value
from seedless.core.errors import DataError
from seedless.core.files import hash_file
from seedless.data.dataset_folder import read_packed, write_packed
from tests.core.test_dataset import make
from tests.forgery import list_leaves, list_mappings, look_up, remove, replace

WRONG = [
    None,
    True,
    7,
    -1,
    1e300,
    "text",
    "",
    [],
    ["a"],
    [[1]],
    {},
    {"a": 1},
    "../x",
    "/etc/passwd",
]


@pytest.fixture
def packed(tmp_path):
    write_packed(tmp_path / "data", make(sex=np.array(["F", "M"] * 10), warnings=("one",)))
    return tmp_path / "data"


def read_manifest(folder):
    manifest = json.loads((folder / "manifest.json").read_bytes())
    del manifest["seal"]
    return manifest


def write_manifest(folder, manifest):
    """Write a manifest with the digest it then needs."""
    sealed = {**manifest, "seal": digest_value(manifest)}
    (folder / "manifest.json").write_bytes(canonical_json(sealed))


def list_places(value, path=()):
    """Yield the path of every value within plain values, lists and mappings too."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else items:
        yield from list_places(item, (*path, key))


def is_free(path, value):
    """Whether a dataset may have this value there: texts for people, facts, a file's time.

    A split may have no folds here: the configuration of a run decides which it has.
    """
    if path[:2] == ("values", "provenance"):
        return len(path) > 2 or isinstance(value, dict)
    if path == ("values", "warnings"):
        return value in ([], ["a"])
    if path in {("values", "name"), ("packed",), ("values", "warnings", 0)}:
        return isinstance(value, str)
    if path[0] == "protocol":
        return value == [] and (len(path) == 1 or path[2:] == (1,))
    return path == ("samples", "mtime_ns") and value == 7


def refuse(packed, *change):
    """Fail, and say after which change, unless a packed dataset is refused in words."""
    with pytest.raises(DataError, match="cannot be used"):
        pytest.fail(f"{len(read_packed(packed))} records were read after the change {change}")


def test_a_manifest_of_any_other_form_is_refused_and_no_crash(packed):
    manifest, refused = read_manifest(packed), 0
    for path in list_places(manifest):
        for wrong in WRONG:
            write_manifest(packed, replace(manifest, path, wrong))
            if is_free(path, wrong):
                assert len(read_packed(packed)) == 20
            elif wrong != look_up(manifest, path):
                refused += 1
                refuse(packed, path, wrong)
    assert refused > 300


def test_no_field_of_a_manifest_may_be_missing_or_new(packed):
    manifest = read_manifest(packed)
    optional = [("arrays", "sex"), ("arrays", "patients"), ("values", "warnings", 0)]
    for path in [*list_leaves(manifest), *list_mappings(manifest)]:
        if path and path[0] != "protocol" and "provenance" not in path and path not in optional:
            write_manifest(packed, remove(manifest, path))
            refuse(packed, "removed", path)
    for path in list_mappings(manifest):
        if "provenance" not in path:
            write_manifest(packed, replace(manifest, (*path, "added"), "something"))
            refuse(packed, "added", path)


@pytest.mark.parametrize("outside", ["../x", "absolute"])
def test_no_array_outside_the_folder_is_opened(packed, outside, tmp_path):
    """The file is there and has the digest that the manifest names; its name is refused."""
    shutil.copy(packed / "sex.npy", tmp_path / "x.npy")
    manifest = read_manifest(packed)
    digest = manifest["arrays"].pop("sex")
    manifest["arrays"][outside if outside == "../x" else str(tmp_path / "x")] = digest
    write_manifest(packed, manifest)
    with pytest.raises(DataError, match="expected a digest for each of Y, folds, ids, content"):
        read_packed(packed)


ARRAYS = {
    "a link": lambda path, array: (path.unlink(), path.symlink_to("/etc/hostname")),
    "a pipe": lambda path, array: (path.unlink(), os.mkfifo(path)),
    "other numbers": lambda path, array: np.save(path, np.arange(len(array), dtype="c16")),
    "objects": lambda path, array: np.save(path, np.array([{}] * len(array)), allow_pickle=True),
    "one less": lambda path, array: np.save(path, array[:-1]),
    "a larger shape than it holds": lambda path, array: path.write_bytes(
        path.read_bytes().replace(b"(20,", b"(99,")
    ),
    "empty": lambda path, array: path.write_bytes(b""),
}


@pytest.mark.parametrize("name", ["Y", "folds", "ids", "content", "sex", "X"])
@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_of_any_other_form_are_refused_and_no_crash(packed, name, case):
    path = packed / f"{name}.npy"
    ARRAYS[case](path, np.load(path))
    manifest = read_manifest(packed)
    if path.is_file() and name == "X":
        manifest["samples"]["bytes"] = path.stat().st_size
    elif path.is_file():
        manifest["arrays"][name] = hash_file(path)
    write_manifest(packed, manifest)
    with pytest.raises(DataError, match="cannot be used"):
        read_packed(packed)


def test_a_manifest_of_any_size_and_depth_is_refused(packed):
    for content in (b"[" * 10**6, b" " * (16 * 2**20 + 1), b'{"seal":' * 10**5, b"\xff", b""):
        (packed / "manifest.json").write_bytes(content)
        with pytest.raises(DataError, match="cannot be used"):
            read_packed(packed)
