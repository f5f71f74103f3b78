"""The labelled samples in canonical order, the only input of every strategy.

The canonical order sorts samples by content digest, then by label bytes. Strategies return
positions in it, and their sorts are stable, so ties keep the canonical order. The sequence of
samples therefore does not depend on where records are stored. (Two samples of equal content and
label are interchangeable.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seedless.core.digests import as_rows, digest_samples
from seedless.ordering.labels import Values, label_bytes, read_labels

T = TypeVar("T")
Positions = NDArray[np.int64]  # indices into the canonical order


@dataclass(frozen=True, eq=False)
class Samples:
    """The m labelled samples among n records, in canonical order.

    Attributes:
        source: the n records as the caller passed them.
        stored: n.
        rows: (m,) each sample's row in the records.
        digests: (m, 32) BLAKE2b of the contents.
        labels: None, class numbers (m,), or multi-hot (m, K).
    """

    source: ArrayLike
    stored: int
    rows: NDArray[np.int64]
    digests: NDArray[np.uint8]
    labels: Values
    _cache: dict[Callable[[Any], Any], Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def compute_once(self, compute: Callable[[Samples], T]) -> T:
        """Return ``compute(self)``, computed at the first call and cached for later epochs."""
        if compute not in self._cache:
            self._cache[compute] = compute(self)
        value: T = self._cache[compute]
        return value

    def records(self) -> NDArray[Any]:
        """Return the n records, float32 or int64, in storage order: index results by `rows`."""
        return as_rows(self.source)


def read_samples(
    source: ArrayLike, labels: ArrayLike | None, keep_unlabelled: bool = False
) -> Samples:
    """Return the labelled samples of data and labels, in canonical order."""
    return _sort_samples(source, digest_samples(source), labels, keep_unlabelled)


def read_digests(
    digests: NDArray[np.uint8], labels: ArrayLike | None = None, keep_unlabelled: bool = False
) -> Samples:
    """Return the labelled samples of records that are known by their digests (n, 32) alone."""
    return _sort_samples(digests, digests, labels, keep_unlabelled)


def _sort_samples(
    source: ArrayLike,
    digests: NDArray[np.uint8],
    labels: ArrayLike | None,
    keep_unlabelled: bool,
) -> Samples:
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
    """Return the content digest and label bytes of each sample: uint8 (m, 32 + w)."""
    return np.concatenate([samples.digests, label_bytes(samples.labels, len(samples))], axis=1)


def group_equal_samples(samples: Samples) -> NDArray[np.int64]:
    """Return a group number for each sample, equal for samples equal in content and label: (m,)."""
    identity = samples.compute_once(sample_identities)
    differs = (identity[1:] != identity[:-1]).any(axis=1)  # from the sample before
    return np.concatenate([[0], np.cumsum(differs)]).astype(np.int64)


def sort_bytes(matrix: NDArray[np.uint8]) -> Positions:
    """Return the stable sort order of a uint8 matrix's rows, compared as byte strings."""
    strings = np.ascontiguousarray(matrix).view(f"V{matrix.shape[1]}").ravel()
    return np.argsort(strings, kind="stable")
