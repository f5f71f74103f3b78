"""Laws of batch orders: permutations, blind to storage, pure functions of data, labels and epoch.

Each law about storage is stated once, as a function, and applied both to our strategies and to
ones that must break it.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from seedless.ordering import ORDERS, make_order
from seedless.ordering.strategy import Strategy

BLIND_TO_STORAGE = sorted(set(ORDERS) - {"golden_index"})
laws = settings(max_examples=12, deadline=None, derandomize=True)


@dataclass(frozen=True)
class Case:
    """A small dataset with duplicates, some of them under other labels, and some unlabelled."""

    X: NDArray[Any]
    labels: NDArray[Any]
    losses: NDArray[np.float64]
    batch_size: int

    def shuffled(self, seed: int) -> Case:
        move = np.random.default_rng(seed).permutation(len(self.X))
        return Case(self.X[move], self.labels[move], self.losses[move], self.batch_size)

    def labelled(self) -> NDArray[np.int64]:
        named = self.labels >= 0 if self.labels.ndim == 1 else self.labels.any(axis=1)
        return np.flatnonzero(named)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    count = draw(st.sampled_from([1, 2, 3, 7, 10, 31, 64, 97]))
    shape = draw(st.sampled_from([(5,), (3, 8), (2, 4, 4)]))
    pool = rng.standard_normal((max(1, count * 2 // 3), *shape)).astype(np.float32)
    X = pool[rng.integers(0, len(pool), count)]
    classes = draw(st.integers(2, 6))
    if draw(st.booleans()):
        labels = rng.integers(-1, classes, count)
        labels[0] = 1
    else:
        labels = (rng.random((count, classes)) < 0.3).astype(draw(st.sampled_from("bif")))
        labels[0, 0] = 1
    losses = rng.choice([0.25, 0.5, *rng.random(9)], count)
    return Case(X, labels, losses, draw(st.sampled_from([1, 4, 16, 128])))


def make(name: str, case: Case) -> Any:
    return make_order(name, case.X, labels=case.labels, batch_size=case.batch_size)


def sample_sequences(name: str, case: Case) -> list[list[bytes]]:
    """Return the samples, as bytes, in the order of three epochs, then of one after losses."""
    order = make(name, case)
    epochs = [order.epoch(epoch) for epoch in (0, 1, 7)]
    if order.needs_losses:
        epochs.append(order.observe(case.losses).epoch(2))
    return [[case.X[i].tobytes() + case.labels[i].tobytes() for i in rows] for rows in epochs]


def storage_shows(name: str, case: Case, seed: int) -> bool:
    """The law: stored in another order, the same samples must come in the same sequence."""
    return sample_sequences(name, case) != sample_sequences(name, case.shuffled(seed))


def plain_case(count: int = 200) -> Case:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((count, 3, 10)).astype(np.float32)
    return Case(X, rng.integers(0, 4, count), rng.random(count), 16)


@pytest.mark.parametrize("name", sorted(ORDERS))
@laws
@given(case=cases())
def test_every_epoch_is_a_permutation_of_the_labelled_rows(name: str, case: Case) -> None:
    order = make(name, case)
    for epoch in (0, 1, 5):
        rows = order.epoch(epoch)
        assert rows.dtype == np.int64
        np.testing.assert_array_equal(np.sort(rows), case.labelled())
    if order.needs_losses:
        rows = order.observe(case.losses).epoch(1)
        np.testing.assert_array_equal(np.sort(rows), case.labelled())


@pytest.mark.parametrize("name", BLIND_TO_STORAGE)
@laws
@given(case=cases(), seed=st.integers(0, 1000))
def test_storage_order_does_not_show(name: str, case: Case, seed: int) -> None:
    assert not storage_shows(name, case, seed)


def test_the_storage_law_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ORDERS, "row", Strategy(lambda samples, _: np.argsort(samples.rows)))
    monkeypatch.setitem(
        ORDERS,
        "shard",
        Strategy(lambda samples, _: np.argsort(samples.rows % 7, kind="stable")),
    )
    assert storage_shows("row", plain_case(), 0)
    assert storage_shows("shard", plain_case(), 0)
    assert storage_shows("golden_index", plain_case(), 0)
    assert not storage_shows("golden", plain_case(), 0)


def test_the_storage_law_sees_ties_between_equal_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ties left as stored instead of broken by label, duplicates give storage away."""
    count = 40
    case = Case(np.ones((count, 2)), np.arange(count) % 2, np.zeros(count), 8)

    def ties_as_stored(samples: Any, epoch: Any) -> NDArray[np.int64]:
        by_row = np.argsort(samples.rows)
        keys = samples.digests[by_row, 0]
        return by_row[np.argsort(keys, kind="stable")]

    monkeypatch.setitem(ORDERS, "unstable", Strategy(ties_as_stored))
    assert storage_shows("unstable", case, 0)
    for name in BLIND_TO_STORAGE:
        assert not storage_shows(name, case, 0), name


def test_duplicates_with_other_labels_keep_their_labels() -> None:
    X = np.zeros((6, 4), dtype=np.float32)
    labels = np.array([2, 0, 1, 0, 2, 1])
    for name in BLIND_TO_STORAGE:
        first = labels[make_order(name, X, labels).epoch(0)]
        again = labels[::-1][make_order(name, X, labels[::-1]).epoch(0)]
        np.testing.assert_array_equal(first, again, err_msg=name)


def test_unequal_losses_of_equal_samples_do_not_show_storage() -> None:
    """Which of two equal samples brought which loss is storage, and must not matter."""
    X = np.repeat(np.arange(8.0), 4)[:, None]
    case = Case(X, np.zeros(len(X), dtype=int), np.random.default_rng(0).random(len(X)), 8)
    swapped = case.losses.reshape(8, 4)[:, ::-1].ravel()
    for name in [name for name in ORDERS if ORDERS[name].needs_losses]:
        assert not storage_shows(name, case, 1)
        orders = [make(name, case).observe(losses) for losses in (case.losses, swapped)]
        first, second = (X[order.epoch(1)] for order in orders)
        np.testing.assert_array_equal(first, second, err_msg=name)


def test_content_epochs_are_uncorrelated() -> None:
    count = 2000
    X = np.random.default_rng(0).standard_normal((count, 4))
    order = make_order("content", X)
    ranks = np.array([np.argsort(order.epoch(epoch)) for epoch in range(12)], dtype=float)
    between = np.corrcoef(ranks)[np.triu_indices(12, 1)]
    assert np.abs(between).max() < 4 / np.sqrt(count)
    assert np.abs(np.corrcoef(ranks, np.arange(count))[-1, :-1]).max() < 4 / np.sqrt(count)


def is_rotation(first: NDArray[Any], second: NDArray[Any]) -> bool:
    start = int(np.flatnonzero(second == first[0])[0])
    return bool((np.roll(second, -start) == first).all())


def close_sums(rng: np.random.Generator) -> NDArray[np.float64]:
    return 1 + rng.integers(0, 400, (300, 6)) * 2.0**-23


def equal_sums(rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.permuted(np.repeat(rng.standard_normal((5, 6)), 60, axis=0), axis=1)


@pytest.mark.parametrize("rows", [close_sums, equal_sums])
def test_golden_is_exactly_a_rotation(rows: Callable[[np.random.Generator], Any]) -> None:
    """Also of sums that differ in their last bits, and of equal sums with unequal contents."""
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.standard_normal((200, 6)), rows(rng)])
    order = make_order("golden", X)
    epochs = [order.epoch(epoch) for epoch in (0, 1, 2, 50, 10**6, 2**40)]
    assert all(is_rotation(epochs[0], later) for later in epochs[1:])
    assert not (epochs[0] == epochs[1]).all()
    content = make_order("content", X)
    assert not is_rotation(content.epoch(0), content.epoch(1))


def test_seeds_never_share_an_epoch() -> None:
    X = np.arange(64.0)[:, None]
    ours = {
        make_order("seeded", X, seed=seed).epoch(epoch).tobytes()
        for seed in range(20)
        for epoch in range(85)
    }
    published = {
        np.random.default_rng(seed + epoch).permutation(64).tobytes()
        for seed in range(20)
        for epoch in range(85)
    }
    assert len(ours) == 1700
    assert len(published) == 104  # as published, seed + epoch: the streams overlap


def test_orders_are_the_same_in_another_process() -> None:
    script = (
        "import numpy as np\n"
        "from seedless.ordering import ORDERS, make_order\n"
        "rng = np.random.default_rng(0)\n"
        "X, Y = rng.standard_normal((90, 3, 20)), rng.integers(0, 4, 90)\n"
        "for name in ORDERS:\n"
        "    order = make_order(name, X, Y, batch_size=16)\n"
        "    if order.needs_losses: order.observe(np.arange(90) % 7)\n"
        "    print(name, [order.schedule(e).digest for e in (0, 3)])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert all(f"{name} [" in next(iter(outputs)) for name in ORDERS)


def test_no_global_generator_moves() -> None:
    import torch

    def states() -> tuple[Any, ...]:
        _, words, *rest = np.random.get_state()  # type: ignore[misc]
        return random.getstate(), words.tobytes(), tuple(rest), torch.get_rng_state().tolist()

    case = plain_case()
    before = states()
    for name in ORDERS:
        order = make(name, case)
        if order.needs_losses:
            order.observe(case.losses)
        order.schedule(1)
        assert states() == before, name


@pytest.mark.parametrize("name", sorted(ORDERS))
def test_an_epoch_depends_on_no_earlier_one(name: str) -> None:
    case = plain_case()
    late, early = make(name, case), make(name, case)
    for epoch in range(4):
        early.epoch(epoch)
    np.testing.assert_array_equal(late.epoch(4), early.epoch(4))


@pytest.mark.parametrize("name", sorted(ORDERS))
def test_offset_shifts_the_epoch(name: str) -> None:
    case = plain_case(60)
    shifted = make_order(name, case.X, case.labels, offset=5)
    plain = make_order(name, case.X, case.labels)
    np.testing.assert_array_equal(shifted.epoch(2), plain.epoch(7))
    assert shifted.schedule(2).digest == plain.schedule(7).digest


@pytest.mark.parametrize("name", sorted(ORDERS))
def test_data_changed_afterwards_changes_nothing(name: str) -> None:
    case = plain_case(60)
    X = case.X.copy()
    order, expected = make_order(name, X, case.labels), make(name, case)
    X[:] = 0
    np.testing.assert_array_equal(
        order.schedule(3, batch_size=16).batches[0], expected.schedule(3).batches[0]
    )
