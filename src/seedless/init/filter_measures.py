"""Measures of a layer's filters: distinct filters, coherence, orthogonality error.

All are computed in exact arithmetic, so that a printed plan is the same on every machine.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.numerics.exact_sums import exact_gram


def count_distinct(filters: NDArray[Any]) -> int:
    """Return the number of different rows of (O, F)."""
    return len({row.tobytes() for row in np.ascontiguousarray(filters)})


def coherence(vectors: NDArray[Any]) -> float | None:
    """Return the largest |cosine| between two rows; None if fewer than two rows are not zero."""
    inner = exact_gram(vectors)
    square = np.diagonal(inner)
    nonzero = square > 0
    if nonzero.sum() < 2:
        return None
    norm = np.sqrt(square[nonzero])
    cosine = np.abs(inner[np.ix_(nonzero, nonzero)]) / norm[:, None] / norm[None, :]
    np.fill_diagonal(cosine, 0.0)
    return min(float(cosine.max()), 1.0)


def orthogonality_error(vectors: NDArray[Any]) -> float:
    """Return the largest |cosine| between two rows of (O, F), or two columns where O > F.

    It is 0 for a single vector, about 1e-16 for an orthonormal basis, and 1 where filters repeat.
    """
    filters, features = vectors.shape
    return coherence(vectors if filters <= features else vectors.T) or 0.0
