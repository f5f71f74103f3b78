"""A dataset sorted by content, split, and scaled as a model receives it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import Dataset
from seedless.core.digests import digest_samples
from seedless.core.errors import DataError
from seedless.core.threads import limit_block
from seedless.data.normalize import Scale, fit_scale
from seedless.data.readers.content_ids import digest_in_blocks

_BLOCK = 256  # samples hashed at a time
# Images of bytes whose float32 form would be larger stay bytes until a batch is read: the same bits
# in a quarter of the memory, for a little more time in every step.
MAX_FLOAT_BYTES = 2**30


@dataclass(frozen=True, eq=False)
class Arrays:
    """Samples as the model receives them, multi-hot labels, and names.

    Attributes:
        rows: row numbers in the user's array, which has no ids.
        values: (channels, 256) float32 where X is uint8: what the model receives for each byte.
    """

    X: NDArray[Any]
    Y: NDArray[np.uint8]
    ids: NDArray[np.str_]
    rows: NDArray[np.int64] | None = None
    values: NDArray[np.float32] | None = None

    def digest(self) -> NDArray[np.uint8]:
        """Return the digests (n, 32) of the samples as the model receives them, block by block."""
        if self.values is None:
            return digest_samples(self.X)
        out = np.empty((len(self.X), 32), dtype=np.uint8)
        block = limit_block(_BLOCK, self.X[0].size)
        for start in range(0, len(self.X), block):
            part = look_up(self.X[start : start + block], self.values)
            out[start : start + block] = digest_samples(part)
        return out


def are_too_large(samples: NDArray[Any]) -> bool:
    """Whether samples are images of bytes that would be too large as float32."""
    return samples.dtype == np.uint8 and 4 * samples.size > MAX_FLOAT_BYTES


def scale_samples(
    scale: Scale,
    samples: NDArray[Any],
    labels: NDArray[np.uint8],
    ids: NDArray[np.str_],
    as_bytes: bool,
) -> Arrays:
    """Return samples as the model receives them; ``as_bytes`` keeps images of bytes as they are."""
    if not as_bytes:
        return Arrays(scale.apply(samples), labels, ids)
    values = scale.tabulate(samples.shape[1]) + 0  # -0.0 becomes 0.0, as it is in the digests
    return Arrays(samples, labels, ids, values=values)


def look_up(images: NDArray[np.uint8], values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return images (n, channels, ...) as the model receives them, from a table of their bytes."""
    out = np.empty(images.shape, dtype=np.float32)
    for channel, table in enumerate(values):
        np.take(table, images[:, channel], out=out[:, channel])
    return out


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
            as_bytes = are_too_large(data.X)
            self._scaled[normalize] = (
                scale,
                {
                    name: scale_samples(scale, part.X, part.Y, part.ids, as_bytes)
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
