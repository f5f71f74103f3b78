"""The labelled samples in canonical order, which is all that a strategy ever sees.

The canonical order sorts samples by content digest, then by label bytes. Strategies work with
positions in it and sort stably, so any tie falls back on it, and where a record lies in storage
cannot show: the sequence of samples depends on the samples alone. (Two samples equal in content
and label are interchangeable: either may stand for the other.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seedless.core.digest import as_rows, digest_samples
from seedless.ordering.labels import Values, label_bytes, read_labels

T = TypeVar("T")
Positions = NDArray[np.int64]  # indices into the canonical order


@dataclass(frozen=True, eq=False)
class Samples:
    """The m labelled samples among n records, in canonical order.

    Attributes:
        source: the n records as they were given.
        stored: n.
        rows: (m,) the record that each sample is; the only trace of storage.
        digests: (m, 32) BLAKE2b of the contents.
        labels: None, class numbers (m,), or multi-hot (m, K).
    """

    source: ArrayLike
    stored: int
    rows: NDArray[np.int64]
    digests: NDArray[np.uint8]
    labels: Values
    _kept: dict[Callable[[Any], Any], Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def once(self, compute: Callable[[Samples], T]) -> T:
        """Return ``compute(self)``, computed the first time and kept for later epochs."""
        if compute not in self._kept:
            self._kept[compute] = compute(self)
        kept: T = self._kept[compute]
        return kept

    def records(self) -> NDArray[Any]:
        """Return the n records, float32 or int64, in storage order: index results by `rows`."""
        return as_rows(self.source)


def read_samples(
    source: ArrayLike, labels: ArrayLike | None, keep_unlabelled: bool = False
) -> Samples:
    """Read data and labels and bring the labelled samples into canonical order."""
    digests = digest_samples(source)
    rows, values = read_labels(labels, len(digests), keep_unlabelled)
    identity = np.concatenate([digests[rows], label_bytes(values, len(rows))], axis=1)
    canonical = sort_bytes(identity)
    return Samples(
        source=source,
        stored=len(digests),
        rows=rows[canonical],
        digests=digests[rows[canonical]],
        labels=None if values is None else values[canonical],
    )


def sample_identities(samples: Samples) -> NDArray[np.uint8]:
    """Return content digest and label bytes of each sample, uint8 (m, 32 + w)."""
    return np.concatenate([samples.digests, label_bytes(samples.labels, len(samples))], axis=1)


def group_equal_samples(samples: Samples) -> NDArray[np.int64]:
    """Number the groups of samples equal in content and label: (m,), 0 upwards."""
    identity = samples.once(sample_identities)
    fresh = (identity[1:] != identity[:-1]).any(axis=1)
    return np.concatenate([[0], np.cumsum(fresh)]).astype(np.int64)


def sort_bytes(matrix: NDArray[np.uint8]) -> Positions:
    """Return the stable order of the rows of a uint8 matrix, compared as byte strings."""
    whole = np.ascontiguousarray(matrix).view(f"V{matrix.shape[1]}").ravel()
    return np.argsort(whole, kind="stable")
