"""Labels in their three forms, and which samples are labelled.

No labels (every sample counts as labelled), one class number for each sample (negative means
unlabelled), or a multi-hot table (a row without a one means unlabelled).
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seedless.core.digests import to_numpy
from seedless.core.errors import DataError

Values = NDArray[Any] | None  # None, int64 (m,) class numbers, or bool (m, K) multi-hot


def read_labels(
    labels: ArrayLike | None, samples: int, keep_unlabelled: bool = False
) -> tuple[NDArray[np.int64], Values]:
    """Return the labelled rows, in storage order, and their labels.

    Args:
        labels: None, integers (n,), or zeros and ones (n, K) of any numeric dtype.
        samples: n, the number of samples.
        keep_unlabelled: keep the rows of a multi-hot table that have no 1.
    """
    if labels is None:
        return np.arange(samples), None
    array = to_numpy(labels, "labels")
    if array.ndim not in (1, 2):
        raise DataError(
            f"expected labels of shape (n,) or (n, K), got {array.shape}; pass class numbers, or "
            "one 0/1 column for each class"
        )
    if len(array) != samples:
        raise DataError(
            f"expected one label for each sample, got {len(array)} labels for {samples} samples; "
            "pass both from the same split"
        )
    read = _read_classes if array.ndim == 1 else _read_table
    rows, values = read(array, keep_unlabelled)
    if len(rows) == 0:
        raise DataError(
            f"none of the {samples} samples is labelled; pass labels of this split, or no labels"
        )
    return rows, values


def _read_classes(
    array: NDArray[Any], keep_unlabelled: bool
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    if array.dtype.kind == "f":
        raise DataError(
            f"expected class numbers as integers, got {array.dtype}; use labels.astype('int64') "
            "once missing ones are -1"
        )
    numbers = array.astype(np.int64)
    rows = np.flatnonzero(numbers >= 0)
    if keep_unlabelled and len(rows) < len(numbers):
        raise DataError(
            f"keep_unlabelled is for multi-hot labels, where all zeros may be an answer; here are "
            f"{len(numbers) - len(rows)} negative class numbers: leave keep_unlabelled out"
        )
    return rows, numbers[rows]


def _read_table(
    array: NDArray[Any], keep_unlabelled: bool
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    wrong = np.argwhere((array != 0) & (array != 1))  # NaN differs from both
    if len(wrong):
        row, column = wrong[0]
        raise DataError(
            f"expected 0 or 1 in multi-hot labels, got {array[row, column]} in row {row}, column "
            f"{column} ({len(wrong)} such entries); class numbers go in a vector of shape (n,)"
        )
    table = array.astype(bool)
    if keep_unlabelled and table.shape[1]:
        return np.arange(len(table)), table
    rows = np.flatnonzero(table.any(axis=1))
    if table.shape[1] == 1 and 0 < len(rows) < len(table):
        raise DataError(
            f"one column of labels would leave out its {len(table) - len(rows)} zeros as "
            "unlabelled; pass labels[:, 0] as class numbers, or keep_unlabelled=True"
        )
    return rows, table[rows]


def label_bytes(values: Values, samples: int) -> NDArray[np.uint8]:
    """Return each label's bytes, uint8 (m, w): a big-endian class number, or a 0/1 byte per class.

    Compared as bytes, class numbers sort as numbers. Without labels w is 0.
    """
    if values is None:
        return np.empty((samples, 0), dtype=np.uint8)
    if values.ndim == 2:
        return values.astype(np.uint8)
    return values.astype(">i8").view(np.uint8).reshape(samples, 8)


def class_table(values: Values) -> NDArray[np.bool_]:
    """Return which sample belongs to which class, bool (m, K); class numbers become sorted columns.

    Without labels K is 0.
    """
    if values is None:
        return np.empty((0, 0), dtype=bool)
    if values.ndim == 2:
        return values
    table: NDArray[np.bool_] = values[:, None] == np.unique(values)[None, :]
    return table
