"""MedMNIST: the real breast set, made sets of the other kinds, damaged files."""

import numpy as np
import pytest

from seedless.core.errors import DataError, UnknownNameError
from seedless.data.readers.medmnist import SETS, read_medmnist
from tests.peak import measure

SPLITS = ("train", "val", "test")


def made(name, sizes=(30, 8, 12), side=28):
    """Arrays as in the published file of a set, with so many pixels on a side."""
    entry = SETS[name]
    channels = entry.shape[0]
    arrays = {}
    for number, (split, n) in enumerate(zip(SPLITS, sizes, strict=True)):
        shape = (n, side, side) if channels == 1 else (n, side, side, channels)
        ramp = np.arange(np.prod(shape), dtype=np.int64)
        arrays[f"{split}_images"] = (
            ((ramp * (7 + number) + ramp // 784) % 251).astype(np.uint8).reshape(shape)
        )
        if entry.task == "multi-label":
            labels = np.arange(n * len(entry.classes)).reshape(n, -1) % 3 == 0
            labels[0] = False
        else:
            labels = (np.arange(n) % len(entry.classes))[:, None]
        arrays[f"{split}_labels"] = labels.astype(np.uint8)
    return arrays


def write(folder, name, arrays):
    path = folder / f"{name}.npz"
    np.savez_compressed(path, **arrays)
    return path


def write_large(folder, sizes):
    """Write a file of RetinaMNIST at 224 x 224, quickly: each image is the same ramp, shifted."""
    ramp = np.arange(224 * 224 * 3, dtype=np.uint64).astype(np.uint8).reshape(1, 224, 224, 3)
    arrays = {}
    for split, n in zip(SPLITS, sizes, strict=True):
        arrays[f"{split}_images"] = ramp + np.arange(n).astype(np.uint8)[:, None, None, None]
        arrays[f"{split}_labels"] = (np.arange(n) % 5).astype(np.uint8)[:, None]
    np.savez(folder / "retinamnist_224.npz", **arrays)
    return folder / "retinamnist_224.npz"


def test_the_real_breast_set(real_data):
    path = real_data / "medmnist" / "breastmnist.npz"
    data = read_medmnist(path)
    assert [len(data.rows(split)) for split in SPLITS] == [546, 78, 156]
    assert data.X.shape == (780, 1, 28, 28)
    assert (data.X.dtype, data.task, data.warnings) == (np.uint8, "multi-class", ())
    with np.load(path) as raw:
        np.testing.assert_array_equal(data.X[624:, 0], raw["test_images"])
        np.testing.assert_array_equal(data.Y[:546].argmax(axis=1), raw["train_labels"][:, 0])
    assert data.provenance["published_sizes"] is True
    assert "malignant" in data.classes[0]
    np.testing.assert_array_equal(data.content, data.take(np.arange(780)).digests)
    assert read_medmnist(path.parent).digest == data.digest


@pytest.mark.parametrize("name", sorted(SETS))
def test_every_set_has_its_form(tmp_path, name):
    assert len(SETS) == 7
    arrays = made(name)
    data = read_medmnist(write(tmp_path, name, arrays))
    entry = SETS[name]
    assert data.X.shape == (50, *entry.shape)
    assert data.Y.shape == (50, len(entry.classes))
    assert data.task == ("multi-label" if name == "chestmnist" else "multi-class")
    first = arrays["val_images"][3]
    picture = first if entry.shape[0] == 1 else first[:, :, 1]
    np.testing.assert_array_equal(data.X[33, min(1, entry.shape[0] - 1)], picture)
    assert "this is not the official file" in data.warnings[0]
    assert "30/8/12" in data.warnings[0]


def test_rows_of_zeros_are_answers_in_the_chest_set(tmp_path):
    data = read_medmnist(write(tmp_path, "chestmnist", made("chestmnist")))
    assert len(data.rows("train")) == 30
    assert not data.Y[0].any()


def test_storage_order_does_not_show(tmp_path):
    arrays = made("bloodmnist")
    arrays["train_images"][5] = arrays["train_images"][9]  # equal images, other labels
    digest = read_medmnist(write(tmp_path, "bloodmnist", arrays)).digest
    for split in SPLITS:
        n = len(arrays[f"{split}_images"])
        order = np.arange(n) * 7 % n if n % 7 else np.arange(n)[::-1]
        for what in ("images", "labels"):
            arrays[f"{split}_{what}"] = arrays[f"{split}_{what}"][order]
    data = read_medmnist(write(tmp_path, "bloodmnist", arrays))
    assert data.digest == digest
    assert sum(name.endswith("-2") for name in data.ids.tolist()) == 1
    arrays["val_images"][0, 0, 0] ^= 1
    assert read_medmnist(write(tmp_path, "bloodmnist", arrays)).digest != digest


class Trap:
    """Says so if it is ever unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def replace(arrays, key, value):
    return {**arrays, key: value}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: {k: v for k, v in a.items() if k != "val_labels"}, "val_labels is missing"),
        (lambda a: replace(a, "test_images", a["test_images"][:, :27]), r"\(test\): expected imag"),
        (lambda a: replace(a, "test_images", a["test_images"] / 255), "uint8; found float64"),
        (lambda a: replace(a, "test_images", a["test_images"][:0]), r"found uint8 of \(0, 28"),
        (lambda a: replace(a, "train_labels", a["train_labels"][1:]), r"\(train\): .*\(29, 1\)"),
        (lambda a: replace(a, "train_labels", a["train_labels"] + 5), "from 0 to 1, found 5 to 6"),
        (lambda a: replace(a, "train_labels", a["train_labels"] == 1), "found bool"),
        (lambda a: replace(a, "val_labels", np.array([Trap()] * 8)), "holds Python objects"),
        (lambda a: replace(a, "val_images", np.array([[Trap()]])), "holds Python objects"),
    ],
)
def test_damaged_arrays_are_named(tmp_path, change, message):
    path = write(tmp_path, "breastmnist", change(made("breastmnist")))
    with pytest.raises(DataError, match=rf"breastmnist\.npz.*{message}"):
        read_medmnist(path)


@pytest.mark.parametrize("keep", [0, 1, 40, 100_000, 300_000, 559_000])
def test_a_truncated_file_is_named(real_data, tmp_path, keep):
    whole = (real_data / "medmnist" / "breastmnist.npz").read_bytes()
    path = tmp_path / "breastmnist.npz"
    path.write_bytes(whole[:keep])
    with pytest.raises(DataError, match=r"breastmnist\.npz: .*this is no \.npz file"):
        read_medmnist(path)


def test_a_flipped_bit_is_noticed(real_data, tmp_path):
    damaged = bytearray((real_data / "medmnist" / "breastmnist.npz").read_bytes())
    damaged[200_000] ^= 16
    path = tmp_path / "breastmnist.npz"
    path.write_bytes(damaged)
    with pytest.raises(DataError, match=r"breastmnist\.npz: .*this is no \.npz file"):
        read_medmnist(path)


def test_other_files_and_names(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        read_medmnist(tmp_path / "breastmnist.npz")
    with pytest.raises(DataError, match="the file of one set here, found none"):
        read_medmnist(tmp_path)
    path = write(tmp_path, "mine", made("breastmnist"))
    assert read_medmnist(path).name == "breastmnist"  # from its arrays
    with pytest.raises(UnknownNameError, match="MedMNIST set 'mine'"):
        read_medmnist(path, "mine")
    assert read_medmnist(path, "breastmnist").name == "breastmnist"
    np.save(tmp_path / "breastmnist.npy", np.zeros(3))
    with pytest.raises(DataError, match=r"one array; expected an \.npz file"):
        read_medmnist(tmp_path / "breastmnist.npy", "breastmnist")
    for name in ("breastmnist", "pathmnist"):
        write(tmp_path, name, made(name))
    with pytest.raises(DataError, match=r"found .*breastmnist, pathmnist"):
        read_medmnist(tmp_path)
    assert read_medmnist(tmp_path, "pathmnist").name == "pathmnist"


@pytest.mark.parametrize("name", sorted({*SETS} - {"breastmnist"}))
def test_a_set_is_guessed_from_its_name_or_its_arrays(tmp_path, name):
    assert read_medmnist(write(tmp_path, f"{name}_copy", made(name))).name == name
    assert read_medmnist(write(tmp_path, "mine", made(name))).name == name


@pytest.mark.parametrize("side", [64, 128, 224])
@pytest.mark.parametrize("name", ["breastmnist", "retinamnist"])
def test_larger_images_are_read_where_they_are_asked_for(tmp_path, name, side):
    arrays = made(name, (6, 3, 4), side)
    arrays["train_labels"][-1] = len(SETS[name].classes) - 1  # by which a set is recognised
    path = write(tmp_path, f"{name}_{side}", arrays)
    data = read_medmnist(path, name, side)
    channels = SETS[name].shape[0]
    assert data.X.shape == (13, channels, side, side)
    picture = arrays["val_images"][1]
    np.testing.assert_array_equal(data.X[7, -1], picture if channels == 1 else picture[:, :, -1])
    np.testing.assert_array_equal(data.content, data.take(np.arange(13)).digests)
    assert read_medmnist(tmp_path, name, side).digest == data.digest
    assert read_medmnist(path).digest == data.digest  # recognised from its arrays


@pytest.mark.parametrize(("asked", "stored"), [(None, 64), (28, 128), (64, 28), (224, 64)])
def test_a_file_of_another_size_is_refused_by_name(tmp_path, asked, stored):
    path = write(tmp_path, "file", made("breastmnist", side=stored))
    expected = asked or 28
    with pytest.raises(DataError) as refusal:
        read_medmnist(path, "breastmnist", asked)
    text = str(refusal.value)
    assert f"expected images of shape (n, {expected}, {expected})" in text
    assert f"found uint8 of (30, {stored}, {stored})" in text
    assert f"say data.size={stored}" in text


def test_a_size_that_is_not_published_is_refused(tmp_path):
    path = write(tmp_path, "breastmnist", made("breastmnist"))
    with pytest.raises(DataError, match=r"data\.size is 32, .* has 28, 64, 128, 224 pixels"):
        read_medmnist(path, "breastmnist", 32)


def test_reading_large_images_takes_little_more_memory_than_their_bytes(tmp_path):
    """A copy as float32 would take four times as much; splits as lists of arrays twice as much."""
    path = write_large(tmp_path, (300, 30, 70))
    read = f"""
import seedless.data.readers.medmnist as m
import json, sys
if json.loads(sys.stdin.read()):
    m.read_medmnist({str(path)!r}, "retinamnist", 224)
"""
    before = measure(read, b"false")
    after = measure(read, b"true")
    assert not after.error
    size = 400 * 3 * 224 * 224  # 60 MB of bytes
    assert after.peak_bytes - before.peak_bytes < 3 * size


def test_a_file_of_another_set_is_named(tmp_path):
    path = write(tmp_path, "mine", made("bloodmnist"))
    with pytest.raises(DataError, match=r"fits bloodmnist: say data\.name=bloodmnist"):
        read_medmnist(path, "breastmnist")
    few = made("pathmnist")
    few["train_labels"] %= 8  # a part of the set without its last class
    assert read_medmnist(write(tmp_path, "few", few), "pathmnist").name == "pathmnist"
    odd = made("breastmnist")
    odd["train_images"] = odd["train_images"][:, :20]
    with pytest.raises(DataError, match="fit no set known here: say which it is"):
        read_medmnist(write(tmp_path, "odd", odd))


def test_arrays_of_a_users_own_are_named(tmp_path):
    path = tmp_path / "own.npz"
    np.savez(path, X=np.zeros((2, 1, 4, 4)), Y=np.zeros(2), folds=np.ones(2))
    with pytest.raises(DataError, match=r"arrays of your own: say data\.name=.*own\.npz"):
        read_medmnist(path, "breastmnist")
