"""An .npz file from someone else: a plain file of arrays, compressed or not."""

import os

import numpy as np
import pytest

from seedless.core.errors import DataError
from seedless.data.readers.npz_files import load_npz


def test_arrays_are_read_compressed_or_not(tmp_path):
    arrays = {"X": np.arange(12.0).reshape(3, 4), "names": np.array(["a", "b"])}
    np.savez(tmp_path / "plain.npz", **arrays)
    np.savez_compressed(tmp_path / "small.npz", **arrays)
    (tmp_path / "link.npz").symlink_to(tmp_path / "plain.npz")
    for name in ("plain", "small", "link"):
        found = load_npz(tmp_path / f"{name}.npz", ("X",))
        assert {*found} == {"X", "names"}
        np.testing.assert_array_equal(found["X"], arrays["X"], strict=True)


def test_what_is_no_plain_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(DataError, match="is a pipe or a device; expected a plain file"):
        load_npz(tmp_path / "pipe.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        load_npz(tmp_path / "folder.npz")
