"""Input features as small integers, so that every dot product of them is exact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seedless.numerics.exact_sums import exact_row_sums
from seedless.ordering.samples import Samples

Float64 = NDArray[np.float64]


def pooled_features(samples: Samples) -> Float64:
    """Return each sample's features, float64 (m, D).

    Records of shape (channels, ..., time) are averaged over the last axis; vectors are taken as
    they are. The sums are exactly rounded, so they depend on no order of summation.
    """
    records = samples.records()
    if records.ndim < 3:
        flat: Float64 = records.reshape(len(records), -1)[samples.rows].astype(np.float64)
        return flat
    length = int(records.shape[-1])
    sums = exact_row_sums(records.reshape(-1, length)).reshape(len(records), -1)
    return sums[samples.rows] / length


def feature_bits(samples: int, features: int) -> int:
    """Return b, the bits that `integer_features` may use; see there."""
    return min(24, (53 - (features - 1).bit_length() - (samples - 1).bit_length()) // 2)


def integer_features(samples: Samples) -> Float64:
    """Return the features, centred and rounded to integers of b bits, float64 (m, D).

    The integers are at most 2^(b-1) in size, so a dot product of one sample's features with a sum
    of up to m samples' is at most D m 2^(2b-2) <= 2^51 with b = (53 - log2 D - log2 m) / 2. Every
    partial sum is then an integer that float64 holds exactly: whatever the order, the threads or
    the fused operations of the library, the result has the same bits.
    """
    features = pooled_features(samples)
    mean = exact_row_sums(np.ascontiguousarray(features.T)) / len(features)
    centred = features - mean
    peak = np.abs(centred).max()
    bits = feature_bits(*features.shape)
    exponent = int(np.frexp(peak)[1])  # peak <= 2^exponent; the scale is a power of two, so exact
    return np.rint(np.ldexp(centred, bits - 1 - exponent))
