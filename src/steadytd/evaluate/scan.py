"""Compiled passes over the rows of a batch: where episodes stand, ratios, weights of rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from steadytd.core.arrays import Bools, Floats, Ints, Longs

LARGEST = 1e100  # products of ratios stop here: their squares must stay finite


@njit(cache=True, nogil=True, error_model="numpy")
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
    for i in range(len(first)):
        if first[i]:
            state[0] = 0.0
            state[1] = 1.0
            state[2] = 0.0
            state[3] = row[i] * blocks // rows
        gamma[i] = state[0]
        discounted[i] = state[1]
        step[i] = np.int64(state[2])
        block[i] = max(np.int64(state[3]), row[i] * blocks // rows - 1)
        state[0] = discount[i]
        state[1] *= discount[i]
        state[2] += 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def ratios(
    lo: int,
    hi: int,
    target: Floats,
    behavior: Floats,
    first: Bools,
    gamma: Floats,
    discounted: Floats,
    step: Longs,
    reward: Floats,
    emphatic: Bools,
    lam: Floats,
    beta: Floats,
    column: int,
    weight: Floats,
    trajectory: Floats,
    rho: Floats,
    state: Floats,
    sums: Floats,
    numerator: Floats,
    denominator: Floats,
    ended: Floats,
    histogram: Longs,
) -> None:
    """The ratios of one target on rows lo..hi: their products, traces F, and sums over them.

    `weight[i, column + k]` becomes rho M of system k, `trajectory[i]` the discounted product of
    ratios up to row i. `state` = product, ratio of the previous row, steps so far, then F per
    system. `sums` = rho, rho^2, zeros, largest, episodes' product, its square, its largest.
    """
    horizon = len(numerator)
    systems = len(lam)
    for i in range(lo, hi):
        r = target[i] / behavior[i] if behavior[i] > 0.0 else 0.0
        rho[i] = r
        if first[i]:
            finish(state, sums, ended)
            state[0] = 1.0
        for k in range(systems):
            if emphatic[k]:
                decay = beta[k] if beta[k] >= 0.0 and gamma[i] > 0.0 else gamma[i]
                F = min(decay * state[1] * state[3 + k] + 1.0, LARGEST)
                state[3 + k] = F
                weight[i, column + k] = r * (lam[k] + (1.0 - lam[k]) * F)
            else:
                weight[i, column + k] = r
        state[0] = min(state[0] * r, LARGEST)
        state[1] = r
        state[2] = step[i] + 1.0
        trajectory[i] = discounted[i] * state[0]
        at = min(step[i], horizon - 1)
        numerator[at] += trajectory[i] * reward[i]
        if step[i] < horizon:
            denominator[at] += state[0]
        sums[0] += r
        sums[1] += r * r
        sums[2] += r == 0.0
        sums[3] = max(sums[3], r)
    count(rho[lo:hi].view(np.int64), histogram)


@njit(cache=True, nogil=True, error_model="numpy")
def finish(state: Floats, sums: Floats, ended: Floats) -> None:
    """Count the episode that has just ended, if there was one."""
    if state[2] > 0.0:
        sums[4] += state[0]
        sums[5] += state[0] * state[0]
        sums[6] = max(sums[6], state[0])
        if state[2] < len(ended):
            ended[np.int64(state[2])] += state[0]
        state[2] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def count(bits: Longs, histogram: Longs) -> None:
    """Count numbers >= 0, given by their bits, in bins that begin at 2^e and 1.5 2^e.

    Exponent and first bit of the fraction are the bin; 1 begins the middle one, bin 0 holds 0.
    """
    bins = len(histogram)
    shift = bins // 2 - (1023 << 1)
    for i in range(len(bits)):
        place = min(max((bits[i] >> 51) + shift, 1), bins - 1)
        histogram[place if bits[i] != 0 else 0] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def fill(
    lo: int,
    hi: int,
    X: Floats,
    row_next: Ints,
    discount: Floats,
    reward: Floats,
    weight: Floats,
    trajectory: Floats,
    U: Floats,
    V: Floats,
) -> None:
    """V = (x - gamma' x', r), U = (weight_1 x, weight_2 x, ..., trajectory_1, ...)."""
    d = X.shape[1]
    columns = weight.shape[1]
    for i in range(lo, hi):
        u = U[i - lo]
        v = V[i - lo]
        x = X[i]
        x_next = X[row_next[i]]
        by = discount[i]
        for k in range(d):
            v[k] = x[k] - by * x_next[k]
        v[d] = reward[i]
        for j in range(columns):
            by = weight[i, j]
            for k in range(d):
                u[j * d + k] = by * x[k]
        for j in range(trajectory.shape[0]):
            u[columns * d + j] = trajectory[j, i]


@njit(cache=True, nogil=True, error_model="numpy")
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
            U[i - lo, k] = z[k]
