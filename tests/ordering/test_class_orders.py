"""What class-based orders promise about each batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from seedless.ordering import make_order


def data(count: int) -> NDArray[np.float64]:
    return np.random.default_rng(count).standard_normal((count, 3))


def held(batches: tuple[Any, ...], table: NDArray[Any]) -> NDArray[np.int64]:
    return np.array([table[batch].sum(axis=0) for batch in batches])


def test_every_batch_has_every_class_that_suffices() -> None:
    labels = np.repeat([0, 1, 2, 3], [800, 100, 60, 17])
    schedule = make_order("class_guaranteed", data(977), labels, batch_size=64).schedule(2)
    counts = held(schedule.batches, np.eye(4, dtype=int)[labels])
    assert [len(batch) for batch in schedule.batches] == [64] * 15 + [17]
    assert (counts >= 1).all()


def test_content_order_makes_no_such_promise() -> None:
    labels = np.repeat([0, 1, 2, 3], [800, 100, 60, 17])
    schedule = make_order("content", data(977), labels, batch_size=64).schedule(2)
    assert (held(schedule.batches, np.eye(4, dtype=int)[labels]) == 0).any()


@pytest.mark.parametrize("rare", [1, 2, 3, 5, 9])
def test_rare_classes_are_spread_evenly(rare: int) -> None:
    labels = np.repeat([0, 1], [640 - rare, rare])
    order = make_order("class_guaranteed", data(640), labels, batch_size=64)
    firsts = set()
    for epoch in range(20):
        counts = held(order.schedule(epoch).batches, np.eye(2, dtype=int)[labels])[:, 1]
        where = np.flatnonzero(counts)
        assert counts.max() == 1
        gaps = np.diff(np.append(where, where[0] + 10))  # around the circle of ten batches
        assert gaps.max() - gaps.min() <= 1
        firsts.add(int(where[0]))
    assert len(firsts) > 1 or rare == 9  # not the same batches every epoch


def test_guarantee_holds_for_multi_label_data() -> None:
    """Random tables, sparse and dense; no batch has two samples of a rare class either."""
    for trial in range(60):
        rng = np.random.default_rng(trial)
        classes = int(rng.integers(2, 9))
        count, size = int(rng.integers(20, 300)), int(rng.integers(classes, 40))
        table = rng.random((count, classes)) < rng.choice([0.05, 0.3, 0.6]) * rng.random(classes)
        table[~table.any(axis=1), 0] = True
        schedule = make_order("class_guaranteed", data(count), table, batch_size=size).schedule(0)
        counts = held(schedule.batches, table)
        enough = table.sum(axis=0) >= len(schedule.batches)
        large = np.array([len(batch) >= classes for batch in schedule.batches])
        assert (counts[large][:, enough] >= 1).all(), trial
        assert (counts[:, ~enough] <= 1).all(), trial
        assert {len(batch) for batch in schedule.batches[:-1]} <= {size}


def test_swaps_mend_what_greedy_placing_cannot() -> None:
    """Rare classes drag their companions into the same batches; the guarantee must survive it."""
    count, size = 40, 10
    table = np.zeros((count, 6), dtype=bool)
    table[:4, 5] = True  # exactly one for each of four batches ...
    table[[0, 1, 2, 3], [1, 2, 3, 4]] = True  # ... each of which comes with a class of its own
    table[:, 0] = True
    for epoch in range(20):
        order = make_order("class_guaranteed", data(count), table, batch_size=size)
        assert (held(order.schedule(epoch).batches, table)[:, 5] == 1).all()


def test_more_classes_than_places_is_still_a_permutation() -> None:
    labels = np.arange(50) % 20
    order = make_order("class_guaranteed", data(50), labels, batch_size=3)
    assert sorted(order.epoch(0).tolist()) == list(range(50))


def test_schedule_composes_for_its_own_batch_size() -> None:
    labels = np.repeat([0, 1], [90, 10])
    order = make_order("class_guaranteed", data(100), labels, batch_size=50)
    counts = held(order.schedule(0, batch_size=10).batches, np.eye(2, dtype=int)[labels])
    assert (counts[:, 1] == 1).all()


def test_kept_rows_without_a_class_take_part() -> None:
    table = np.zeros((60, 3), dtype=int)
    table[:12, 0] = 1
    for name in ("class_guaranteed", "class_diverse"):
        order = make_order(name, data(60), table, batch_size=10, keep_unlabelled=True)
        assert len(order.epoch(0)) == 60
        assert len(make_order(name, data(60), table).epoch(0)) == 12


def test_class_diverse_deals_in_turn() -> None:
    labels = np.repeat([7, 3, 5], [2, 4, 6])
    dealt = labels[make_order("class_diverse", data(12), labels).epoch(0)]
    assert dealt.tolist() == [3, 5, 7, 3, 5, 7, 3, 5, 3, 5, 5, 5]


def test_class_diverse_counts_a_sample_for_its_rarest_class() -> None:
    table = np.array([[1, 0], [1, 0], [1, 0], [1, 1]])
    assert make_order("class_diverse", data(4), table).epoch(0)[1] == 3


def test_class_diverse_follows_the_epochs_content_order() -> None:
    X, labels = data(90), np.arange(90) % 3
    content, diverse = make_order("content", X, labels), make_order("class_diverse", X, labels)
    for epoch in (0, 4):
        rows, dealt = content.epoch(epoch), diverse.epoch(epoch)
        for label in range(3):
            np.testing.assert_array_equal(
                rows[labels[rows] == label], dealt[labels[dealt] == label]
            )
