"""Orders by Sobol points, and which orders are the same every epoch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import qmc

from seedless.core.errors import OrderError
from seedless.ordering import content_orders, make_order
from tests.ordering.signals import signals


@pytest.mark.parametrize("epoch", [0, 1, 10])
def test_sobol_sorts_by_the_epochs_coordinate(epoch: int) -> None:
    order = make_order("sobol", signals(100))
    points = qmc.Sobol(epoch + 1, scramble=False).random(128)[:100, epoch]
    assert len(np.unique(points)) == 100
    expected = order.samples.rows[np.argsort(points)]
    np.testing.assert_array_equal(order.epoch(epoch), expected)


def test_sobol_in_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    order = make_order("sobol", signals(100))
    whole = [order.epoch(epoch) for epoch in range(4)]
    monkeypatch.setattr(content_orders, "_SOBOL_BLOCK", 50)
    for epoch, rows in enumerate(whole):
        np.testing.assert_array_equal(order.epoch(epoch), rows)


def test_sobol_has_a_last_epoch() -> None:
    order = make_order("sobol", signals(20))
    assert len(order.epoch(21_200)) == 20
    with pytest.raises(OrderError, match="21201 dimensions"):
        order.epoch(21_201)
    with pytest.raises(OrderError, match="offset included"):
        make_order("sobol", signals(20), offset=21_201)


def test_static_orders_are_static_and_others_are_not() -> None:
    same = {"content_static", "herding"}
    changing = {"content", "golden", "golden_index", "seeded", "sobol", "feature_diverse"}
    for name in same | changing:
        order = make_order(name, signals())
        repeats = [
            (order.epoch(a) == order.epoch(b)).all() for a, b in itertools.combinations(range(5), 2)
        ]
        assert all(repeats) if name in same else not any(repeats), name
