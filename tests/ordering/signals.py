"""Records to order: random waves of four channels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def signals(count: int = 150) -> NDArray[np.float32]:
    rng = np.random.default_rng(0)
    waves = rng.standard_normal((count, 4, 30)) + rng.standard_normal((count, 4, 1))
    return waves.astype(np.float32)
