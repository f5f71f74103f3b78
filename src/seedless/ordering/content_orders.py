"""Orders by one sort key per sample: content, golden ratio, Sobol sequence, seeded control.

Each returns positions in canonical order; the sorts are stable, so equal keys keep that order.
"""

import numpy as np

from seedless.core.digests import digest_samples
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

_SOBOL_BLOCK = 1 << 20  # numbers generated at a time, to limit the memory


def content(samples: Samples, epoch: EpochInputs) -> Positions:
    """Return another pseudo-random permutation every epoch, from the samples' contents alone.

    Labels only order samples of equal content.
    """
    return np.argsort(content_keys(samples, epoch.index), kind="stable")


def content_static(samples: Samples, epoch: EpochInputs) -> Positions:
    """Return the samples sorted by SHA-256 of their content: the same order every epoch."""
    return samples.compute_once(_sort_by_sha256)


def _sort_by_sha256(samples: Samples) -> Positions:
    return sort_bytes(digest_samples(samples.source, "sha256")[samples.rows])


def golden(samples: Samples, epoch: EpochInputs) -> Positions:
    """Return the order of the keys frac(h_i + epoch phi), h_i = frac(phi sum|X_i|), as published.

    Adding a constant modulo 1 does not reorder points on a circle: from epoch to epoch this order
    is only rotated, and a sample keeps its neighbours for the whole training. Keys are 64-bit
    integers, so that the addition wraps without rounding.
    """
    return _rotate(samples.compute_once(sum_hashes), epoch.index)


def golden_index(samples: Samples, epoch: EpochInputs) -> Positions:
    """Return `golden` with h_i = frac(i phi), i the row, which depends on storage by definition."""
    return _rotate(samples.compute_once(index_hashes), epoch.index)


def _rotate(hashes: Keys, epoch: int) -> Positions:
    return np.argsort(hashes + np.uint64(golden_hash(epoch)), kind="stable")


def seeded(samples: Samples, epoch: EpochInputs) -> Positions:
    """Return a pseudo-random permutation for each (seed, epoch): the random control."""
    return np.argsort(seeded_keys(samples, epoch.index, epoch.seed), kind="stable")


def sobol(samples: Samples, epoch: EpochInputs) -> Positions:
    """Return the order of coordinate `epoch` of the points of a Sobol sequence (Sobol, 1967).

    Point r belongs to sample r in canonical order. The sequence is not scrambled; its first 2^k
    points have distinct coordinates in each dimension.
    """
    from scipy.stats import qmc  # takes a second to import, and only this order needs it

    if epoch.index >= qmc.Sobol.MAXDIM:
        raise OrderError(
            f"sobol has {qmc.Sobol.MAXDIM} dimensions, one for each epoch, and epoch {epoch.index} "
            "(offset included) has none; use order 'content' for longer training"
        )
    dimensions = epoch.index + 1
    # Powers of two at a time, because scipy warns about other numbers of points.
    block = 1 << max(0, (_SOBOL_BLOCK // dimensions).bit_length() - 1)
    block = min(block, 1 << (len(samples) - 1).bit_length())
    engine = qmc.Sobol(dimensions, scramble=False)
    keys = np.concatenate([engine.random(block)[:, -1] for _ in range(0, len(samples), block)])
    return np.argsort(keys[: len(samples)], kind="stable")
