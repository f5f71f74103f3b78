"""A dataset sorted by content, split, and scaled as a model receives it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import Dataset
from seedless.core.errors import DataError
from seedless.data.normalize import Scale, fit_scale
from seedless.data.readers.content_ids import digest_in_blocks


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
    """Return the dataset in memory, sorted by content, with the digests of these very samples.

    No result depends on the order of the records on disk. A cached copy is a file that may be
    damaged, or change while it is read: so its samples are read once, hashed as they are in memory,
    and refused where they are not the samples that were stored.
    """
    # [Step 1] Sort by the digests that are known, which reads every sample into memory.
    keys = zip(data.digests, data.Y, data.folds, data.ids, strict=True)
    sortable = [(d.tobytes(), y.tobytes(), int(f), str(name)) for d, y, f, name in keys]
    found = data.take(np.array(sorted(range(len(data)), key=sortable.__getitem__)))
    # [Step 2] Hash what was read, and compare it with the digests that it was stored with.
    hashed = digest_in_blocks(found.X)
    if data.content is not None:
        differing = np.flatnonzero((hashed != found.digests).any(axis=1))
        if len(differing):
            raise DataError(
                f"{data.name}: the stored copy is damaged: expected the samples that were stored, "
                f"got others in {len(differing)} of {len(data)} samples, first in record "
                f"{found.ids[differing[0]]}. Run again with --set data.verify=true, which builds "
                "a damaged copy again"
            )
    return replace(found, content=hashed)
