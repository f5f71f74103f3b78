"""Orders that read losses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seedless.core.errors import DataError, OrderError
from seedless.ordering import ORDERS, Order, make_order

READERS = sorted(name for name in ORDERS if ORDERS[name].needs_losses)
COUNT = 53
X = np.random.default_rng(0).standard_normal((COUNT, 3))
LABELS = np.arange(COUNT) % 4 - 1  # a quarter is unlabelled
LABELLED = np.flatnonzero(LABELS >= 0)
LOSSES = np.random.default_rng(1).random(COUNT)


def reader(name: str) -> Order:
    return make_order(name, X, LABELS)


def test_there_are_four() -> None:
    assert len(READERS) == 4


@pytest.mark.parametrize("name", READERS)
def test_content_order_until_losses_are_seen(name: str) -> None:
    order, content = reader(name), make_order("content", X, LABELS)
    assert order.needs_losses
    assert order.state() == {}
    for epoch in (0, 3):
        np.testing.assert_array_equal(order.epoch(epoch), content.epoch(epoch))
    assert order.observe(LOSSES) is order
    assert not (order.epoch(3) == content.epoch(3)).all()


@pytest.mark.parametrize("name", READERS)
def test_restored_state_gives_the_same_order(name: str) -> None:
    order = reader(name).observe(LOSSES)
    state = order.state()
    np.testing.assert_array_equal(reader(name).restore(state).epoch(5), order.epoch(5))
    first = order.epoch(5)
    order.observe(LOSSES[::-1])
    assert not (order.epoch(5) == first).all()
    np.testing.assert_array_equal(order.restore(state).epoch(5), first)
    content = make_order("content", X, LABELS)
    np.testing.assert_array_equal(order.restore({}).epoch(5), content.epoch(5))


@pytest.mark.parametrize("name", READERS)
def test_state_and_order_ignore_storage(name: str) -> None:
    move = np.random.default_rng(2).permutation(COUNT)
    here = reader(name).observe(LOSSES)
    there = make_order(name, X[move], LABELS[move]).observe(LOSSES[move])
    assert here.state()["losses"].tobytes() == there.state()["losses"].tobytes()
    assert here.schedule(1).digest == there.schedule(1).digest


def test_state_is_a_copy() -> None:
    order = reader("loss_ranked").observe(LOSSES)
    before = order.epoch(0)
    order.state()["losses"][:] = 0
    np.testing.assert_array_equal(order.epoch(0), before)


def test_highest_first() -> None:
    ranked = LOSSES[reader("loss_ranked").observe(LOSSES).epoch(0)]
    assert (np.diff(ranked) < 0).all()


def test_high_and_low_in_turn() -> None:
    taken = LOSSES[reader("interleaved_loss_ranked").observe(LOSSES).epoch(0)]
    ascending = np.sort(LOSSES[LABELLED])
    assert taken[:4].tolist() == [ascending[i] for i in (-1, 0, -2, 1)]


def test_ten_quantiles_in_turn() -> None:
    taken = LOSSES[reader("stratified_quantile").observe(LOSSES).epoch(0)]
    ranks = np.argsort(np.argsort(taken))
    bins = ranks * 10 // len(ranks)
    assert bins[:30].tolist() == [*range(10)] * 3


def test_equal_losses_fall_back_on_the_canonical_order() -> None:
    order = reader("loss_ranked").observe(np.ones(COUNT))
    np.testing.assert_array_equal(order.epoch(4), order.samples.rows)


def test_pairs_are_balanced() -> None:
    """The signed sum of pair differences stays within the largest difference."""
    order = reader("pair_balance").observe(LOSSES)
    rows, pairs = order.epoch(2), make_order("content", X, LABELS).epoch(2)
    place = np.argsort(rows)[np.searchsorted(np.sort(rows), pairs)]
    half = len(pairs) // 2
    signs = [1 if place[2 * i] < place[2 * i + 1] else -1 for i in range(half)]
    differences = LOSSES[pairs[0 : 2 * half : 2]] - LOSSES[pairs[1 : 2 * half : 2]]
    running = np.abs(np.cumsum(signs * differences))
    assert running.max() <= np.abs(differences).max() + 1e-12
    assert {int(place[2 * i]) for i in range(3)} | {int(place[2 * i + 1]) for i in range(3)} == {
        0,
        1,
        2,
        len(rows) - 1,
        len(rows) - 2,
        len(rows) - 3,
    }


def test_unlabelled_losses_are_ignored() -> None:
    spoiled = np.where(LABELS < 0, np.nan, LOSSES)
    first = reader("loss_ranked").observe(spoiled).epoch(0)
    np.testing.assert_array_equal(first, reader("loss_ranked").observe(LOSSES).epoch(0))


def test_tensors_are_read() -> None:
    order = reader("loss_ranked").observe(torch.tensor(LOSSES, requires_grad=True))  # type: ignore[arg-type]
    np.testing.assert_array_equal(order.epoch(0), reader("loss_ranked").observe(LOSSES).epoch(0))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_losses_that_are_not_finite_are_refused(value: float) -> None:
    losses = LOSSES.copy()
    losses[LABELLED[3]] = value
    with pytest.raises(DataError, match=f"loss of row {LABELLED[3]} is {value}"):
        reader("loss_ranked").observe(losses)


def test_losses_of_another_length_are_refused() -> None:
    with pytest.raises(DataError, match=r"shape \(53,\), got float64 of shape \(39,\)"):
        reader("loss_ranked").observe(LOSSES[LABELLED][:39])
    with pytest.raises(DataError, match="got <U1"):
        reader("loss_ranked").observe(["x"] * COUNT)


def test_other_orders_take_no_losses() -> None:
    for name in sorted(set(ORDERS) - set(READERS)):
        order = reader(name)
        assert not order.needs_losses
        assert order.restore(order.state()) is order
        with pytest.raises(OrderError, match="takes no losses"):
            order.observe(LOSSES)
        with pytest.raises(OrderError, match="hold nothing"):
            order.restore({"losses": LOSSES})


def test_states_of_other_orders_are_refused() -> None:
    order = reader("loss_ranked")
    with pytest.raises(OrderError, match=r"hold \['losses'\], got \['gains'\]"):
        order.restore({"gains": LOSSES})
    with pytest.raises(OrderError, match="expected 39 finite losses"):
        order.restore({"losses": LOSSES})
    with pytest.raises(OrderError, match="finite losses"):
        order.restore({"losses": np.full(39, np.nan)})
