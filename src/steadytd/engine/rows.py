"""A feature table: row i holds the active features of one state or one logged observation.

Sparse and dense tables share one layout, hence one loop: row i has `length[i]` features, their
values begin at `value[first[i]]`, their numbers at `feature[first[i] - offset[i]]`. A sparse table
has `offset = 0`. In a dense table every row uses the same stretch of `feature` (0, 1, ..., d - 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Ints, Longs


class Rows(NamedTuple):
    """The five arrays of a feature table, as the compiled loops take them."""

    first: Longs
    length: Longs
    offset: Longs
    feature: Ints
    value: Floats


def sparse_rows(matrix: Any) -> Rows:
    """A table of the non-zero entries of a matrix, row by row.

    A SciPy sparse matrix must have rows of sorted columns without zeros, so that the same numbers
    give the same table in either form; its values are not copied.
    """
    if hasattr(matrix, "indptr"):
        first = matrix.indptr[:-1].astype(np.int64)
        length = np.diff(matrix.indptr).astype(np.int64)
        column = matrix.indices.astype(np.int32, copy=False)
        return Rows(first, length, np.zeros_like(first), column, matrix.data)
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


def joined_rows(tables: Sequence[Rows]) -> Rows:
    """The rows of sparse tables one after the other; one alone is not copied."""
    if len(tables) == 1:
        return tables[0]
    before = np.cumsum([0, *(len(table.value) for table in tables)])
    first = [table.first + begin for table, begin in zip(tables, before[:-1], strict=True)]
    rest = (np.concatenate(some) for some in list(zip(*tables, strict=True))[1:])
    return Rows(np.concatenate(first), *rest)


def renumbered(rows: Rows, used: Longs) -> Rows:
    """The same table with feature used[i] called i."""
    return rows._replace(feature=np.searchsorted(used, rows.feature).astype(np.int32))
