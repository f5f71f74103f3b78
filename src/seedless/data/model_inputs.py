"""A dataset sorted by content, split, and scaled as a model receives it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import Dataset
from seedless.core.errors import DataError
from seedless.data.normalize import Scale, fit_scale


@dataclass(frozen=True, eq=False)
class Arrays:
    """Samples as the model receives them, multi-hot labels, and names."""

    X: NDArray[np.float32]
    Y: NDArray[np.uint8]
    ids: NDArray[np.str_]
    rows: NDArray[np.int64] | None = None  # row numbers in the user's array, which has no ids


class SortedData:
    """A dataset sorted by content; scaled splits are computed once and shared by several runs."""

    def __init__(self, data: Dataset) -> None:
        self.data = sort_records(data)
        self._scaled: dict[str, tuple[Scale, dict[str, Arrays]]] = {}

    def scale(self, normalize: str) -> tuple[Scale, dict[str, Arrays]]:
        """Return the scale fitted to the training records, and every split with it applied."""
        if normalize not in self._scaled:
            data = self.data
            scale = fit_scale(data, normalize)
            parts = {
                name: data.take(rows) for name in data.protocol if len(rows := data.rows(name))
            }
            if "train" not in parts:
                raise DataError(
                    f"{data.name} has no records to train on: its training split is empty"
                )
            self._scaled[normalize] = (
                scale,
                {
                    name: Arrays(scale.apply(part.X), part.Y, part.ids)
                    for name, part in parts.items()
                },
            )
        return self._scaled[normalize]


def sort_records(data: Dataset) -> Dataset:
    """Return the dataset sorted by content, so that no result depends on its order on disk."""
    keys = zip(data.digests, data.Y, data.folds, data.ids, strict=True)
    sortable = [(d.tobytes(), y.tobytes(), int(f), str(name)) for d, y, f, name in keys]
    return data.take(np.array(sorted(range(len(data)), key=sortable.__getitem__)))
