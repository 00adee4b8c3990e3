"""A feature table: row i holds the active features of one state or one logged observation.

Sparse and dense tables share one layout, hence one loop: row i has `length[i]` features, their
values begin at `value[first[i]]`, their numbers at `feature[first[i] - offset[i]]`. A sparse table
has `offset = 0`. In a dense table every row uses the same stretch of `feature` (0, 1, ..., d - 1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Ints, Longs


class Rows(NamedTuple):
    """The five arrays of a feature table, as the compiled loops take them."""

    first: Longs
    length: Longs
    offset: Longs
    feature: Ints
    value: Floats


def sparse_rows(matrix: Floats) -> Rows:
    """A table of the non-zero entries of a dense matrix, row by row."""
    row, column = np.nonzero(matrix)
    length = np.bincount(row, minlength=len(matrix)).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(length)[:-1]]).astype(np.int64)
    value = np.ascontiguousarray(matrix[row, column], dtype=np.float64)
    return Rows(first, length, np.zeros_like(first), column.astype(np.int32), value)


def dense_rows(matrix: Floats) -> Rows:
    """A table of all entries of a dense matrix, without a copy of an already contiguous one."""
    n, d = matrix.shape
    first = np.arange(n, dtype=np.int64) * d
    length = np.full(n, d, dtype=np.int64)
    value = np.ascontiguousarray(matrix, dtype=np.float64).reshape(-1)
    return Rows(first, length, first.copy(), np.arange(d, dtype=np.int32), value)


def no_rows() -> Rows:
    """An empty table."""
    return sparse_rows(np.zeros((0, 0)))
