"""The active features of rows, one row after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Ints, Longs
from steadytd.base.jit import compiled
from steadytd.engine.rows import Rows


class Active(NamedTuple):
    """The active features of some rows, one row after the other."""

    length: Longs
    feature: Ints
    value: Floats

    def added(self, which: Longs, features: int) -> Floats:
        """The sum of the features of some rows [d]."""
        some = of_rows(self, which)
        found = np.bincount(some.feature, weights=some.value, minlength=features)
        return np.asarray(found, dtype=np.float64)


Features = Floats | Active  # of rows: all of them, or the active ones


def active_of(X: Features) -> Active:
    """The active features of dense rows; what is active already stays as it is."""
    if isinstance(X, Active):
        return X
    length = np.empty(len(X), dtype=np.int64)
    count(X, length)
    number = int(length.sum())
    found = Active(length, np.empty(number, np.int32), np.empty(number))
    fill(X, found.feature, found.value)
    return found


def active_rows(rows: Rows) -> Active:
    """The active features of a feature table."""
    first, offset = (np.repeat(array, rows.length) for array in (rows.first, rows.offset))
    at = first + inside(rows.length)
    return Active(rows.length, rows.feature[at - offset], rows.value[at])


def inside(length: Longs) -> Longs:
    """0, 1, ... for each of so many.

    >>> inside(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)


def of_rows(all_rows: Active, which: Longs) -> Active:
    """The active features of some rows, in this order."""
    length = all_rows.length[which]
    begin = (np.cumsum(all_rows.length) - all_rows.length)[which]
    at = np.repeat(begin, length) + inside(length)
    return Active(length, all_rows.feature[at], all_rows.value[at])


@compiled
def count(X: Floats, length: Longs) -> None:
    """How many features of each row are not 0."""
    for i in range(len(X)):
        n = 0
        for k in range(X.shape[1]):
            n += 1 if X[i, k] != 0.0 else 0
        length[i] = n


@compiled
def fill(X: Floats, feature: Ints, value: Floats) -> None:
    """Their numbers and values."""
    at = 0
    for i in range(len(X)):
        for k in range(X.shape[1]):
            if X[i, k] != 0.0:
                feature[at], value[at] = k, X[i, k]
                at += 1
