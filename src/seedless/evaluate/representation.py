"""How many directions a model's features make use of."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError

DIGITS = 4


def effective_rank(features: NDArray[np.float32]) -> float | None:
    """Return the effective rank of features (n, D): exp(H), from 1 to min(n, D).

    H is the entropy of the singular values divided by their sum (Roy and Vetterli, 2007). The
    matrix is taken as the head receives it, not centred, as in the definition. None where all
    features are zero.

    The decomposition is LAPACK's, whose last bits depend on processor and threads; the result is
    rounded to four decimals, some seven orders of magnitude above them.
    """
    if features.ndim != 2 or features.size == 0:
        raise DataError(f"expected features (n, D), got shape {features.shape}")
    if not np.isfinite(features).all():
        raise DataError("expected finite features, found NaN or infinity")
    values = np.linalg.svd(features.astype(np.float64), compute_uv=False).tolist()
    total = math.fsum(values)
    if total == 0:
        return None
    shares = [value / total for value in values if value > 0]
    entropy = -math.fsum(share * math.log(share) for share in shares)
    return round(math.exp(entropy), DIGITS)
