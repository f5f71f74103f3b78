"""The classifier head: a simplex equiangular tight frame (ETF), in closed form.

K unit vectors whose pairwise cosines all equal -1/(K-1), the smallest value that K vectors can have
in common: the directions to which last-layer classifiers converge (Papyan, Han and Donoho, "Neural
collapse", PNAS 2020). It is computed from the DCT-II, not from an SVD: all singular values are
equal, so the SVD's rotation would depend on the LAPACK library.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import InitError
from seedless.numerics.correct_rounding import rounded_cosines


def simplex_etf(classes: int, dimensions: int) -> NDArray[np.float64]:
    """Return K unit vectors in D dimensions: float64 (K, D); dimensions from K-1 on are zero.

    Entry (k, i) is sqrt(2/(K-1)) cos(pi (i+1) (2k+1) / 2K): the K-point DCT-II without its
    constant row, its columns scaled by sqrt(K/(K-1)).
    """
    if classes < 2:
        raise InitError(
            f"an equiangular frame needs at least 2 classes, got {classes}; "
            'use heads="basis" (init.heads=basis) for a single output'
        )
    if dimensions < classes - 1:
        raise InitError(
            f"an equiangular frame of {classes} classes needs at least {classes - 1} dimensions, "
            f'got {dimensions}; widen the layer before the head or use heads="basis"'
        )
    table = rounded_cosines(np.arange(4 * classes), 2 * classes, Fraction(2, classes - 1))
    k = np.arange(classes)[:, None]
    i = np.arange(classes - 1)[None, :]
    vectors = np.zeros((classes, dimensions))
    vectors[:, : classes - 1] = table[(i + 1) * (2 * k + 1) % (4 * classes)]
    return vectors
