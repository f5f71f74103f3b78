"""What can be said of a layer's filters: how many are distinct, how alike, how orthogonal.

All three come from exact arithmetic, so a printed plan is the same on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.numerics.exact_sums import exact_gram


def count_distinct(filters: NDArray[Any]) -> int:
    """Return the number of different rows of (O, F)."""
    return len({row.tobytes() for row in np.ascontiguousarray(filters)})


def coherence(vectors: NDArray[Any]) -> float | None:
    """Return the largest |cosine| between two rows; None where fewer than two have a direction."""
    inner = exact_gram(vectors)
    square = np.diagonal(inner)
    alive = square > 0
    if alive.sum() < 2:
        return None
    norm = np.sqrt(square[alive])
    cosine = np.abs(inner[np.ix_(alive, alive)]) / norm[:, None] / norm[None, :]
    np.fill_diagonal(cosine, 0.0)
    return min(float(cosine.max()), 1.0)


def orthogonality_error(vectors: NDArray[Any]) -> float:
    """Return how far the rows of (O, F) are from orthogonal; for O > F the columns.

    The largest |cosine| between two of the vectors that a basis makes orthogonal: 0 for a single
    one, about 1e-16 for an orthonormal basis, and up to 1 where filters repeat.
    """
    filters, features = vectors.shape
    return coherence(vectors if filters <= features else vectors.T) or 0.0
