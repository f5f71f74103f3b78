"""Orders by the last epoch's losses. In the first epoch they equal the content order.

All sorts are stable, so samples of equal loss keep the canonical order.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from seedless.ordering.content_orders import content
from seedless.ordering.samples import Positions, Samples, group_equal_samples
from seedless.ordering.strategy import ArrangeFunction, EpochInputs

_QUANTILE_BINS = 10


def canonical_losses(samples: Samples, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the samples' losses in canonical order: (n,) by row of the data -> (m,).

    Equal samples may have unequal losses, because they were trained on at different steps. Their
    losses are sorted, so that the result does not depend on which of them was stored first.
    """
    sample_losses = losses[samples.rows]
    return sample_losses[np.lexsort((sample_losses, samples.compute_once(group_equal_samples)))]


def _after_first_pass(
    arrange: Callable[[Samples, EpochInputs, NDArray[np.float64]], Positions],
) -> ArrangeFunction:
    """Return a strategy that uses the content order until there are losses."""

    def arranged(samples: Samples, epoch: EpochInputs) -> Positions:
        if epoch.losses is None:
            return content(samples, epoch)
        return arrange(samples, epoch, epoch.losses)

    arranged.__doc__ = arrange.__doc__
    return arranged


@_after_first_pass
def loss_ranked(samples: Samples, epoch: EpochInputs, losses: NDArray[np.float64]) -> Positions:
    """Return the samples by loss, highest first."""
    return np.argsort(-losses, kind="stable")


@_after_first_pass
def interleaved_loss_ranked(
    samples: Samples, epoch: EpochInputs, losses: NDArray[np.float64]
) -> Positions:
    """Return highest loss, lowest, second highest, second lowest, and so on."""
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
    """Return one sample of each of ten quantile bins of the loss in turn."""
    ranked = np.argsort(losses, kind="stable")
    place = np.arange(len(ranked))
    bins = place * _QUANTILE_BINS // len(ranked)
    turn = place - np.searchsorted(bins, bins)  # place within the bin
    return ranked[np.lexsort((bins, turn))]


@_after_first_pass
def pair_balance(samples: Samples, epoch: EpochInputs, losses: NDArray[np.float64]) -> Positions:
    """Return GraB's pair-balanced order, with losses in place of gradients.

    Source: Lu, Guo and De Sa, "GraB: Finding provably better data permutations than random
    reshuffling", NeurIPS 2022.
    """
    # [Step 1] Pair the samples in the epoch's content order.
    start = content(samples, epoch)
    pairs = start[: len(start) // 2 * 2].reshape(-1, 2)
    # [Step 2] For each pair (a, b) with d = loss_a - loss_b choose the sign e = +-1 for which
    # |s + e d| is smaller, s being the running sum of all e d.
    running = 0.0
    swapped = np.empty(len(pairs), dtype=bool)
    for index, difference in enumerate((losses[pairs[:, 0]] - losses[pairs[:, 1]]).tolist()):
        swapped[index] = abs(running + difference) > abs(running - difference)
        running += -difference if swapped[index] else difference
    # [Step 3] With e = 1, a goes to the front and b to the back, else b to the front; the back is
    # filled from the end.
    front = np.where(swapped, pairs[:, 1], pairs[:, 0])
    back = np.where(swapped, pairs[:, 0], pairs[:, 1])
    return np.concatenate([front, start[2 * len(pairs) :], back[::-1]])
