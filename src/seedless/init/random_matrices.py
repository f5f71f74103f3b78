"""Matrices drawn from the counter, with the same bits on every machine.

A matrix is a function of a counter key: a number (a seed or an offset) and a text (a parameter's
name, for seed-free starts with its shape).
"""

import math

import numpy as np
from numpy.typing import NDArray

from seedless.init.bases import dct_entries
from seedless.init.tabled_matrix import TabledMatrix
from seedless.numerics.counter_random import draw_uniform
from seedless.numerics.exact_sums import exact_product, exact_row_sums, exact_sum
from seedless.numerics.normal_quantile import normal_quantile

Float64 = NDArray[np.float64]
CounterKey = tuple[int, str]
_PANEL_ROWS = 32  # rows that are made orthogonal to all rows before them at a time


def draw_orthogonal(rows: int, columns: int, key: CounterKey) -> Float64:
    """Return orthonormal rows, or columns where there are more rows: float64 (rows, columns).

    They are distributed by Haar's measure: the rows of a normal matrix, made orthonormal one after
    the other, are as likely to point in any direction as in any other (Stewart 1980).
    """
    short, long = sorted((rows, columns))
    number, text = key
    normal = normal_quantile(draw_uniform(number, text, short * long)).reshape(short, long)
    matrix = make_orthonormal(normal)
    return matrix if rows <= columns else np.ascontiguousarray(matrix.T)


def make_orthonormal(matrix: Float64) -> Float64:
    """Return the rows of (k, n), k <= n, made orthonormal from the first to the last.

    Row i is row i of the matrix less its projection on the rows before it, divided by its length
    (Gram and Schmidt). All sums are exactly rounded, and products do not depend on the library.
    """
    done = np.empty((0, matrix.shape[1]))
    for start in range(0, len(matrix), _PANEL_ROWS):
        panel = matrix[start : start + _PANEL_ROWS]
        # Twice: rounding leaves a part of the earlier rows in a nearly dependent row, and the
        # second pass removes it (Giraud, Langou, Rozloznik and van den Eshof 2005).
        for _ in range(2):
            if len(done):
                panel = panel - exact_product(exact_product(panel, done), done.T)
            panel = _make_panel_orthonormal(panel)
        done = np.concatenate([done, panel])
    return done


def _make_panel_orthonormal(panel: Float64) -> Float64:
    """Return a few rows made orthonormal from the first to the last."""
    rows = panel.copy()
    for i in range(len(rows)):
        rows[i] /= math.sqrt(exact_sum(rows[i] * rows[i]))
        rest = rows[i + 1 :]
        rest -= exact_row_sums(rest * rows[i])[:, None] * rows[i]
    return rows


def scramble_dct(rows: int, columns: int, key: CounterKey) -> TabledMatrix:
    """Return a DCT-II matrix with permuted rows and columns and signed columns: (rows, columns).

    Its size is max(rows, columns), so no row repeats, and its rows (columns, where there are more
    rows) are orthonormal.
    """
    number, text = key
    size = max(rows, columns)
    i = _permute(size, (number, f"{text} rows"))[:rows]
    j = _permute(size, (number, f"{text} columns"))[:columns]
    plain = dct_entries(size, i, j)
    is_negative = draw_uniform(number, f"{text} signs", columns) < 0.5
    offsets = np.where(is_negative, len(plain.table), 0)
    table = np.append(plain.table, -plain.table)
    return TabledMatrix(rows, columns, table, lambda i: plain.find_positions(i) + offsets)


def _permute(size: int, key: CounterKey) -> NDArray[np.int64]:
    """Return a permutation of the numbers from 0 to size - 1, drawn from the counter."""
    return np.argsort(draw_uniform(*key, size), kind="stable")
