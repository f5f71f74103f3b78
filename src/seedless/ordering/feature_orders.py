"""Orders by the samples' features: batches that span the data, or whose mean follows the data's.

The features are small integers, so that every dot product of them is exact in float64 and has the
same bits on every machine.
"""

import numpy as np
from numpy.typing import NDArray

from seedless.numerics.correct_rounding import rounded_cosines
from seedless.numerics.exact_sums import exact_row_sums
from seedless.ordering.samples import Positions, Samples
from seedless.ordering.strategy import EpochInputs

Float64 = NDArray[np.float64]
_PHI_NUMERATOR, _PHI_DENOMINATOR = 6765, 10946  # consecutive Fibonacci numbers: a ratio near phi
_CANDIDATES = 1 << 18  # numbers that one step of herding reads: up to 20,000 samples of 12 features
_MAX_FEATURE_BITS = 24


def feature_diverse(samples: Samples, epoch: EpochInputs) -> Positions:
    """Return an order in which every batch spans the range of a direction in feature space.

    The direction changes with the epoch. With B full batches, batch b takes every B-th sample along
    the direction, from the b-th on.
    """
    # [Step 1] Rank the samples along the epoch's direction.
    features = samples.compute_once(integer_features)
    along = features @ epoch_direction(epoch.index, *features.shape)
    ranked = np.argsort(along, kind="stable")
    # [Step 2] Take a shorter last batch out first, evenly spaced over the ranks.
    full = len(ranked) // epoch.batch_size
    rest = len(ranked) - full * epoch.batch_size
    last_batch = (2 * np.arange(rest) + 1) * len(ranked) // (2 * max(1, rest))
    # [Step 3] Deal the others to the full batches in turn.
    dealt = np.delete(ranked, last_batch).reshape(epoch.batch_size, full)
    return np.concatenate([dealt.T.ravel(), ranked[last_batch]])


def epoch_direction(epoch: int, samples: int, features: int) -> Float64:
    """Return w_j = cos(2 pi phi (epoch + 1)(j + 1)), scaled and rounded to integers: float64 (D,).

    phi is approximated by a ratio of Fibonacci numbers, so that the phases are exact; the first
    5,472 epochs have different directions. The result has as many bits as the features.
    """
    phase = (2 * _PHI_NUMERATOR * (epoch + 1)) % (2 * _PHI_DENOMINATOR)
    cosines = rounded_cosines(phase * np.arange(1, features + 1), _PHI_DENOMINATOR)
    return np.rint(np.ldexp(cosines, feature_bits(samples, features) - 1))


def herding(samples: Samples, epoch: EpochInputs) -> Positions:
    """Return a greedy order whose running feature mean follows the dataset's; same every epoch.

    Source: Welling, "Herding dynamical weights to learn", ICML 2009. The features are centred, so
    the mean to follow is zero: each step takes the sample q for which the running sum r becomes
    shortest, |r + q|^2 = |r|^2 + 2 r.q + |q|^2, in exact integers. A large set is searched within
    2^18 / D candidates; the chosen one is replaced by the next sample in canonical order, so that
    the cost grows linearly with the number of samples.
    """
    return samples.compute_once(_herd)


def _herd(samples: Samples) -> Positions:
    # [Step 1] The first samples in canonical order are the candidates.
    features = samples.compute_once(integer_features)
    squares = (features * features).sum(axis=1)
    count = len(features)
    window = min(count, max(1, _CANDIDATES // features.shape[1]))
    candidates = np.arange(window)
    points, costs = features[:window].copy(), squares[:window].copy()
    running = np.zeros(features.shape[1])
    out = np.empty(count, dtype=np.int64)
    for step in range(count):
        # [Step 2] Take the candidate with the shortest running sum; of equals, the first.
        slot = int(np.argmin(points @ (2.0 * running) + costs))
        out[step] = candidates[slot]
        running += points[slot]
        # [Step 3] Replace it by the next sample, or exclude its slot when no sample is left.
        next_sample = window + step
        if next_sample < count:
            candidates[slot] = next_sample
            points[slot] = features[next_sample]
            costs[slot] = squares[next_sample]
        else:
            costs[slot] = np.inf
    return out


def pooled_features(samples: Samples) -> Float64:
    """Return each sample's features: float64 (m, D).

    Records of shape (channels, ..., time) are averaged over the last axis; vectors are used as they
    are. The sums are exactly rounded, so they do not depend on the order of summation.
    """
    records = samples.records()
    if records.ndim < 3:
        flat: Float64 = records.reshape(len(records), -1)[samples.rows].astype(np.float64)
        return flat
    length = int(records.shape[-1])
    sums = exact_row_sums(records.reshape(-1, length)).reshape(len(records), -1)
    return sums[samples.rows] / length


def feature_bits(samples: int, features: int) -> int:
    """Return b, the number of bits of `integer_features`."""
    sum_bits = (features - 1).bit_length() + (samples - 1).bit_length()
    return min(_MAX_FEATURE_BITS, (53 - sum_bits) // 2)


def integer_features(samples: Samples) -> Float64:
    """Return the features, centred and rounded to integers of b bits: float64 (m, D).

    The integers are at most 2^(b-1) in size, so a dot product of one sample's features with a sum
    over up to m samples is at most D m 2^(2b-2) <= 2^51 with b = (53 - log2 D - log2 m) / 2. Every
    partial sum is then an integer that float64 represents exactly, so the result does not depend on
    the BLAS library's order, threads or fused operations.
    """
    features = pooled_features(samples)
    mean = exact_row_sums(np.ascontiguousarray(features.T)) / len(features)
    centred = features - mean
    peak = np.abs(centred).max()
    bits = feature_bits(*features.shape)
    exponent = int(np.frexp(peak)[1])  # peak <= 2^exponent; the scale is a power of two, so exact
    return np.rint(np.ldexp(centred, bits - 1 - exponent))
