"""The sums over weighted features and traces, for few features: eight weights at a time.

A product of matrices as long and thin as here is slow in BLAS, which first copies them. This one
goes down the rows chunk by chunk. The traces of four features are made in registers for eight
weights (targets and systems) at a time, and written to a memory that stays in the first cache;
there they meet six columns of (x - gamma' x', r, 1 - gamma') at a time, whose sums are in registers
too. So nearly all the time the processor multiplies and adds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs, on_cache_line
from steadytd.base.jit import compiled_disjoint
from steadytd.engine.loop.vectors import LANES, eight, least, most, put, same, spread
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.scan import LARGEST, Weighted

CHUNK = 96  # rows whose traces, of four features, stay in the first cache
LONG = CHUNK * LANES  # numbers of the traces of one feature
DEEP = 4  # features whose traces are made together
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


class Eights(NamedTuple):
    """Which traces there are: of eight weights each, and of eight products of ratios each."""

    lam: Floats  # [groups * 8], of every weight's system
    decay: Floats  # lam of each eight products of ratios
    ratio: Longs  # the first ratio of each


class Memory(NamedTuple):
    """What a chunk is made in, the traces of the row before it, and the sums."""

    V: Floats  # [CHUNK, across]: x - gamma' x', r, 1 - gamma', 0 ...
    Z: Floats  # [CHUNK, wide]: x, 1, 0 ...
    U: Floats  # [DEEP, CHUNK, 8]: traces of some features, or products of ratios
    state: Floats  # [groups, features up to a multiple of DEEP, 8], then [eights of products, 8]
    C: Floats  # [groups * d + eights of products, across, 8]: sums of U V'
    S: Floats  # [eights of features, across + across of Z, 8]: sums of x V' and x Z'


class Products:
    """The memory that the sums are made in.

    The behaviour's weights are 1: its sums are made beside G, without a trace.
    """

    def __init__(self, plan: Plan) -> None:
        d, self.ratios, self.lams = plan.features, plan.ratios, plan.lams
        self.columns = plan.columns - 1
        lam = np.zeros(up(self.columns, LANES))
        lam[: self.columns] = np.repeat([s.lam for s in plan.systems], len(plan.targets))
        along = [(m, t) for m in plan.lams for t in range(0, plan.ratios, LANES)]
        self.eights = Eights(
            lam, np.array([m for m, _ in along]), np.array([t for _, t in along], dtype=np.int64)
        )
        groups, across, of_x = len(lam) // LANES, up(d + 2, ACROSS), up(d + 1, ACROSS)
        self.memory = Memory(
            V=on_cache_line((CHUNK, across)),
            Z=on_cache_line((CHUNK, max(of_x, up(d, LANES)))),
            U=on_cache_line((DEEP * LONG,)),
            state=on_cache_line(((groups * up(d, DEEP) + len(along)) * LANES,)),
            C=on_cache_line(((groups * d + len(along)) * across * LANES,)),
            S=on_cache_line((up(d, LANES) * (across + of_x),)),
        )
        self.memory.Z[:, d] = 1.0

    def sums(self, lo: int, hi: int, rows: Weighted) -> Sums:
        """Over rows lo..hi, which follow those of the last call."""
        d, across = rows.X.shape[1], self.memory.V.shape[1]
        self.memory.C[:] = self.memory.S[:] = 0.0
        add(lo, hi, rows, self.eights, self.memory)
        groups = len(self.eights.lam) // LANES
        C = self.memory.C.reshape(-1, across, LANES)[:, : d + 2]
        traced = C[: groups * d].reshape(groups, d, d + 2, LANES).transpose(0, 3, 1, 2)
        S = self.memory.S.reshape(-1, across + up(d + 1, ACROSS), LANES).swapaxes(1, 2)
        beside = S.reshape(up(d, LANES), -1)[:d].copy()
        systems = traced.reshape(-1, d, d + 2)[: self.columns]
        along = C[groups * d :].swapaxes(1, 2)
        along = along.reshape(len(self.lams), up(self.ratios, LANES), d + 2).copy()
        return Sums(
            np.concatenate([systems, beside[None, :, : d + 2]]),
            along[:, : self.ratios].swapaxes(0, 1),
            beside[:, across : across + d], beside[:, across + d],
        )  # fmt: skip


class Factor(NamedTuple):
    """Eight numbers of each of n rows, from place `first` on and `apart` places apart."""

    n: int
    first: int
    apart: int


@compiled_disjoint
def add(lo: int, hi: int, rows: Weighted, eights: Eights, memory: Memory) -> None:
    """C += sum_i U[i] V[i] over rows lo..hi for all traces; S += sum_i x V' and x Z'."""
    d, across, wide = rows.X.shape[1], memory.V.shape[1], memory.Z.shape[1]
    v, z = memory.V.reshape(-1), memory.Z.reshape(-1)
    U, C, S = memory.U, memory.C, memory.S
    each, of_x = across * LANES, -(-(d + 1) // ACROSS) * ACROSS
    for begin in range(lo, hi, CHUNK):
        n, at = min(CHUNK, hi - begin), 0
        fill(n, begin, rows, memory.V, memory.Z)
        for k in range(0, d, LANES):
            s = k * (across + of_x)
            multiply(Factor(n, k, wide), z, across, v, across, S, s)
            multiply(Factor(n, k, wide), z, of_x, z, wide, S, s + each)
        for g in range(0, len(eights.lam), LANES):
            for k in range(0, d, DEEP):
                trace(n, begin, rows, eights, memory, g, k)
                for j in range(min(DEEP, d - k)):
                    multiply(Factor(n, j * LONG, LANES), U, across, v, across, C, at)
                    at += each
        for e in range(len(eights.decay)):
            product(n, begin, rows, eights, memory, e)
            multiply(Factor(n, 0, LANES), U, across, v, across, C, at)
            at += each


@compiled_disjoint
def fill(n: int, begin: int, rows: Weighted, V: Floats, Z: Floats) -> None:
    """V = (x - gamma' x', r, 1 - gamma') and Z = (x, 1) of n rows."""
    X, d = rows.X, rows.X.shape[1]
    for i in range(n):
        row = np.uintp(begin + i)
        j, by_next = np.uintp(rows.row_next[row]), rows.discount[row]
        for k in range(d):
            Z[i, k] = X[row, k]
            V[i, k] = X[row, k] - by_next * X[j, k]
        V[i, d], V[i, d + 1] = rows.reward[row], 1.0 - by_next


@compiled_disjoint
def trace(
    n: int, begin: int, rows: Weighted, eights: Eights, memory: Memory, first: int, k: int
) -> None:
    """U = z, z = weight (x + gamma lam z), of eight weights and the features k, ..., k + 3."""
    x, wide, U, state = memory.Z.reshape(-1), memory.Z.shape[1], memory.U, memory.state
    s = first * (-(-rows.X.shape[1] // DEEP) * DEEP) + k * LANES
    lam, top, bottom = eight(eights.lam, first), spread(LARGEST), spread(-LARGEST)
    z0, z1 = eight(state, s), eight(state, s + LANES)
    z2, z3 = eight(state, s + 2 * LANES), eight(state, s + 3 * LANES)
    for i in range(n):
        at, to = i * wide + k, i * LANES
        w = eight(rows.weight, (begin + i) * rows.columns + first)
        by = lam * same(rows.gamma, begin + i)
        z0 = most(least(w * (same(x, at) + by * z0), top), bottom)
        z1 = most(least(w * (same(x, at + 1) + by * z1), top), bottom)
        z2 = most(least(w * (same(x, at + 2) + by * z2), top), bottom)
        z3 = most(least(w * (same(x, at + 3) + by * z3), top), bottom)
        put(U, to, z0), put(U, to + LONG, z1)
        put(U, to + 2 * LONG, z2), put(U, to + 3 * LONG, z3)
    put(state, s, z0), put(state, s + LANES, z1)
    put(state, s + 2 * LANES, z2), put(state, s + 3 * LANES, z3)


@compiled_disjoint
def product(n: int, begin: int, rows: Weighted, eights: Eights, memory: Memory, e: int) -> None:
    """U = c, c = rho (gamma lam c + 1 at a start), of the e-th eight products of ratios."""
    U, state, s = memory.U, memory.state, len(memory.state) - LANES * (len(eights.decay) - e)
    c, top = eight(state, s), spread(LARGEST)
    for i in range(n):
        row = np.uintp(begin + i)
        start = 1.0 if rows.every or rows.first[row] else 0.0
        r = eight(rows.rho, (begin + i) * rows.ratios + eights.ratio[e])
        c = least(r * (spread(rows.gamma[row] * eights.decay[e]) * c + spread(start)), top)
        put(U, i * LANES, c)
    put(state, s, c)


@compiled_disjoint
def multiply(
    factor: Factor, U: Floats, columns: int, V: Floats, wide: int, C: Floats, to: int
) -> None:
    """C[to + m] += sum_i U[i] V[i, m] over rows, for so many columns m of V, which is `wide`."""
    for m in range(0, columns, ACROSS):
        at = to + LANES * m
        a0, a1, a2 = eight(C, at), eight(C, at + 8), eight(C, at + 16)
        a3, a4, a5 = eight(C, at + 24), eight(C, at + 32), eight(C, at + 40)
        k, j = factor.first, m
        for _ in range(factor.n):
            u = eight(U, k)
            a0, a1 = a0 + u * same(V, j), a1 + u * same(V, j + 1)
            a2, a3 = a2 + u * same(V, j + 2), a3 + u * same(V, j + 3)
            a4, a5 = a4 + u * same(V, j + 4), a5 + u * same(V, j + 5)
            k, j = k + factor.apart, j + wide
        put(C, at, a0), put(C, at + 8, a1), put(C, at + 16, a2)
        put(C, at + 24, a3), put(C, at + 32, a4), put(C, at + 40, a5)
