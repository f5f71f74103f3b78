"""Orders that read the last pass's losses. Before the first pass they are the content order.

All sorts are stable on canonical order, so equal losses fall back on it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from seedless.ordering.samples import Positions, Samples, group_equal_samples
from seedless.ordering.shuffle_orders import content
from seedless.ordering.strategy import ArrangeFunction, EpochInputs

_BINS = 10


def canonical_losses(samples: Samples, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring one loss a record into canonical order: (n,) -> (m,).

    Equal samples may have unequal losses (they were met at different steps). These are sorted, so
    that nothing depends on which of the equals was stored first.
    """
    own = losses[samples.rows]
    return own[np.lexsort((own, samples.once(group_equal_samples)))]


def _after_first_pass(
    arrange: Callable[[Samples, EpochInputs, NDArray[np.float64]], Positions],
) -> ArrangeFunction:
    """Use the content order until there are losses."""

    def arranged(samples: Samples, epoch: EpochInputs) -> Positions:
        if epoch.losses is None:
            return content(samples, epoch)
        return arrange(samples, epoch, epoch.losses)

    arranged.__doc__ = arrange.__doc__
    return arranged


@_after_first_pass
def loss_ranked(samples: Samples, epoch: EpochInputs, losses: NDArray[np.float64]) -> Positions:
    """Sort by loss, highest first."""
    return np.argsort(-losses, kind="stable")


@_after_first_pass
def interleaved_loss_ranked(
    samples: Samples, epoch: EpochInputs, losses: NDArray[np.float64]
) -> Positions:
    """Take highest, lowest, second highest, second lowest, and so on."""
    ranked = np.argsort(-losses, kind="stable")
    out = np.empty_like(ranked)
    half = (len(ranked) + 1) // 2
    out[0::2] = ranked[:half]
    out[1::2] = ranked[half:][::-1]
    return out


@_after_first_pass
def stratified_quantile(
    samples: Samples, epoch: EpochInputs, losses: NDArray[np.float64]
) -> Positions:
    """Cut the samples, sorted by loss, into ten quantile bins and deal one of each in turn."""
    ranked = np.argsort(losses, kind="stable")
    place = np.arange(len(ranked))
    bins = place * _BINS // len(ranked)
    turn = place - np.searchsorted(bins, bins)  # place within the bin
    return ranked[np.lexsort((bins, turn))]


@_after_first_pass
def pair_balance(samples: Samples, epoch: EpochInputs, losses: NDArray[np.float64]) -> Positions:
    """Balance pairs by sign (GraB's pair balancing, Lu et al. 2022), with losses for gradients.

    Samples are paired in the epoch's content order. Of a pair with difference d = loss_a - loss_b,
    the sign e = +-1 that keeps |s + e d| small is chosen, s the running sum of the e d. With e = 1
    a goes to the front and b to the back, else the other way round; the back fills from the end.
    """
    start = content(samples, epoch)
    pairs = start[: len(start) // 2 * 2].reshape(-1, 2)
    running = 0.0
    turned = np.empty(len(pairs), dtype=bool)
    for index, difference in enumerate((losses[pairs[:, 0]] - losses[pairs[:, 1]]).tolist()):
        turned[index] = abs(running + difference) > abs(running - difference)
        running += -difference if turned[index] else difference
    front = np.where(turned, pairs[:, 1], pairs[:, 0])
    back = np.where(turned, pairs[:, 0], pairs[:, 1])
    return np.concatenate([front, start[2 * len(pairs) :], back[::-1]])
