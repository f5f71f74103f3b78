"""MedMNIST: the real breast set, made sets of the other kinds, damaged files."""

import numpy as np
import pytest

from seedless.core.errors import DataError, UnknownNameError
from seedless.data.readers.medmnist import SETS, read_medmnist

SPLITS = ("train", "val", "test")


def made(name, sizes=(30, 8, 12)):
    """Arrays as in the published file of a set."""
    entry = SETS[name]
    channels = entry.shape[0]
    arrays = {}
    for number, (split, n) in enumerate(zip(SPLITS, sizes, strict=True)):
        shape = (n, 28, 28) if channels == 1 else (n, 28, 28, channels)
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
    with pytest.raises(UnknownNameError, match="MedMNIST set 'mine'"):
        read_medmnist(path)
    assert read_medmnist(path, "breastmnist").name == "breastmnist"
    np.save(tmp_path / "breastmnist.npy", np.zeros(3))
    with pytest.raises(DataError, match=r"one array; expected an \.npz file"):
        read_medmnist(tmp_path / "breastmnist.npy", "breastmnist")
    for name in ("breastmnist", "pathmnist"):
        write(tmp_path, name, made(name))
    with pytest.raises(DataError, match=r"found .*breastmnist, pathmnist"):
        read_medmnist(tmp_path)
    assert read_medmnist(tmp_path, "pathmnist").name == "pathmnist"
