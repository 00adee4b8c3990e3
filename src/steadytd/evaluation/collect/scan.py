"""Compiled passes over the rows of a batch: where episodes stand, weighted features, traces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.base.jit import compiled

LARGEST = 1e100  # products of ratios and traces stop here: their squares must stay finite


class Places(NamedTuple):
    """Where each row stands: [n] numbers that `along` fills in."""

    gamma: Floats  # of the row's state
    discounted: Floats  # the product of discounts so far
    step: Longs  # in the episode
    block: Longs


class Weighted(NamedTuple):
    """The rows of a batch with their features and weights."""

    X: Floats  # [m, d]
    row_next: Ints  # [n]
    discount: Floats  # [n]
    reward: Floats  # [n]
    gamma: Floats  # [n], of the row's own state
    first: Bools  # [n]
    weight: Floats  # the memory of padded numbers [n, columns]
    columns: int
    rho: Floats  # the memory of padded numbers [n, ratios]
    ratios: int
    every: bool  # every row is a start


@compiled
def along(
    first: Bools, discount: Floats, row: Longs, rows: int, blocks: int, state: Floats,
    places: Places,
) -> None:  # fmt: skip
    """Find the places of all rows; an episode belongs to the block in which it begins.

    One that is longer than a block goes on into the next ones. `state` holds gamma, product, step
    and block of the next row.
    """
    before, product, steps, own = state[0], state[1], int(state[2]), int(state[3])
    here = end = -1  # the block that a row is in: row * blocks // rows, and its first row beyond
    for i in range(len(first)):
        if row[i] >= end:
            here = row[i] * blocks // rows
            end = -((here + 1) * -rows // blocks)
        if first[i]:
            before, product, steps, own = 0.0, 1.0, 0, here
        places.gamma[i] = before
        places.discounted[i] = product
        places.step[i] = steps
        places.block[i] = max(own, here - 1)
        before = discount[i]
        product *= discount[i]
        steps += 1
    state[0], state[1], state[2], state[3] = before, product, steps, own


@compiled
def fill(lo: int, hi: int, rows: Weighted, Y: Floats, U: Floats, V: Floats) -> None:
    """V = (x - gamma' x', r, 1 - gamma'); Y = x, U = (weight_1 x, weight_2 x, ...).

    V has a row per transition, Y and U a column: loops along their long rows are fast.
    """
    X, columns = rows.X, rows.columns
    n, d = hi - lo, X.shape[1]
    for i in range(n):
        j = np.uintp(rows.row_next[lo + i])
        by = rows.discount[lo + i]
        for k in range(d):
            x = X[lo + i, k]
            Y[k, i] = x
            V[i, k] = x - by * X[j, k]
        V[i, d], V[i, d + 1] = rows.reward[lo + i], 1.0 - by
    for c in range(columns):
        by_row = rows.weight[lo * columns + c : hi * columns : columns].copy()
        for k in range(d):
            u, y = U[c * d + k], Y[k]
            for i in range(n):
                u[i] = by_row[i] * y[i]


@compiled
def traces(X: Floats, decay: Floats, emphasis: Floats, z: Floats, U: Floats) -> None:
    """U = z with z = decay z + emphasis x: rho gamma lam and rho M; a decay of 0 forgets z."""
    for i in range(len(X)):
        by, weight = decay[i], emphasis[i]
        for k in range(len(z)):
            z[k] = min(max(by * z[k] + weight * X[i, k], -LARGEST), LARGEST)
            U[k, i] = z[k]


@compiled
def decayed(lo: int, hi: int, rows: Weighted, lams: Floats, c: Floats, U: Floats) -> None:
    """U = c with c = rho (gamma lam c + 1 at a start), for every lam and ratio: [lams, ratios]."""
    R = rows.ratios
    for row in range(lo, hi):
        start = 1.0 if rows.every or rows.first[row] else 0.0
        for m in range(len(lams)):
            by = lams[m] * rows.gamma[row]
            for t in range(R):
                c[m, t] = min(rows.rho[row * R + t] * (by * c[m, t] + start), LARGEST)
                U[m * R + t, row - lo] = c[m, t]
