"""Orders that look at the inputs: batches that span the data, and means that follow it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seedless.numerics.correct_rounding import rounded_cosines
from seedless.ordering.features import feature_bits, integer_features
from seedless.ordering.samples import Positions, Samples
from seedless.ordering.strategy import EpochInputs

_TURN, _CIRCLE = 6765, 10946  # neighbours in Fibonacci's sequence: their ratio is near phi
_CANDIDATES = 1 << 18  # numbers read a step: all samples where 12 features of 20,000 fit


def feature_diverse(samples: Samples, epoch: EpochInputs) -> Positions:
    """Sort the samples along a direction that turns with the epoch, then stride through them.

    With B full batches, batch b takes every B-th sample from the b-th on, and so spans the range.
    A shorter last batch is taken out first, evenly spaced.
    """
    features = samples.once(integer_features)
    along = features @ turning_direction(epoch.index, *features.shape)
    ranked = np.argsort(along, kind="stable")
    full = len(ranked) // epoch.batch_size
    last = len(ranked) - full * epoch.batch_size
    apart = (2 * np.arange(last) + 1) * len(ranked) // (2 * max(1, last))
    strided = np.delete(ranked, apart).reshape(epoch.batch_size, full)
    return np.concatenate([strided.T.ravel(), ranked[apart]])


def turning_direction(epoch: int, samples: int, features: int) -> NDArray[np.float64]:
    """Return w_j = cos(2 pi phi (epoch + 1)(j + 1)), rounded to integers: float64 (D,).

    phi is taken as a ratio of Fibonacci numbers, so phases are exact; directions of the first 5,472
    epochs differ. Cosines are correctly rounded and the result has as many bits as the features.
    """
    phases = (2 * _TURN * (epoch + 1)) % (2 * _CIRCLE) * np.arange(1, features + 1)
    return np.rint(np.ldexp(rounded_cosines(phases, _CIRCLE), feature_bits(samples, features) - 1))


def herding(samples: Samples, epoch: EpochInputs) -> Positions:
    """A greedy order whose running mean of the features follows the dataset's; same every epoch.

    The features are centred, so the mean to follow is zero: each step takes the sample q that
    makes the running sum r shortest, |r + q|^2 = |r|^2 + 2 r.q + |q|^2, in exact integers. The
    choice is among all that are left, or, in a large set, among a window of 2^18 / D samples: the
    one taken is replaced by the next in canonical order, so that the cost stays linear.
    """
    return samples.once(_herd)


def _herd(samples: Samples) -> Positions:
    features = samples.once(integer_features)
    squares = (features * features).sum(axis=1)
    count = len(features)
    window = min(count, max(1, _CANDIDATES // features.shape[1]))
    candidates = np.arange(window)
    points, costs = features[:window].copy(), squares[:window].copy()
    running = np.zeros(features.shape[1])
    out = np.empty(count, dtype=np.int64)
    for step in range(count):
        slot = int(np.argmin(points @ (2.0 * running) + costs))
        out[step] = candidates[slot]
        running += points[slot]
        following = window + step
        if following < count:
            candidates[slot] = following
            points[slot] = features[following]
            costs[slot] = squares[following]
        else:
            costs[slot] = np.inf
    return out
