"""Rows of units, and loops over the active features of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Ints, Longs
from steadytd.base.jit import compiled
from steadytd.evaluation.collect.rows.active import inside
from steadytd.evaluation.collect.scan import LARGEST


def sparse_matrix(length: Longs, feature: Ints, value: Floats, d: int) -> Any:
    """The matrix [n, d] of rows whose active features follow each other."""
    from scipy.sparse import csr_matrix

    ends = np.concatenate([[0], np.cumsum(length)])
    return csr_matrix((value, feature, ends), shape=(len(length), d))


class Part(NamedTuple):
    """The rows of some units, each from the beginning of an episode on.

    Rows of the episode that lie before a unit's own are those that its traces come from.
    """

    rows: Longs
    unit: Longs  # which of the units, -1 before their own rows
    units: int

    @staticmethod
    def of(units: Longs, ends: Longs, begins: Longs) -> Part:
        """The rows of units that lie between `ends`; episodes begin at `begins`."""
        own = ends[units]
        episode = begins[np.searchsorted(begins, own, side="right") - 1]
        follows = np.diff(units, prepend=-2) == 1  # the rows before are those of the last unit
        lo = np.where(follows, own, episode)
        length = ends[units + 1] - lo
        rows = np.repeat(lo, length) + inside(length)
        place = np.repeat(np.arange(len(units)), length)
        return Part(rows, np.where(rows < own[place], -1, place), len(units))


def dots(X: Any, w: Floats, rows: Longs) -> Floats:
    """x.w of some rows of a sparse matrix."""
    return _dots(Sparse(X.indptr, X.indices, X.data), w, rows)


class Pairs(NamedTuple):
    """The entries of X'diag(m) Y for one-hot X: which row gives how much to which of them."""

    row: Longs
    value: Floats
    entry: Longs
    places: Any  # the sparse matrix of the entries' numbers

    @staticmethod
    def of(X: Any, Y: Any) -> Pairs:
        """The entries for any m."""
        from scipy.sparse import csr_matrix

        d = X.shape[1]
        length = np.where(np.diff(X.indptr) > 0, np.diff(Y.indptr), 0)
        row = np.repeat(np.arange(len(length)), length)
        at = np.repeat(Y.indptr[:-1], length) + inside(length)
        own = X.indptr[row]
        value = X.data[own] * Y.data[at]
        code, entry = np.unique(X.indices[own] * np.int64(d) + Y.indices[at], return_inverse=True)
        ends = np.searchsorted(code, np.arange(d + 1) * np.int64(d))
        return Pairs(row, value, entry, csr_matrix((code * 1.0, code % d, ends), shape=(d, d)))

    def summed(self, m: Floats) -> Any:
        """X'diag(m) Y."""
        from scipy.sparse import csr_matrix

        p = self.places
        data = np.bincount(self.entry, weights=m[self.row] * self.value, minlength=p.nnz)
        return csr_matrix((data, p.indices, p.indptr), shape=p.shape)


class Traced(NamedTuple):
    """What a trace is made of, by row: rho M, rho gamma lam, how often it counts, the reward."""

    emphasis: Floats
    decay: Floats
    counted: Floats
    reward: Floats


class Sparse(NamedTuple):
    """The arrays of a sparse matrix, row by row."""

    ends: Any
    feature: Any
    value: Floats


@compiled
def _dots(X: Sparse, w: Floats, rows: Longs) -> Floats:
    out = np.zeros(len(rows))
    for i, row in enumerate(rows):
        for j in range(X.ends[row], X.ends[row + 1]):
            out[i] += X.value[j] * w[X.feature[j]]
    return out


@compiled
def traced(added: Floats, decay: Floats) -> Floats:
    """z = decay z + added, down the rows; it stops at `LARGEST`."""
    z, out = 0.0, np.empty(len(added))
    for i in range(len(added)):
        z = min(max(decay[i] * z + added[i], -LARGEST), LARGEST)
        out[i] = z
    return out


@compiled
def add_traced(rows: Traced, X: Sparse, Y: Sparse, total: Floats) -> None:
    """Total += sum over rows of z (y, r)', with the full trace z = decay z + emphasis x."""
    z = np.zeros(len(total))
    for i in range(len(rows.reward)):
        if rows.decay[i] == 0.0:
            z[:] = 0.0
        else:
            for k in range(len(z)):
                z[k] = min(max(rows.decay[i] * z[k], -LARGEST), LARGEST)
        for j in range(X.ends[i], X.ends[i + 1]):
            z[X.feature[j]] += rows.emphasis[i] * X.value[j]
        by = rows.counted[i]
        if by == 0.0:
            continue
        for k in range(len(z)):
            if z[k] != 0.0:
                for j in range(Y.ends[i], Y.ends[i + 1]):
                    total[k, Y.feature[j]] += by * z[k] * Y.value[j]
                total[k, -1] += by * z[k] * rows.reward[i]
