"""Samples whose golden keys collide are counted, for exact and for float32 sums."""

from __future__ import annotations

import numpy as np

from seedless.ordering import count_collisions


def test_collisions_count_groups() -> None:
    X = np.array([[1, 2], [2, 1], [3, 0], [5, 5], [10, 0], [7, 0]], dtype=np.float32)
    found = count_collisions(X)
    assert found.samples == 6
    assert (found.exact.records, found.exact.groups, found.exact.largest) == (5, 2, 3)
    assert found.exact.entropy_lost == round(np.log2(6 * 2) / np.log2(720), 6)
    assert found.exact == found.float32


def test_float32_sums_collide_more() -> None:
    X = np.array([[2.0**24, 1.0], [2.0**24, 0.0], [3.0, 0.0]], dtype=np.float32)
    assert count_collisions(X).exact.records == 0
    assert count_collisions(X).exact.entropy_lost == 0.0
    assert count_collisions(X).float32.records == 2


def test_collisions_of_one_and_of_huge_records() -> None:
    assert count_collisions([[1.0]]).exact.groups == 0
    huge = np.array([[3e38, 3e38], [3e38, 2e38]], dtype=np.float32)
    assert count_collisions(huge).exact.records == 0
    assert count_collisions(huge).float32.records == 2
