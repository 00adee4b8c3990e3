"""Compiled passes over the rows of a batch: where episodes stand, weighted features, traces."""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.base.jit import compiled


@compiled
def along(
    first: Bools,
    discount: Floats,
    row: Longs,
    rows: int,
    blocks: int,
    state: Floats,
    gamma: Floats,
    discounted: Floats,
    step: Longs,
    block: Longs,
) -> None:
    """For every row: gamma of its state, product of discounts so far, step in the episode, block.

    An episode belongs to the block in which it begins; one that is longer than a block goes on into
    the next ones. `state` holds gamma, product, step and block of the next row.
    """
    before, product, steps, own = state[0], state[1], int(state[2]), int(state[3])
    here = end = -1  # the block that a row is in: row * blocks // rows, and its first row beyond
    for i in range(len(first)):
        if row[i] >= end:
            here = row[i] * blocks // rows
            end = -((here + 1) * -rows // blocks)
        if first[i]:
            before, product, steps, own = 0.0, 1.0, 0, here
        gamma[i] = before
        discounted[i] = product
        step[i] = steps
        block[i] = max(own, here - 1)
        before = discount[i]
        product *= discount[i]
        steps += 1
    state[0], state[1], state[2], state[3] = before, product, steps, own


@compiled
def fill(
    lo: int,
    hi: int,
    X: Floats,
    row_next: Ints,
    discount: Floats,
    reward: Floats,
    weight: Floats,
    trajectory: Floats,
    Y: Floats,
    U: Floats,
    V: Floats,
) -> None:
    """V = (x - gamma' x', r); Y = x, U = (weight_1 x, weight_2 x, ..., trajectory_1, ...).

    V has a row per transition, Y and U a column: loops along their long rows are fast.
    """
    n, d = hi - lo, X.shape[1]
    columns = weight.shape[1]
    for i in range(n):
        j = np.uintp(row_next[lo + i])
        by = discount[lo + i]
        for k in range(d):
            x = X[lo + i, k]
            Y[k, i] = x
            V[i, k] = x - by * X[j, k]
        V[i, d] = reward[lo + i]
    for c in range(columns):
        by_row = weight[lo:hi, c].copy()
        for k in range(d):
            u, y = U[c * d + k], Y[k]
            for i in range(n):
                u[i] = by_row[i] * y[i]
    for t in range(trajectory.shape[1]):
        U[columns * d + t, :n] = trajectory[lo:hi, t]


@compiled
def traces(
    lo: int,
    hi: int,
    X: Floats,
    gamma: Floats,
    rho: Floats,
    emphasis: Floats,
    lam: float,
    z: Floats,
    U: Floats,
) -> None:
    """U = z with z = rho (gamma lam z + M x); `emphasis` is rho M. gamma = 0 begins an episode."""
    for i in range(lo, hi):
        decay = rho[i] * gamma[i] * lam
        for k in range(len(z)):
            z[k] = (decay * z[k] if decay != 0.0 else 0.0) + emphasis[i] * X[i, k]
            U[k, i - lo] = z[k]
