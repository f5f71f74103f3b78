"""Matrices stored as tables: the same entries, however they are cut into blocks."""

import numpy as np
import pytest

from seedless.init import tabled_matrix
from seedless.init.tabled_matrix import TabledMatrix, table_of_entries


def make_matrix(rows=40, columns=30):
    """Entry (i, j) is value (i * j) mod 7 of a table of nine, of which two never occur."""
    table = np.array([0.0, 1.0, -1.0, 1.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    j = np.arange(columns)
    return TabledMatrix(rows, columns, table, lambda i: i[:, None] * j % 7)


def expected_entries(matrix):
    i, j = np.indices((matrix.rows, matrix.columns))
    return matrix.table[i * j % 7]


@pytest.mark.parametrize("block", [1, 64, 1 << 17])
def test_blocks_do_not_show(monkeypatch, block):
    monkeypatch.setattr(tabled_matrix, "_BLOCK_ENTRIES", block)
    matrix = make_matrix()
    np.testing.assert_array_equal(matrix.fill(), expected_entries(matrix))
    positions = matrix.find_positions(np.arange(40))
    np.testing.assert_array_equal(matrix.count(), np.bincount(positions.ravel(), minlength=9))


def test_entries_are_rounded_as_asked():
    assert make_matrix().fill(np.float32).dtype == np.float32


def test_repeats_and_unused_values_are_dropped():
    matrix = make_matrix()
    short = matrix.drop_repeats()
    np.testing.assert_array_equal(short.table, [-1.0, 0.0, 1.0, 4.0, 5.0, 6.0])
    np.testing.assert_array_equal(short.fill(), matrix.fill())


def test_entries_of_their_own_come_back():
    entries = np.cos(np.arange(12.0)).reshape(3, 4)
    matrix = table_of_entries(entries)
    np.testing.assert_array_equal(matrix.fill(), entries)
    assert (matrix.count() == 1).all()


def test_rows_are_left_out():
    matrix = make_matrix()
    np.testing.assert_array_equal(matrix.drop_rows(3).fill(), matrix.fill()[3:])
