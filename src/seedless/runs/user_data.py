"""A user's data for `fit`: arrays in any structure, or map-style datasets; others are refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from seedless.core.errors import DataError

HOW_TO = "give loss=, a function of the model's outputs and the targets: docs/how-to/own-data.md"


@dataclass(frozen=True, eq=False)
class ArrayDataset:
    """Arrays as a map-style dataset: item i is the pair (inputs, targets) of row i.

    Attributes:
        inputs: an array (n, ...), or a tuple, list or dict of them; may be memory-mapped.
        targets: the same.
        count: n.
    """

    inputs: Any
    targets: Any
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> tuple[Any, Any]:
        return _take(self.inputs, row), _take(self.targets, row)


def read_dataset(split: str, data: Any) -> Any:
    """Return a split of `fit` as a map-style dataset; refuse what is none."""
    refuse_loader(split, data)
    if isinstance(data, IterableDataset):
        raise DataError(
            f"{split} is an IterableDataset, whose samples have no numbers to order them by: give "
            "a dataset with len(dataset) and dataset[index], such as one over files"
        )
    if not isinstance(data, tuple):
        return data
    if len(data) != 2:
        raise DataError(f"expected {split} as a pair (inputs, targets), got a tuple of {len(data)}")
    counts = {*_list_counts(data[0], f"{split} inputs"), *_list_counts(data[1], f"{split} targets")}
    if len(counts) > 1:
        raise DataError(
            f"{split}: expected as many rows in every array, got {sorted(counts)}; the first axis "
            "of each array counts the samples"
        )
    return ArrayDataset(data[0], data[1], counts.pop())


def refuse_loader(split: str, data: Any) -> None:
    """Refuse a DataLoader: it has an order and batches of its own."""
    if isinstance(data, DataLoader):
        raise DataError(
            f"{split} is a DataLoader, which makes an order and batches of its own: give its "
            f"dataset, {split}=loader.dataset, with batch_size={data.batch_size}, workers= and "
            "collate= as fit's own arguments"
        )


def refuse_without_loss(split: str, data: Any) -> None:
    """Refuse data that need a user-defined loss, and say so."""
    refuse_loader(split, data)
    if isinstance(data, TensorDataset):
        raise DataError(
            f"{split} is a TensorDataset: give its arrays, {split}=dataset.tensors, or keep the "
            f"dataset and {HOW_TO}"
        )
    if isinstance(data, Mapping) or (hasattr(data, "__getitem__") and not _is_sequence(data)):
        raise DataError(f"{split} is a {type(data).__name__}: for a dataset {HOW_TO}")
    if isinstance(data, tuple) and len(data) == 2:
        inputs, labels = data
        several = isinstance(inputs, Mapping) or (
            isinstance(inputs, tuple | list)
            and len(inputs) > 0
            and all(isinstance(item, np.ndarray | torch.Tensor) and item.ndim for item in inputs)
            and len(inputs) != len(labels)
        )
        if several:
            raise DataError(
                f"{split} has {len(inputs)} arrays of inputs: for a model with several inputs "
                f"{HOW_TO}"
            )


def _is_sequence(data: Any) -> bool:
    return isinstance(data, tuple | list | np.ndarray | torch.Tensor)


def _list_counts(data: Any, what: str) -> list[int]:
    """Return the number of rows of each array in a structure of arrays."""
    if isinstance(data, Mapping):
        return [n for name, part in data.items() for n in _list_counts(part, f"{what}[{name!r}]")]
    if isinstance(data, tuple | list):
        return [n for i, part in enumerate(data) for n in _list_counts(part, f"{what}[{i}]")]
    if not isinstance(data, np.ndarray | torch.Tensor) or not data.ndim or not len(data):
        found = type(data).__name__ if not hasattr(data, "shape") else f"shape {tuple(data.shape)}"
        raise DataError(
            f"expected {what} as arrays or tensors (n, ...), in tuples, lists or dicts where there "
            f"are several, got {found}"
        )
    if isinstance(data, np.ndarray) and data.dtype.kind not in "biuf":
        raise DataError(f"expected {what} to be real numbers, got {data.dtype}; convert them first")
    return [len(data)]


def _take(data: Any, row: int) -> Any:
    """Return row number ``row`` of every array; float64 becomes float32, as models compute."""
    if isinstance(data, Mapping):
        return {name: _take(part, row) for name, part in data.items()}
    if isinstance(data, tuple | list):
        return tuple(_take(part, row) for part in data)
    value: NDArray[Any] | torch.Tensor = data[row]
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype == torch.float64 else value
    copied = np.array(value)  # of a memory map, the row alone
    return copied.astype(np.float32) if copied.dtype.kind == "f" else copied
