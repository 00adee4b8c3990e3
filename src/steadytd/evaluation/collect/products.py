"""The sums over weighted features and traces, for few features: eight weights at a time.

A product of matrices as long and thin as here is slow in BLAS, which first copies them. This one
keeps 6 sums in registers, each for eight weights (targets and systems), while it goes down a chunk
of rows. A trace is made from that of the row before, which stands above it in the chunk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs, on_cache_line
from steadytd.base.jit import compiled_disjoint
from steadytd.engine.loop.vectors import LANES, eight, least, most, put, same, spread
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.scan import LARGEST, Weighted

CHUNK = 96  # rows whose weighted features stay in the cache
LONG = (CHUNK + 1) * LANES  # numbers of a row of U
ACROSS = 6  # sums that are kept in registers: with eight numbers each, twelve of AVX2's sixteen


def up(n: int, step: int) -> int:
    """The next multiple of `step`.

    >>> up(17, 8), up(16, 8)
    (24, 16)
    """
    return -(-n // step) * step


class Sums(NamedTuple):
    """Sums of z v', of c v', of x x' and of x, where v = (x - gamma' x', r, 1 - gamma')."""

    systems: Floats  # [columns, d, d + 2]
    weighted: Floats  # [ratios, lams, d + 2]
    G: Floats  # [d, d]
    x: Floats  # [d]


class EightColumns(NamedTuple):
    """Eight columns of weights, from column `first` on, and the products of ratios beside them."""

    first: int
    traced: bool
    lam: Floats  # [8], of the columns' systems
    decay: Floats  # lam of each eight products of ratios
    ratio: Longs  # the first ratio of each


class Products:
    """The memory that the sums are made in; `state` holds the traces of the row before."""

    def __init__(self, plan: Plan) -> None:
        d, self.ratios = plan.features, plan.ratios
        # an eight for the behaviour's column alone costs more than its sums beside G
        self.beside = (plan.columns - 1) % LANES == 0
        groups = up(plan.columns - self.beside, LANES) // LANES
        wide = up(2 * d + 3 if self.beside else d + 1, LANES)
        each = np.repeat([s.lam for s in plan.systems], len(plan.targets))
        lam = np.zeros(groups * LANES)
        lam[: len(each)] = each
        along = [(m, t) for m in plan.lams for t in range(0, plan.ratios, LANES)]
        self.groups = [
            EightColumns(
                g * LANES, bool(part.any()), part.copy(),
                np.array([m for m, _ in along[g::groups]]),
                np.array([t for _, t in along[g::groups]], dtype=np.int64),
            )
            for g, part in enumerate(lam.reshape(groups, LANES))
        ]  # fmt: skip
        self.lams, self.columns = plan.lams, plan.columns
        down = d + -(-len(along) // groups)
        across = up(d + 2, ACROSS)
        self.Z, self.S = on_cache_line((CHUNK, wide)), on_cache_line((wide, wide))
        self.U = on_cache_line((down, CHUNK + 1, LANES))
        self.V = on_cache_line((CHUNK, across))
        self.C = on_cache_line((down, across, LANES))
        self.state = np.zeros((groups, down, LANES))

    def sums(self, lo: int, hi: int, rows: Weighted) -> Sums:
        """Over rows lo..hi, which follow those of the last call."""
        d, n = rows.X.shape[1], rows.X.shape[1] + 2
        found = np.empty((len(self.groups) * LANES, d, n))
        along = np.empty((len(self.lams), up(self.ratios, LANES), n))
        for g, group in enumerate(self.groups):
            self.C[:] = 0.0
            self.U[:, 0] = self.state[g]
            add(lo, hi, rows, group, self.U.reshape(-1), self.V, self.C.reshape(-1))
            self.state[g] = self.U[:, 0]
            found[group.first : group.first + LANES] = self.C[:d, :n].transpose(2, 0, 1)
            for e, t in enumerate(group.ratio.tolist()):
                m = (g + e * len(self.groups)) * LANES // along.shape[1]
                along[m, t : t + LANES] = self.C[d + e, :n].T
        self.S[:] = 0.0
        squares(lo, hi, rows, self.Z, self.S.reshape(-1))
        S = np.triu(self.S[: d + 1, : d + 1])
        G = S[:d, :d] + np.triu(S, 1)[:d, :d].T
        weighted = along[:, : self.ratios].swapaxes(0, 1)
        if self.beside:
            found = np.concatenate([found, self.S[None, :d, d + 1 : d + 1 + n]])
        return Sums(found[: self.columns], weighted, G, S[:d, d])


@compiled_disjoint
def add(
    lo: int, hi: int, rows: Weighted, group: EightColumns, U: Floats, V: Floats, C: Floats
) -> None:
    """C[k, l] += sum_i U[k, i + 1] V[i, l] for eight columns; U and V as in `fill`."""
    down = len(U) // LONG
    for begin in range(lo, hi, CHUNK):
        end = min(begin + CHUNK, hi)
        fill(begin, end, rows, group, U, V)
        for k in range(down):
            for m in range(0, V.shape[1], ACROSS):
                multiply(end - begin, k, m, U, V, C)
        for k in range(down):
            put(U, LONG * k, eight(U, LONG * k + LANES * (end - begin)))


@compiled_disjoint
def fill(lo: int, hi: int, rows: Weighted, group: EightColumns, U: Floats, V: Floats) -> None:
    """V[i] = (x - gamma' x', r, 1 - gamma'); U[:, i + 1] = (z, c); row lo is i = 0.

    z = weight (x + gamma lam z) and c = rho (gamma lam c + 1 at a start), from U[:, i].
    """
    X, d = rows.X, rows.X.shape[1]
    lam, top, bottom = eight(group.lam, 0), spread(LARGEST), spread(-LARGEST)
    for row in range(lo, hi):
        i, j = np.uintp(row - lo), np.uintp(rows.row_next[row])
        at = LANES * (row - lo + 1)
        before = at - LANES
        gamma = rows.gamma[row]
        w = eight(rows.weight, row * rows.columns + group.first)
        if group.traced:
            by = lam * spread(gamma)
            for k in range(d):
                z = w * (spread(X[row, k]) + by * eight(U, before + LONG * k))
                put(U, at + LONG * k, most(least(z, top), bottom))
        else:
            for k in range(d):
                put(U, at + LONG * k, w * spread(X[row, k]))
        start = 1.0 if rows.every or rows.first[row] else 0.0
        for e in range(len(group.decay)):
            r = eight(rows.rho, row * rows.ratios + group.ratio[e])
            k = LONG * (d + e)
            c = r * (spread(gamma * group.decay[e]) * eight(U, before + k) + spread(start))
            put(U, at + k, least(c, top))
        by_next = rows.discount[row]
        for k in range(d):
            V[i, k] = X[row, k] - by_next * X[j, k]
        V[i, d], V[i, d + 1] = rows.reward[row], 1.0 - by_next


@compiled_disjoint
def multiply(n: int, k: int, m: int, U: Floats, V: Floats, C: Floats) -> None:
    """C[k, m] += sum_i U[k, i + 1] V[i, m] over n rows, for six m."""
    a = LANES * (k * V.shape[1] + m)
    a0, a1, a2 = eight(C, a), eight(C, a + 8), eight(C, a + 16)
    a3, a4, a5 = eight(C, a + 24), eight(C, a + 32), eight(C, a + 40)
    at = LONG * k
    for i in range(n):
        at += LANES  # the first row is the one before
        x = eight(U, at)
        a0, a1 = a0 + x * spread(V[i, m]), a1 + x * spread(V[i, m + 1])
        a2, a3 = a2 + x * spread(V[i, m + 2]), a3 + x * spread(V[i, m + 3])
        a4, a5 = a4 + x * spread(V[i, m + 4]), a5 + x * spread(V[i, m + 5])
    put(C, a, a0), put(C, a + 8, a1), put(C, a + 16, a2)
    put(C, a + 24, a3), put(C, a + 32, a4), put(C, a + 40, a5)


@compiled_disjoint
def squares(lo: int, hi: int, rows: Weighted, Z: Floats, S: Floats) -> None:
    """S += sum of (x, 1) z' with z = (x, 1), on and right of the diagonal's blocks of eight.

    Where Z is wide enough, z = (x, 1, x - gamma' x', r, 1 - gamma').
    """
    X = rows.X
    d, wide = X.shape[1], Z.shape[1]
    z, longer = Z.reshape(-1), wide >= 2 * d + 3
    for begin in range(lo, hi, CHUNK):
        n = min(CHUNK, hi - begin)
        for i in range(n):
            row = begin + i
            for k in range(d):
                Z[i, k] = X[row, k]
            Z[i, d] = 1.0
            if longer:
                j, by_next = np.uintp(rows.row_next[row]), rows.discount[row]
                for k in range(d):
                    Z[i, d + 1 + k] = X[row, k] - by_next * X[j, k]
                Z[i, 2 * d + 1], Z[i, 2 * d + 2] = rows.reward[row], 1.0 - by_next
        for k in range(0, d + 1, LANES):
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
