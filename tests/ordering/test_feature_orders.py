"""Orders by the samples' features."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from seedless.ordering import feature_orders, make_order
from seedless.ordering.feature_orders import (
    epoch_direction,
    feature_bits,
    integer_features,
    pooled_features,
)
from seedless.ordering.samples import read_samples
from tests.ordering.signals import signals


def test_features_are_means_over_time() -> None:
    X = signals()
    samples = read_samples(X, None)
    expected = X.astype(np.float64).mean(axis=-1)[samples.rows]
    np.testing.assert_allclose(pooled_features(samples), expected, rtol=1e-14, atol=1e-15)
    flat = read_samples(X[:, :, 0], None)
    np.testing.assert_array_equal(pooled_features(flat), X[:, :, 0][flat.rows])


def test_features_are_integers_small_enough_for_exact_products() -> None:
    samples = read_samples(signals(), None)
    features = integer_features(samples)
    count, width = features.shape
    bits = feature_bits(count, width)
    assert (features == np.rint(features)).all()
    assert 2 ** (bits - 2) <= np.abs(features).max() <= 2 ** (bits - 1)
    assert count * width * 4 ** (bits - 1) <= 2**51
    direction = epoch_direction(3, count, width)
    exact = [sum(int(a) * int(b) for a, b in zip(row, direction, strict=True)) for row in features]
    assert (features @ direction).tolist() == exact
    assert (features[:, ::-1] @ direction[::-1]).tolist() == exact


@pytest.mark.parametrize(("count", "width"), [(1, 1), (17_418, 12), (90_000, 3072), (2**20, 2**20)])
def test_bits_leave_room_for_the_largest_sum(count: int, width: int) -> None:
    bits = feature_bits(count, width)
    assert 2 <= bits <= 24
    assert count * width * 4 ** (bits - 1) <= 2**51


def test_constant_features_are_zero() -> None:
    assert not integer_features(read_samples(np.full((5, 3), 7.0), None)).any()


def test_each_feature_diverse_batch_spans_the_range() -> None:
    X = signals(203)
    order = make_order("feature_diverse", X, batch_size=16)
    schedule = order.schedule(1)
    features = order.samples.compute_once(integer_features)
    along = np.empty(203)
    along[order.samples.rows] = features @ epoch_direction(1, *features.shape)
    ranks = np.argsort(np.argsort(along))
    assert [len(batch) for batch in schedule.batches] == [16] * 12 + [11]
    for batch in schedule.batches:
        cut = np.sort(ranks[batch]) * len(batch) // 203  # one sample in each stratum, nearly
        assert np.abs(cut - np.arange(len(batch))).max() <= 1


def test_directions_turn() -> None:
    directions = {epoch_direction(epoch, 100, 5).tobytes() for epoch in range(500)}
    assert len(directions) == 500
    order = make_order("feature_diverse", signals())
    assert not (order.epoch(0) == order.epoch(1)).all()


def test_herding_is_greedy() -> None:
    order = make_order("herding", signals(40))
    features = order.samples.compute_once(integer_features)
    place = {row: position for position, row in enumerate(order.samples.rows.tolist())}
    taken = [place[row] for row in order.epoch(0).tolist()]
    running, left = np.zeros(4), set(range(40))
    for position in taken:
        lengths = {other: ((running + features[other]) ** 2).sum() for other in left}
        assert lengths[position] == min(lengths.values())
        left.remove(position)
        running += features[position]
    np.testing.assert_array_equal(order.epoch(0), order.epoch(9))


@pytest.mark.parametrize("candidates", [32, 1 << 18])
def test_herding_means_follow_the_dataset(candidates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_orders, "_CANDIDATES", candidates)
    X = signals()
    centred = X.mean(axis=2) - X.mean(axis=(0, 2))

    def drift(rows: NDArray[np.int64]) -> float:
        return float(np.linalg.norm(np.cumsum(centred[rows], axis=0), axis=1).mean())

    herding, content = make_order("herding", X), make_order("content", X)
    assert sorted(herding.epoch(0).tolist()) == list(range(150))
    assert drift(herding.epoch(0)) < 0.5 * drift(content.epoch(0))
