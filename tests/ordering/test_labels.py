"""Which rows are labelled, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from seedless.core.errors import DataError
from seedless.ordering.labels import class_table, label_bytes, read_labels


def test_no_labels_means_all_labelled() -> None:
    rows, values = read_labels(None, 3)
    assert rows.tolist() == [0, 1, 2]
    assert values is None
    assert label_bytes(values, 3).shape == (3, 0)


def test_negative_class_numbers_are_unlabelled() -> None:
    rows, values = read_labels([3, -1, 0, -7, 3], 5)
    assert values is not None
    assert rows.tolist() == [0, 2, 4]
    assert values.tolist() == [3, 0, 3]
    assert class_table(values).tolist() == [[False, True], [True, False], [False, True]]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_multi_hot_rows_without_a_one_are_unlabelled(dtype: Any) -> None:
    table = np.array([[1, 0], [0, 0], [1, 1]], dtype=dtype)
    rows, values = read_labels(table, 3)
    assert values is not None
    assert rows.tolist() == [0, 2]
    assert label_bytes(values, 2).tolist() == [[1, 0], [1, 1]]
    kept, _ = read_labels(table, 3, keep_unlabelled=True)
    assert kept.tolist() == [0, 1, 2]


def test_tensors_are_read() -> None:
    rows, _ = read_labels(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), 2)  # type: ignore[arg-type]
    assert rows.tolist() == [0]


def test_class_numbers_sort_as_bytes() -> None:
    numbers = np.array([0, 1, 255, 256, 70000])
    as_bytes = [row.tobytes() for row in label_bytes(numbers, 5)]
    assert as_bytes == sorted(as_bytes)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 2], "2 labels for 3 samples"),
        ([[1, 0], [0, 1]], "2 labels for 3 samples"),
        (np.zeros((3, 2, 2)), r"got \(3, 2, 2\)"),
        (np.float64(1.0), r"got \(\)"),
        (["a", "b", "c"], "real numbers"),
        ([0.0, 1.0, np.nan], "class numbers as integers"),
        ([[1, 0], [np.nan, 0], [0, 1]], "got nan in row 1, column 0"),
        ([[1, 0], [0, 2], [0, 1]], "got 2 in row 1, column 1"),
        ([[5], [3], [0]], "class numbers go in a vector"),
        ([[1], [0], [1]], r"labels\[:, 0\]"),
        ([-1, -1, -1], "none of the 3 samples is labelled"),
        (np.zeros((3, 4)), "none of the 3 samples is labelled"),
        (np.zeros((3, 0)), "none of the 3 samples is labelled"),
    ],
)
def test_bad_labels_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_labels(labels, 3)


def test_a_negative_class_number_cannot_be_kept() -> None:
    with pytest.raises(DataError, match="1 negative class numbers"):
        read_labels([0, 1, -1], 3, keep_unlabelled=True)
    assert len(read_labels([0, 1, 1], 3, keep_unlabelled=True)[0]) == 3
