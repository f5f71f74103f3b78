"""What a model is trained on is what was hashed: the digests come from the samples in memory."""

import os
from dataclasses import replace

import numpy as np
import pytest

from seedless.core.digests import digest_samples
from seedless.core.errors import DataError
from seedless.data import model_inputs
from seedless.data.cache import open_cached
from seedless.data.model_inputs import SortedData, look_up, sort_records
from tests.core.test_dataset import make

ROW_BYTES, HEADER_BYTES = 240, 128  # of X.npy of `make`: 2 leads of 30 float32 values a sample


def open_entry(folder, data=None):
    """Return the dataset of a cache entry, built on the first call."""
    return open_cached(folder / "entry", {}, [], lambda: data)


def damage(folder, row):
    """Change one bit of one sample in the cache; size and time of the file do not tell."""
    path = folder / "entry" / "X.npy"
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[HEADER_BYTES + row * ROW_BYTES + 8] ^= 1
    with open(path, "r+b") as file:  # in place, so that a file that is mapped changes too
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_damaged_cache_is_found_before_training(tmp_path):
    data = make(n=200)
    assert SortedData(open_entry(tmp_path, data)).data.digest == data.digest
    damage(tmp_path, row=7)
    opened = open_entry(tmp_path)
    assert opened.digest == data.digest  # opening looks at 16 samples, and row 7 is none of them
    with pytest.raises(DataError, match=r"1 of 200 samples, first in record r7\."):
        SortedData(opened)
    rebuilt = open_cached(tmp_path / "entry", {}, [], lambda: data, verify=True)  # as advised
    assert SortedData(rebuilt).data.digest == data.digest


def test_a_cache_that_changes_after_it_was_opened_is_found(tmp_path):
    open_entry(tmp_path, make(n=200))
    opened = open_entry(tmp_path)
    opened = open_cached(tmp_path / "entry", {}, [], None, verify=True)
    damage(tmp_path, row=7)
    with pytest.raises(DataError, match="record r7"):
        sort_records(opened)


def test_what_is_sorted_is_in_memory_and_no_longer_changes_with_the_file(tmp_path):
    open_entry(tmp_path, make(n=200))
    found = sort_records(open_entry(tmp_path))
    before = found.X.copy()
    damage(tmp_path, row=7)
    np.testing.assert_array_equal(found.X, before, strict=True)
    np.testing.assert_array_equal(found.digests, digest_samples(found.X))


def test_digests_that_are_not_of_the_samples_are_refused():
    data = make()
    true = digest_samples(data.X)
    assert sort_records(replace(data, content=true)).digest == data.digest
    with pytest.raises(DataError, match="20 of 20 samples"):
        sort_records(replace(data, content=np.roll(true, 1, axis=0)))


def test_the_splits_of_a_model_have_the_samples_that_were_hashed(tmp_path):
    open_entry(tmp_path, make(n=200))
    prepared = SortedData(open_entry(tmp_path))
    _, arrays = prepared.scale("none")
    for split, part in arrays.items():
        rows = prepared.data.rows(split)
        np.testing.assert_array_equal(digest_samples(part.X), prepared.data.digests[rows])


def make_images(n=40, channels=3, side=8):
    """Return images of bytes in which every value occurs."""
    count = n * channels * side * side
    values = (np.arange(count) * 37 + np.arange(count) // 251) % 256
    images = values.astype(np.uint8).reshape(n, channels, side, side)
    made = make(n=n)
    return replace(made, X=images, leads=None, fs=None, content=None)


@pytest.mark.parametrize("normalize", ["pixels", "global", "lead", "none"])
def test_images_kept_as_bytes_are_the_same_numbers(monkeypatch, normalize):
    """Looked up in a table, they have every bit of images that are scaled all at once."""
    images = make_images()
    scale, whole = SortedData(images).scale(normalize)
    monkeypatch.setattr(model_inputs, "MAX_FLOAT_BYTES", 4 * images.X.size - 1)
    same, kept = SortedData(images).scale(normalize)
    assert same == scale
    for split, part in whole.items():
        assert kept[split].X.dtype == np.uint8
        expanded = look_up(kept[split].X, kept[split].values)
        assert expanded.tobytes() == (part.X + 0).tobytes()
        np.testing.assert_array_equal(kept[split].digest(), digest_samples(part.X))
        np.testing.assert_array_equal(part.digest(), digest_samples(part.X))


def test_only_large_images_are_kept_as_bytes(monkeypatch):
    images, signals = make_images(), make(n=40)
    monkeypatch.setattr(model_inputs, "MAX_FLOAT_BYTES", 4 * images.X.size)
    assert SortedData(images).scale("pixels")[1]["train"].values is None
    monkeypatch.setattr(model_inputs, "MAX_FLOAT_BYTES", 0)
    assert SortedData(images).scale("pixels")[1]["train"].values.shape == (3, 256)
    assert SortedData(signals).scale("global")[1]["train"].values is None
