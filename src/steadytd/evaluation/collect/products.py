"""The sums over weighted features and traces, for few features: eight weights at a time.

A product of matrices as long and thin as here is slow in BLAS, which first copies them. This one
goes down the rows chunk by chunk. The traces of four features are made in registers for eight
weights (targets and systems) at a time, and written to a memory that stays in the first cache;
there they meet the columns of (x - gamma' x', r, 1 - gamma'), four or five at a time, whose sums
are in registers too. So nearly all the time the processor multiplies and adds. The loops take
arrays, not the tuples that hold them: Numba counts references to what it takes out of a tuple.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import ZERO, Bools, Floats, Longs, on_cache_line
from steadytd.base.jit import compiled_disjoint
from steadytd.engine.loop.vectors import LANES, eight, least, most, put, same, spread
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.scan import LARGEST, Weighted

CHUNK = 72  # rows whose traces, of four features, stay in the first cache
LONG = CHUNK * LANES  # numbers of the traces of one feature
DEEP = 4  # features whose traces are made together


def up(n: int, step: int) -> int:
    """The next multiple of `step`.

    >>> up(17, 8), up(16, 8)
    (24, 16)
    """
    return -(-n // step) * step


def tiled(n: int) -> int:
    """The next number that is a sum of fours and fives: so many columns can be multiplied.

    >>> [tiled(n) for n in (3, 5, 6, 10, 11, 19)]
    [4, 5, 8, 10, 12, 19]
    """
    return next(m for m in range(n, n + 4) if m % 4 <= m // 5)


class Sums(NamedTuple):
    """Sums of z v', of c v', of x x' and of x, where v = (x - gamma' x', r, 1 - gamma')."""

    systems: Floats  # [columns, d, d + 2]
    weighted: Floats  # [ratios, lams, d + 2]
    G: Floats  # [d, d]
    x: Floats  # [d]


class Eights(NamedTuple):
    """Which traces there are: of eight weights each, and of eight products of ratios each."""

    begin: int  # the first weight,
    end: int  # and that beyond the last, both multiples of 8
    lam: Floats  # of every weight's system
    decay: Floats  # lam of each eight products of ratios
    ratio: Longs  # the first ratio of each


class Memory(NamedTuple):
    """What a chunk is made in, the traces of the row before it, and the sums."""

    V: Floats  # [CHUNK, across]: x - gamma' x', r, 1 - gamma', 0 ...
    Z: Floats  # [CHUNK, wide]: x, 1, 0 ...
    U: Floats  # [DEEP, CHUNK, 8]: traces of some features, or products of ratios
    state: Floats  # [groups, features up to a multiple of DEEP, 8], then [eights of products, 8]
    C: Floats  # [groups * d + eights of products, across, 8]: sums of U V'
    S: Floats  # [eights of features, across + of_x, 8]: sums of x V' and x Z'


class Share(NamedTuple):
    """A part of the sums, which shares no memory with others: a thread of its own may make it."""

    eights: Eights
    memory: Memory

    @staticmethod
    def of(plan: Plan, groups: range, beside: bool) -> Share:
        """The traces of some groups of eight weights; with one share, what needs no trace."""
        d, lam = plan.features, np.zeros(up(plan.columns - 1, LANES))
        lam[: plan.columns - 1] = np.repeat([s.lam for s in plan.systems], len(plan.targets))
        along = [(m, t) for m in plan.lams for t in range(0, plan.ratios, LANES)] if beside else []
        across, of_x = tiled(d + 2), tiled(d + 1)
        memory = Memory(
            V=on_cache_line((CHUNK, across)),
            Z=on_cache_line((CHUNK, max(of_x, up(d, LANES)))),
            U=on_cache_line((DEEP * LONG,)),
            state=on_cache_line((len(lam) * up(d, DEEP) + len(along) * LANES,)),
            C=on_cache_line(((len(groups) * d + len(along)) * across * LANES,)),
            S=on_cache_line((up(d, LANES) * (across + of_x) if beside else 0,)),
        )
        memory.Z[:, d] = 1.0
        decay, ratio = [m for m, _ in along], [t for _, t in along]
        return Share(
            Eights(
                groups.start * LANES, groups.stop * LANES, lam, np.array(decay, dtype=np.float64),
                np.array(ratio, dtype=np.int64),
            ),
            memory,
        )  # fmt: skip

    def add(self, lo: int, hi: int, rows: Weighted) -> None:
        """Make the sums over rows lo..hi."""
        self.memory.C[:] = self.memory.S[:] = 0.0
        add(lo, hi, tiled(rows.X.shape[1] + 1), rows, self.eights, self.memory)


class Products:
    """The sums, in two shares where there are weights enough: each number is of one share only.

    The behaviour's weights are 1: its sums are made beside G, without a trace. With a `helper` one
    share is made there, which changes no bit.
    """

    def __init__(self, plan: Plan, helper: Executor | None = None) -> None:
        self.ratios, self.lams, self.columns = plan.ratios, plan.lams, plan.columns - 1
        groups = up(self.columns, LANES) // LANES
        middle = groups // 2 or groups
        self.shares = [Share.of(plan, range(middle), beside=True)]
        if middle < groups:
            self.shares.append(Share.of(plan, range(middle, groups), beside=False))
        self.helper = helper

    def sums(self, lo: int, hi: int, rows: Weighted) -> Sums:
        """Over rows lo..hi, which follow those of the last call."""
        first, *others = self.shares
        if self.helper is None:
            for one in self.shares:
                one.add(lo, hi, rows)
        else:
            under_way = [self.helper.submit(one.add, lo, hi, rows) for one in others]
            first.add(lo, hi, rows)
            for work in under_way:
                work.result()
        d, across = rows.X.shape[1], first.memory.V.shape[1]
        found = [one.memory.C.reshape(-1, across, LANES)[:, : d + 2] for one in self.shares]
        counts = [(one.eights.end - one.eights.begin) // LANES for one in self.shares]
        traced = np.concatenate(
            [
                C[: n * d].reshape(n, d, d + 2, LANES).transpose(0, 3, 1, 2)
                for C, n in zip(found, counts, strict=True)
            ]
        )
        S = first.memory.S.reshape(-1, across + tiled(d + 1), LANES).swapaxes(1, 2)
        beside = S.reshape(up(d, LANES), -1)[:d].copy()
        systems = traced.reshape(-1, d, d + 2)[: self.columns]
        along = found[0][counts[0] * d :].swapaxes(1, 2)
        along = along.reshape(len(self.lams), up(self.ratios, LANES), d + 2).copy()
        return Sums(
            np.concatenate([systems, beside[None, :, : d + 2]]),
            along[:, : self.ratios].swapaxes(0, 1),
            beside[:, across : across + d], beside[:, across + d],
        )  # fmt: skip


class Here(NamedTuple):
    """The n rows of a chunk, and the places of the numbers that a loop takes."""

    n: int
    row: int  # the first of them
    columns: int  # numbers of a row of weights, or of ratios,
    first: int  # and the first eight of them that are meant
    wide: int  # numbers of a row of features,
    k: int  # and the first four of them that are meant
    state: int  # where the traces of the row before stand


class Eightfold(NamedTuple):
    """Eight numbers of each of n rows, from place `first` on and `apart` places apart."""

    n: int
    first: int
    apart: int


class Across(NamedTuple):
    """So many columns, a sum of fours and fives, of rows of `wide` numbers."""

    columns: int
    wide: int


@compiled_disjoint
def add(lo: int, hi: int, of_x: int, rows: Weighted, eights: Eights, memory: Memory) -> None:
    """C += sum_i U[i] V[i] over rows lo..hi for all traces; S += sum_i x V' and x Z'."""
    d, across, wide = rows.X.shape[1], memory.V.shape[1], memory.Z.shape[1]
    V, Z, U, state = memory.V.reshape(-1), memory.Z.reshape(-1), memory.U, memory.state
    C, S, each, deep = memory.C, memory.S, across * LANES, -(-d // DEEP) * DEEP
    lam, weight, gamma, rho, first = eights.lam, rows.weight, rows.gamma, rows.rho, rows.first
    decay, ratio, of_v = eights.decay, eights.ratio, Across(across, across)
    for row in range(lo, hi, CHUNK):
        n, at = min(CHUNK, hi - row), ZERO
        fill(n, row, rows, memory.V, memory.Z)
        for k in range(0, d if len(S) else 0, LANES):
            multiply(Eightfold(n, k, wide), Z, of_v, V, S, at)
            multiply(Eightfold(n, k, wide), Z, Across(of_x, wide), Z, S, at + each)
            at += each + of_x * LANES
        at = ZERO
        for g in range(eights.begin, eights.end, LANES):
            for k in range(0, d, DEEP):
                here = Here(n, row, rows.columns, g, wide, k, g * deep + k * LANES)
                trace(here, Z, weight, gamma, lam, state, U)
                for j in range(min(DEEP, d - k)):
                    multiply(Eightfold(n, j * LONG, LANES), U, of_v, V, C, at)
                    at += each
        for e in range(len(decay)):
            here = Here(n, row, rows.ratios, ratio[e], wide, 0, len(lam) * deep + e * LANES)
            product(here, (first, rows.every), rho, gamma, decay[e], state, U)
            multiply(Eightfold(n, 0, LANES), U, of_v, V, C, at)
            at += each


@compiled_disjoint
def fill(n: int, begin: int, rows: Weighted, V: Floats, Z: Floats) -> None:
    """V = (x - gamma' x', r, 1 - gamma') and Z = (x, 1) of n rows."""
    X, d = rows.X, rows.X.shape[1]
    row_next, discount, reward = rows.row_next, rows.discount, rows.reward
    for i in range(n):
        row = np.uintp(begin + i)
        j, by_next = np.uintp(row_next[row]), discount[row]
        for k in range(d):
            Z[i, k] = X[row, k]
            V[i, k] = X[row, k] - by_next * X[j, k]
        V[i, d], V[i, d + 1] = reward[row], 1.0 - by_next


@compiled_disjoint
def trace(
    here: Here, x: Floats, weight: Floats, gamma: Floats, lam: Floats, state: Floats, U: Floats
) -> None:
    """U = z, z = weight (x + gamma lam z), of eight weights and four features."""
    lams, top, bottom = eight(lam, here.first), spread(LARGEST), spread(-LARGEST)
    s, at, to, by_row = here.state, here.k, 0, here.row * here.columns + here.first
    z0, z1 = eight(state, s), eight(state, s + LANES)
    z2, z3 = eight(state, s + 2 * LANES), eight(state, s + 3 * LANES)
    for i in range(here.row, here.row + here.n):
        w, by = eight(weight, by_row), lams * same(gamma, i)
        z0 = most(least(w * (same(x, at) + by * z0), top), bottom)
        z1 = most(least(w * (same(x, at + 1) + by * z1), top), bottom)
        z2 = most(least(w * (same(x, at + 2) + by * z2), top), bottom)
        z3 = most(least(w * (same(x, at + 3) + by * z3), top), bottom)
        put(U, to, z0), put(U, to + LONG, z1)
        put(U, to + 2 * LONG, z2), put(U, to + 3 * LONG, z3)
        at, to, by_row = at + here.wide, to + LANES, by_row + here.columns
    put(state, s, z0), put(state, s + LANES, z1)
    put(state, s + 2 * LANES, z2), put(state, s + 3 * LANES, z3)


@compiled_disjoint
def product(
    here: Here, starts: tuple[Bools, bool], rho: Floats, gamma: Floats, lam: float, state: Floats,
    U: Floats,
) -> None:  # fmt: skip
    """U = c, c = rho (gamma lam c + 1 at a start), of eight ratios."""
    first, every = starts
    c, top, to = eight(state, here.state), spread(LARGEST), 0
    for i in range(here.row, here.row + here.n):
        start, by = 1.0 if every or first[i] else 0.0, spread(gamma[i] * lam)
        rhos = eight(rho, i * here.columns + here.first)
        c = least(rhos * (by * c + spread(start)), top)
        put(U, to, c)
        to += LANES
    put(state, here.state, c)


@compiled_disjoint
def multiply(of: Eightfold, U: Floats, by: Across, V: Floats, C: Floats, to: int) -> None:
    """C[to + m] += sum_i U[i] V[i, m] over rows, for the columns m of V."""
    m, rest = ZERO, by.columns
    while rest > 0:
        if rest % 4:
            five(of, U, m, by.wide, V, C, to)
            m, rest, to = m + 5, rest - 5, to + 5 * LANES
        else:
            four(of, U, m, by.wide, V, C, to)
            m, rest, to = m + 4, rest - 4, to + 4 * LANES


@compiled_disjoint
def five(of: Eightfold, U: Floats, m: int, wide: int, V: Floats, C: Floats, to: int) -> None:
    """The columns m, ..., m + 4: their sums are in ten of AVX2's sixteen registers."""
    k, a0, a1, a2 = of.first, eight(C, to), eight(C, to + 8), eight(C, to + 16)
    a3, a4 = eight(C, to + 24), eight(C, to + 32)
    for _ in range(of.n):
        u = eight(U, k)
        a0, a1, a2 = a0 + u * same(V, m), a1 + u * same(V, m + 1), a2 + u * same(V, m + 2)
        a3, a4 = a3 + u * same(V, m + 3), a4 + u * same(V, m + 4)
        k, m = k + of.apart, m + wide
    put(C, to, a0), put(C, to + 8, a1), put(C, to + 16, a2)
    put(C, to + 24, a3), put(C, to + 32, a4)


@compiled_disjoint
def four(of: Eightfold, U: Floats, m: int, wide: int, V: Floats, C: Floats, to: int) -> None:
    """The columns m, ..., m + 3."""
    k, a0, a1 = of.first, eight(C, to), eight(C, to + 8)
    a2, a3 = eight(C, to + 16), eight(C, to + 24)
    for _ in range(of.n):
        u = eight(U, k)
        a0, a1 = a0 + u * same(V, m), a1 + u * same(V, m + 1)
        a2, a3 = a2 + u * same(V, m + 2), a3 + u * same(V, m + 3)
        k, m = k + of.apart, m + wide
    put(C, to, a0), put(C, to + 8, a1), put(C, to + 16, a2), put(C, to + 24, a3)
