"""Orders that sort one key a sample: content, golden ratio, Sobol sequence, and the seeded control.

Each returns positions in canonical order; the sorts are stable, so ties keep that order.
"""

from __future__ import annotations

import numpy as np

from seedless.core.digest import digest_samples
from seedless.core.errors import OrderError
from seedless.ordering.samples import Positions, Samples, sort_bytes
from seedless.ordering.sort_keys import (
    Keys,
    content_keys,
    golden_hash,
    index_hashes,
    seeded_keys,
    sum_hashes,
)
from seedless.ordering.strategy import EpochInputs

_SOBOL_BLOCK = 1 << 20  # numbers generated at a time


def content(samples: Samples, epoch: EpochInputs) -> Positions:
    """A fresh pseudo-random permutation every epoch, from the contents alone.

    Labels play no part but to order samples of equal content.
    """
    return np.argsort(content_keys(samples, epoch.index), kind="stable")


def content_static(samples: Samples, epoch: EpochInputs) -> Positions:
    """Sort by SHA-256 of the content: the same every epoch."""
    return samples.once(_static)


def _static(samples: Samples) -> Positions:
    return sort_bytes(digest_samples(samples.source, "sha256")[samples.rows])


def golden(samples: Samples, epoch: EpochInputs) -> Positions:
    """key_i = frac(h_i + epoch phi), h_i = frac(phi sum|X_i|), as published.

    Adding a constant modulo 1 cannot reorder a circle: from epoch to epoch this is exactly a
    rotation of one circular order, and a sample keeps its neighbours for the whole training.
    Keys are 64-bit integers, so that the addition wraps without rounding.
    """
    return _rotate(samples.once(sum_hashes), epoch.index)


def golden_index(samples: Samples, epoch: EpochInputs) -> Positions:
    """As `golden` with h_i = frac(i phi), i the row: it depends on storage by definition."""
    return _rotate(samples.once(index_hashes), epoch.index)


def _rotate(hashes: Keys, epoch: int) -> Positions:
    return np.argsort(hashes + np.uint64(golden_hash(epoch)), kind="stable")


def seeded(samples: Samples, epoch: EpochInputs) -> Positions:
    """The random control: a pseudo-random permutation for each (seed, epoch), all independent."""
    return np.argsort(seeded_keys(samples, epoch.index, epoch.seed), kind="stable")


def sobol(samples: Samples, epoch: EpochInputs) -> Positions:
    """Sample r in canonical order takes coordinate `epoch` of point r of a Sobol sequence as key.

    The sequence is not scrambled; its first 2^k points have distinct coordinates in each dimension.
    """
    from scipy.stats import qmc  # takes a second to import, and only this order needs it

    if epoch.index >= qmc.Sobol.MAXDIM:
        raise OrderError(
            f"sobol has {qmc.Sobol.MAXDIM} dimensions, one an epoch, and epoch {epoch.index} "
            "(offset included) has none; use order 'content' for longer training"
        )
    dimensions = epoch.index + 1
    # Whole powers of two at a time, or scipy warns that the points are not balanced.
    block = 1 << max(0, (_SOBOL_BLOCK // dimensions).bit_length() - 1)
    block = min(block, 1 << (len(samples) - 1).bit_length())
    engine = qmc.Sobol(dimensions, scramble=False)
    keys = np.concatenate([engine.random(block)[:, -1] for _ in range(0, len(samples), block)])
    return np.argsort(keys[: len(samples)], kind="stable")
