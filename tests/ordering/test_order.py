"""Making an order, cutting a schedule, and everything that is refused."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
import torch

from seedless.core.digests import digest_samples, digest_value
from seedless.core.errors import DataError, OrderError, UnknownNameError
from seedless.ordering import ORDERS, make_order
from seedless.ordering.order import make_digest_order

X = np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32)
Y = np.arange(20) % 3


def test_there_are_fourteen() -> None:
    assert len(ORDERS) == 14


def test_indices_are_rows_of_the_data() -> None:
    labels = np.where(np.arange(20) < 5, -1, Y)
    order = make_order("content", X, labels)
    assert sorted(order.epoch(0).tolist()) == list(range(5, 20))
    assert len(order) == 15
    assert repr(order) == "Order('content', 15 of 20 samples)"


def test_arrays_lists_and_tensors_give_one_order() -> None:
    expected = make_order("content", X, Y).schedule(1).digest
    for data in (X.tolist(), torch.tensor(X), X.astype(np.float64), np.asfortranarray(X)):
        assert make_order("content", data, Y).schedule(1).digest == expected
    assert make_order("content", X, torch.tensor(Y)).schedule(1).digest == expected  # type: ignore[arg-type]


def test_labels_only_break_ties_in_content_order() -> None:
    with_labels, without = make_order("content", X, Y), make_order("content", X)
    np.testing.assert_array_equal(with_labels.epoch(3), without.epoch(3))


def test_a_schedule_is_the_epoch_cut() -> None:
    order = make_order("content", X, Y, batch_size=6)
    schedule = order.schedule(2)
    assert [len(batch) for batch in schedule.batches] == [6, 6, 6, 2]
    np.testing.assert_array_equal(np.concatenate(schedule.batches), order.epoch(2))
    assert [len(batch) for batch in order.schedule(2, 10).batches] == [10, 10]
    assert [len(batch) for batch in order.schedule(2, batch_size=50).batches] == [20]
    assert (schedule.epoch, schedule.batch_size) == (2, 6)


def test_the_digest_is_as_documented() -> None:
    order = make_order("content", X, Y, batch_size=6)
    hasher = hashlib.sha256()
    for row in order.epoch(2):
        hasher.update(digest_samples(X)[row].tobytes() + int(Y[row]).to_bytes(8, "big"))
    expected = digest_value(
        {"batch_size": 6, "epoch": 2, "label_bytes": 8, "samples": hasher.hexdigest()}
    )
    assert order.schedule(2).digest == expected


def test_the_digest_sees_epoch_batch_size_content_and_labels() -> None:
    order = make_order("content_static", X, Y)
    changed, relabelled = X.copy(), Y.copy()
    changed[3, 0] += 1
    relabelled[3] += 1
    digests = [
        order.schedule(0).digest,
        order.schedule(1).digest,
        order.schedule(0, batch_size=7).digest,
        make_order("content_static", changed, Y).schedule(0).digest,
        make_order("content_static", X, relabelled).schedule(0).digest,
        make_order("content_static", X).schedule(0).digest,
    ]
    assert len(set(digests)) == len(digests)


def test_the_digest_does_not_see_storage() -> None:
    move = np.random.default_rng(5).permutation(20)
    for name in sorted(ORDERS):
        here, there = make_order(name, X, Y), make_order(name, X[move], Y[move])
        same = here.schedule(1).digest == there.schedule(1).digest
        assert same is (name != "golden_index"), name


def test_seed_zero_is_the_default_of_seeded() -> None:
    default, zero = make_order("seeded", X), make_order("seeded", X, seed=0)
    np.testing.assert_array_equal(default.epoch(1), zero.epoch(1))
    assert not (make_order("seeded", X, seed=2**64 - 1).epoch(1) == zero.epoch(1)).all()


def test_numpy_integers_are_integers() -> None:
    order = make_order("seeded", X, seed=np.int64(3), batch_size=np.int32(4))  # type: ignore[arg-type]
    assert len(order.schedule(np.int64(1)).batches) == 5  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(set(ORDERS) - {"seeded"}))
def test_seed_free_orders_take_no_seed(name: str) -> None:
    with pytest.raises(OrderError, match="seed-free"):
        make_order(name, X, Y, seed=0)


@pytest.mark.parametrize("name", ["class_guaranteed", "class_diverse"])
def test_class_orders_need_labels(name: str) -> None:
    with pytest.raises(OrderError, match="pass labels"):
        make_order(name, X)


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'golden'.*known: class_diverse"):
        make_order("goldn", X)


@pytest.mark.parametrize("epoch", [-1, True, 1.0, "1", None, 2**63])
def test_bad_epochs_are_refused(epoch: Any) -> None:
    order = make_order("content", X)
    with pytest.raises(OrderError, match="expected epoch"):
        order.epoch(epoch)
    with pytest.raises(OrderError, match="expected epoch"):
        order.schedule(epoch)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "expected batch_size to be an integer from 1"),
        ({"batch_size": 2.0}, "expected batch_size to be an integer"),
        ({"offset": -1}, "expected offset to be an integer from 0"),
        ({"offset": False}, "expected offset to be an integer"),
        ({"seed": -1}, "expected seed to be an integer from 0"),
        ({"seed": 2**64}, "expected seed to be an integer from 0"),
        ({"seed": 0.5}, "expected seed to be an integer"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OrderError, match=message):
        make_order("seeded", X, **options)


def test_a_schedule_needs_a_batch_size() -> None:
    with pytest.raises(OrderError, match="expected batch_size to be an integer from 1"):
        make_order("content", X).schedule(0, batch_size=0)


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (np.empty((0, 4)), None, "no samples"),
        (np.empty((4, 0)), None, "no samples"),
        ([[1.0], [np.nan]], None, "sample 1 holds NaN"),
        (X, Y[:7], "7 labels for 20 samples"),
        (X, np.full(20, -1), "none of the 20 samples"),
        (X, np.zeros((20, 2, 2)), r"\(20, 2, 2\)"),
    ],
)
def test_bad_data_is_refused(data: Any, labels: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        make_order("content", data, labels)


def test_no_finding_can_be_an_answer() -> None:
    table = np.zeros((20, 3), dtype=int)
    table[:4, 1] = 1
    assert len(make_order("content", X, table)) == 4
    assert len(make_order("content", X, table, keep_unlabelled=True)) == 20


def test_the_order_of_today() -> None:
    """Committed: a change here changes every receipt ever written."""
    X = np.arange(36, dtype=np.float32).reshape(12, 3) / 8
    for name in ORDERS:
        order = make_order(name, X, np.arange(12) % 3, batch_size=4, offset=2)
        if order.needs_losses:
            order.observe(np.arange(12) * 5 % 12)
        assert order.epoch(1).tolist() == COMMITTED[name], name


COMMITTED = {
    "content": [0, 4, 11, 8, 9, 3, 6, 7, 2, 1, 10, 5],
    "content_static": [11, 10, 7, 0, 8, 3, 9, 2, 1, 5, 4, 6],
    "golden": [10, 0, 3, 6, 9, 2, 5, 8, 11, 1, 4, 7],
    "golden_index": [10, 2, 7, 4, 9, 1, 6, 11, 3, 8, 0, 5],
    "sobol": [3, 1, 0, 11, 4, 8, 5, 10, 7, 9, 6, 2],
    "seeded": [1, 11, 3, 10, 2, 4, 9, 6, 0, 8, 7, 5],
    "class_guaranteed": [0, 4, 11, 6, 8, 9, 7, 10, 3, 2, 1, 5],
    "class_diverse": [0, 4, 11, 9, 7, 8, 3, 1, 2, 6, 10, 5],
    "feature_diverse": [11, 8, 5, 2, 10, 7, 4, 1, 9, 6, 3, 0],
    "herding": [5, 6, 4, 7, 3, 8, 9, 2, 10, 1, 11, 0],
    "stratified_quantile": [0, 10, 3, 8, 1, 6, 4, 9, 2, 7, 5, 11],
    "loss_ranked": [7, 2, 9, 4, 11, 6, 1, 8, 3, 10, 5, 0],
    "interleaved_loss_ranked": [7, 0, 2, 5, 9, 10, 4, 3, 11, 8, 6, 1],
    "pair_balance": [0, 11, 9, 6, 2, 5, 10, 1, 7, 3, 8, 4],
}


def test_an_order_over_digests_is_that_over_the_samples() -> None:
    whole = make_order("content", X, batch_size=6)
    known = make_digest_order("content", digest_samples(X), batch_size=6)
    for epoch in (0, 3):
        np.testing.assert_array_equal(whole.epoch(epoch), known.epoch(epoch))
        assert whole.schedule(epoch).digest == known.schedule(epoch).digest


@pytest.mark.parametrize("name", ["golden", "content_static", "herding", "class_diverse"])
def test_an_order_that_looks_at_values_or_labels_cannot_be_made_from_digests(name: str) -> None:
    with pytest.raises(OrderError, match=r"known by their digests alone; .*use one of content"):
        make_digest_order(name, digest_samples(np.arange(4.0)[:, None]))
