"""The sums over weighted features, for few features: eight weights at a time.

A product of matrices as long and thin as here is slow in BLAS, which first copies them. This one
keeps 18 sums in registers, each for eight weights (targets and systems), while it goes down a chunk
of rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, on_cache_line
from steadytd.base.jit import compiled_disjoint
from steadytd.engine.loop.vectors import LANES, eight, put, same, spread
from steadytd.evaluation.collect.scan import Weighted

CHUNK = 96  # rows whose weighted features stay in the cache
DOWN, ACROSS = 3, 6  # sums that are kept in registers


def up(n: int, step: int) -> int:
    """The next multiple of `step`.

    >>> up(17, 8), up(16, 8)
    (24, 16)
    """
    return -(-n // step) * step


class Sums(NamedTuple):
    """Sums of weight x (x - gamma' x', r)', of trajectory (x - gamma' x', r)', of x x' and of x."""

    systems: Floats  # [columns, d, d + 1]
    weighted: Floats  # [targets, d + 1]
    G: Floats  # [d, d]
    x: Floats  # [d]


class Products:
    """The memory that the sums are made in."""

    def __init__(self, features: int) -> None:
        down, across = up(features + 1, DOWN), up(features + 1, ACROSS)
        wide = up(features + 1, LANES)
        self.Z, self.S = on_cache_line((CHUNK, wide)), on_cache_line((wide, wide))
        self.U = on_cache_line((CHUNK, down, LANES))
        self.V = on_cache_line((CHUNK, across))
        self.C = on_cache_line((down, across, LANES))

    def sums(self, lo: int, hi: int, rows: Weighted) -> Sums:
        """Over rows lo..hi."""
        d, columns = rows.X.shape[1], rows.columns
        found = np.empty((up(columns, LANES), d, d + 1))
        along = np.empty((up(columns, LANES), d + 1))
        for q in range(0, columns, LANES):
            self.C[:] = 0.0
            add(lo, hi, rows, q, self.U.reshape(-1), self.V, self.C.reshape(-1))
            found[q : q + LANES] = self.C[:d, : d + 1].transpose(2, 0, 1)
            along[q : q + LANES] = self.C[d, : d + 1].T
        self.S[:] = 0.0
        squares(lo, hi, rows.X, self.Z, self.S.reshape(-1))
        S = np.triu(self.S[: d + 1, : d + 1])
        G = S[:d, :d] + np.triu(S, 1)[:d, :d].T
        return Sums(found[:columns], along[: rows.targets], G, S[:d, d])


@compiled_disjoint
def add(lo: int, hi: int, rows: Weighted, q: int, U: Floats, V: Floats, C: Floats) -> None:
    """C[k, l] += sum_i U[i, k] V[i, l] for the eight columns from q on; U and V as in `fill`."""
    down = len(U) // (CHUNK * LANES)
    for begin in range(lo, hi, CHUNK):
        end = min(begin + CHUNK, hi)
        fill(begin, end, rows, q, U, V)
        for k in range(0, down, DOWN):
            for m in range(0, V.shape[1], ACROSS):
                multiply(end - begin, k, m, down, U, V, C)


@compiled_disjoint
def fill(lo: int, hi: int, rows: Weighted, q: int, U: Floats, V: Floats) -> None:
    """V[i] = (x - gamma' x', r), U[i, k] = weights x_k, U[i, d] = trajectories; row lo is i = 0."""
    X, d = rows.X, rows.X.shape[1]
    down = len(U) // CHUNK
    for row in range(lo, hi):
        i, j = np.uintp(row - lo), np.uintp(rows.row_next[row])
        at = down * (row - lo)
        w = eight(rows.weight, row * rows.columns + q)
        for k in range(d):
            put(U, at + LANES * k, w * spread(X[row, k]))
        if q < rows.targets:
            put(U, at + LANES * d, eight(rows.trajectory, row * rows.targets + q))
        by = rows.discount[row]
        for k in range(d):
            V[i, k] = X[row, k] - by * X[j, k]
        V[i, d] = rows.reward[row]


@compiled_disjoint
def multiply(n: int, k: int, m: int, down: int, U: Floats, V: Floats, C: Floats) -> None:
    """C[k, m] += sum_i U[i, k] V[i, m] over n rows, for three k and six m."""
    long = LANES * V.shape[1]
    a = k * long + LANES * m
    b, c = a + long, a + 2 * long
    a0, a1, a2 = eight(C, a), eight(C, a + 8), eight(C, a + 16)
    a3, a4, a5 = eight(C, a + 24), eight(C, a + 32), eight(C, a + 40)
    b0, b1, b2 = eight(C, b), eight(C, b + 8), eight(C, b + 16)
    b3, b4, b5 = eight(C, b + 24), eight(C, b + 32), eight(C, b + 40)
    c0, c1, c2 = eight(C, c), eight(C, c + 8), eight(C, c + 16)
    c3, c4, c5 = eight(C, c + 24), eight(C, c + 32), eight(C, c + 40)
    at = LANES * k
    for i in range(n):
        x, y, z = eight(U, at), eight(U, at + 8), eight(U, at + 16)
        at += LANES * down
        v = spread(V[i, m])
        a0, b0, c0 = a0 + x * v, b0 + y * v, c0 + z * v
        v = spread(V[i, m + 1])
        a1, b1, c1 = a1 + x * v, b1 + y * v, c1 + z * v
        v = spread(V[i, m + 2])
        a2, b2, c2 = a2 + x * v, b2 + y * v, c2 + z * v
        v = spread(V[i, m + 3])
        a3, b3, c3 = a3 + x * v, b3 + y * v, c3 + z * v
        v = spread(V[i, m + 4])
        a4, b4, c4 = a4 + x * v, b4 + y * v, c4 + z * v
        v = spread(V[i, m + 5])
        a5, b5, c5 = a5 + x * v, b5 + y * v, c5 + z * v
    put(C, a, a0), put(C, a + 8, a1), put(C, a + 16, a2)
    put(C, a + 24, a3), put(C, a + 32, a4), put(C, a + 40, a5)
    put(C, b, b0), put(C, b + 8, b1), put(C, b + 16, b2)
    put(C, b + 24, b3), put(C, b + 32, b4), put(C, b + 40, b5)
    put(C, c, c0), put(C, c + 8, c1), put(C, c + 16, c2)
    put(C, c + 24, c3), put(C, c + 32, c4), put(C, c + 40, c5)


@compiled_disjoint
def squares(lo: int, hi: int, X: Floats, Z: Floats, S: Floats) -> None:
    """S += sum of z z' with z = (x, 1), on and right of the diagonal's blocks of eight."""
    d, wide = X.shape[1], Z.shape[1]
    z = Z.reshape(-1)
    for begin in range(lo, hi, CHUNK):
        n = min(CHUNK, hi - begin)
        rows = X[begin : begin + n]
        for i in range(n):
            for k in range(d):
                Z[i, k] = rows[i, k]
            Z[i, d] = 1.0
        for k in range(0, wide, LANES):
            for m in range(k, wide, LANES):
                square(n, k, m, wide, z, S)


@compiled_disjoint
def square(n: int, k: int, m: int, wide: int, z: Floats, S: Floats) -> None:
    """S[k, m] += sum_i Z[i, k] Z[i, m] over n rows, for eight k and eight m."""
    at = k * wide + m
    s0, s1, s2, s3 = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
    s4, s5, s6, s7 = s0, s1, s2, s3
    for i in range(n):
        row = i * wide
        v = eight(z, row + m)
        row += k
        s0, s1 = s0 + same(z, row) * v, s1 + same(z, row + 1) * v
        s2, s3 = s2 + same(z, row + 2) * v, s3 + same(z, row + 3) * v
        s4, s5 = s4 + same(z, row + 4) * v, s5 + same(z, row + 5) * v
        s6, s7 = s6 + same(z, row + 6) * v, s7 + same(z, row + 7) * v
    put(S, at, eight(S, at) + s0)
    put(S, at + wide, eight(S, at + wide) + s1)
    put(S, at + 2 * wide, eight(S, at + 2 * wide) + s2)
    put(S, at + 3 * wide, eight(S, at + 3 * wide) + s3)
    put(S, at + 4 * wide, eight(S, at + 4 * wide) + s4)
    put(S, at + 5 * wide, eight(S, at + 5 * wide) + s5)
    put(S, at + 6 * wide, eight(S, at + 6 * wide) + s6)
    put(S, at + 7 * wide, eight(S, at + 7 * wide) + s7)
