"""What meets the columns of v: traces of eight weights, and products of eight ratios, of a chunk.

A chunk is `CHUNK` rows or fewer. Every loop goes on where it stood after the chunk before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import LANES, Bools, Floats, Longs
from steadytd.base.jit import inner_disjoint
from steadytd.evaluation.collect.scan import LARGEST, Weighted
from steadytd.evaluation.collect.vectors import eight, least, most, put, same, spread
from steadytd.evaluation.collect.vectors import product as rounded

CHUNK = 72  # rows whose traces, of four features, stay in the first cache
LONG = CHUNK * LANES  # numbers of the traces of one feature
DEEP = 4  # features whose traces are made together


class Here(NamedTuple):
    """The n rows of a chunk, and the places of the numbers that a loop takes."""

    n: int
    row: int  # the first of them
    columns: int  # numbers of a row of weights, or of ratios,
    first: int  # and the first eight of them that are meant
    lam: int  # where their lams stand
    wide: int  # numbers of a row of features,
    k: int  # and the first four of them that are meant
    state: int  # where the traces of the row before stand


@inner_disjoint
def fill(n: int, begin: int, rows: Weighted, V: Floats, Z: Floats) -> float:
    """V = (x - gamma' x', r, 1 - gamma') and Z = x of n rows; returns the largest |x|."""
    x, d, across, wide = rows.X.reshape(-1), rows.X.shape[1], V.shape[1], Z.shape[1]
    row_next, discount, reward = rows.row_next, rows.discount, rows.reward
    v, z = V.reshape(-1), Z.reshape(-1)
    full, low, high, largest = d - d % LANES, spread(0.0), spread(0.0), 0.0
    for i in range(n):
        row = begin + i
        here, ahead, by_next = row * d, np.int64(row_next[row]) * d, discount[row]
        by, to, at = spread(by_next), i * across, i * wide
        for k in range(0, full, LANES):
            one = eight(x, here + k)
            low, high = least(low, one), most(high, one)
            put(z, at + k, one)
            put(v, to + k, one - rounded(by, eight(x, ahead + k)))
        for k in range(full, d):
            number = x[here + k]
            largest = max(largest, abs(number))
            z[at + k] = number
            v[to + k] = number - by_next * x[ahead + k]
        v[to + d] = reward[row]
        if d + 1 < across:
            v[to + d + 1] = 1.0 - by_next
    ends = np.empty(2 * LANES)
    put(ends, 0, low), put(ends, LANES, high)
    for k in range(2 * LANES):
        largest = max(largest, abs(ends[k]))
    return largest


@inner_disjoint
def bound(
    here: Here, size: float, weight: Floats, gamma: Floats, lam: Floats, state: Floats, d: int
) -> float:
    """No trace of features up to `size` gets beyond this in a chunk, but for rounding."""
    lams, x, top = eight(lam, here.lam), spread(size), spread(LARGEST)
    most_of_all, ends = spread(0.0), np.empty(LANES)
    for k in range(d):
        z = eight(state, here.state + k * LANES)
        most_of_all = most(most_of_all, most(z, spread(0.0) - z))
    z, by_row = most_of_all, here.row * here.columns + here.first
    for i in range(here.row, here.row + here.n):
        w = eight(weight, by_row)
        z = least(w * x + w * (lams * same(gamma, i)) * z, top)  # what is no number ends at the top
        most_of_all, by_row = most(most_of_all, z), by_row + here.columns
    put(ends, 0, most_of_all)
    largest = 0.0
    for k in range(LANES):
        largest = max(largest, ends[k])
    return largest


@inner_disjoint
def trace(
    here: Here, x: Floats, weight: Floats, gamma: Floats, lam: Floats, state: Floats, U: Floats
) -> None:
    """U = z, z = weight (x + gamma lam z), of eight weights and four features."""
    lams, s, by_row = eight(lam, here.lam), here.state, here.row * here.columns + here.first
    at, to = here.k, 0
    z0, z1 = eight(state, s), eight(state, s + LANES)
    z2, z3 = eight(state, s + 2 * LANES), eight(state, s + 3 * LANES)
    for i in range(here.row, here.row + here.n):
        w, by = eight(weight, by_row), lams * same(gamma, i)
        z0, z1 = w * (same(x, at) + by * z0), w * (same(x, at + 1) + by * z1)
        z2, z3 = w * (same(x, at + 2) + by * z2), w * (same(x, at + 3) + by * z3)
        put(U, to, z0), put(U, to + LONG, z1)
        put(U, to + 2 * LONG, z2), put(U, to + 3 * LONG, z3)
        at, to, by_row = at + here.wide, to + LANES, by_row + here.columns
    put(state, s, z0), put(state, s + LANES, z1)
    put(state, s + 2 * LANES, z2), put(state, s + 3 * LANES, z3)


@inner_disjoint
def stopped(
    here: Here, x: Floats, weight: Floats, gamma: Floats, lam: Floats, state: Floats, U: Floats
) -> None:
    """The same, with traces that stop at the largest number allowed; twice as slow."""
    lams, s, by_row = eight(lam, here.lam), here.state, here.row * here.columns + here.first
    top, bottom = spread(LARGEST), spread(-LARGEST)
    for j in range(DEEP):
        z, at, to, row = eight(state, s + j * LANES), here.k + j, j * LONG, by_row
        for i in range(here.row, here.row + here.n):
            by = lams * same(gamma, i)
            z = most(least(eight(weight, row) * (same(x, at) + by * z), top), bottom)
            put(U, to, z)
            at, to, row = at + here.wide, to + LANES, row + here.columns
        put(state, s + j * LANES, z)


@inner_disjoint
def product(
    here: Here, starts: tuple[Bools, bool], rho: Floats, gamma: Floats, lam: Floats, state: Floats,
    U: Floats,
) -> None:  # fmt: skip
    """U = c, c = rho (gamma lam c + 1 at a start), of eight ratios."""
    first, every = starts
    lams, c, top = eight(lam, here.lam), eight(state, here.state), spread(LARGEST)
    to, by_row = 0, here.row * here.columns + here.first
    for i in range(here.row, here.row + here.n):
        start = spread(1.0 if every or first[i] else 0.0)
        c = least(eight(rho, by_row) * (lams * same(gamma, i) * c + start), top)
        put(U, to, c)
        to, by_row = to + LANES, by_row + here.columns
    put(state, here.state, c)


@inner_disjoint
def without_ratio(
    here: Here, starts: tuple[Bools, bool], gamma: Floats, lam: Floats, state: Floats, U: Floats
) -> None:
    """U = c, c = gamma lam c + 1 at a start, of eight lams."""
    first, every = starts
    lams, c, top, to = eight(lam, here.lam), eight(state, here.state), spread(LARGEST), 0
    for i in range(here.row, here.row + here.n):
        start = spread(1.0 if every or first[i] else 0.0)
        c = least(lams * same(gamma, i) * c + start, top)
        put(U, to, c)
        to += LANES
    put(state, here.state, c)


@inner_disjoint
def put_beside(here: Here, before: int, beside: Longs, d: int, x: Floats, U: Floats) -> None:
    """Features, or a 1, into lanes of U: `beside` begins `before` lanes after the first eight."""
    for j in range(len(beside)):
        to = before + j - here.lam
        if 0 <= to < LANES:
            for i in range(here.n):
                U[to + i * LANES] = x[i * here.wide + beside[j]] if beside[j] < d else 1.0
