"""A matrix of few distinct values: a table of the values, and where in the table each entry is.

A DCT of size N has about 2N distinct values among its N^2 entries. A layer of 10^8 weights is
centred, scaled and rounded in its table, and its entries are looked up once, in the end. Rounding
an entry and rounding its value in the table is the same operation, so the bits are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.threads import run_in_blocks

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
_BLOCK_ENTRIES = 1 << 17  # entries looked up at a time, so that they stay in the CPU's cache


@dataclass(frozen=True)
class TabledMatrix:
    """A float64 matrix (rows, columns), not computed yet.

    Attributes:
        table: its values; some may repeat, and some may not occur.
        find_positions: takes row numbers (n,), returns positions in the table (n, columns).
    """

    rows: int
    columns: int
    table: Float64
    find_positions: Callable[[Int64], Int64]

    def fill(self, dtype: Any = np.float64) -> NDArray[Any]:
        """Return the entries (rows, columns); the table is rounded to ``dtype`` once."""
        table = self.table.astype(dtype, copy=False)
        entries = np.empty((self.rows, self.columns), dtype=dtype)

        def fill_rows(block: slice) -> None:
            np.take(table, self._find_block(block), out=entries[block], mode="clip")

        run_in_blocks(fill_rows, self.rows, self._count_block_rows())
        return entries

    def count(self) -> Int64:
        """Return how often each value of the table occurs among the entries."""
        counts = np.zeros(len(self.table), dtype=np.int64)
        lock = Lock()

        def count_rows(block: slice) -> None:
            found = np.bincount(self._find_block(block).ravel(), minlength=len(counts))
            with lock:
                counts[:] += found

        # A large table is added up less often.
        rows = max(self._count_block_rows(), -(-2 * len(counts) // self.columns))
        run_in_blocks(count_rows, self.rows, rows)
        return counts

    def drop_repeats(self) -> "TabledMatrix":
        """Return the same matrix with a table in which every value occurs, and only once."""
        used = np.flatnonzero(self.count())
        table, inverse = np.unique(self.table[used], return_inverse=True)
        place = np.zeros(len(self.table), dtype=np.int64)
        place[used] = inverse
        return TabledMatrix(
            self.rows, self.columns, table, lambda rows: place[self.find_positions(rows)]
        )

    def drop_rows(self, count: int) -> "TabledMatrix":
        """Return the matrix without its first ``count`` rows."""
        return TabledMatrix(
            self.rows - count,
            self.columns,
            self.table,
            lambda rows: self.find_positions(rows + count),
        )

    def _find_block(self, block: slice) -> Int64:
        return self.find_positions(np.arange(block.start, block.stop, dtype=np.int64))

    def _count_block_rows(self) -> int:
        return max(1, _BLOCK_ENTRIES // self.columns)


def table_of_entries(entries: Float64) -> TabledMatrix:
    """Return a matrix (rows, columns) whose table is its entries, each in its own place."""
    rows, columns = entries.shape
    offsets = np.arange(columns, dtype=np.int64)
    return TabledMatrix(rows, columns, entries.ravel(), lambda i: i[:, None] * columns + offsets)
