"""Chains and random dynamics: walks, rivers, trees, stopping, drawn tables."""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.worlds.world import Dynamics


@cache
def drawn(states: int, actions: int, branch: int, end: float, seed: int) -> Dynamics:
    """A table of random transitions; each step ends the episode with probability `end`."""
    rng = np.random.default_rng([seed, 19])
    S = states + 1
    P = np.zeros((S, actions, S))
    for s in range(states):
        for a in range(actions):
            after = rng.choice(states, size=branch, replace=False)
            P[s, a, after] = (1.0 - end) * rng.dirichlet(np.ones(branch))
    P[:states, :, -1] = end
    P[-1, :, -1] = 1.0
    r = rng.normal(size=(S, actions, 1)) + np.linspace(-1.0, 1.0, S)[:, None, None]
    start = np.append(rng.dirichlet(np.ones(states)), 0.0)
    if not end:
        P, r, start, S = P[:-1, :, :-1], r[:-1], start[:-1], states
    angle = rng.permutation(S) / S
    obs = np.stack([angle, np.cos(7 * angle)], axis=1)
    ends = np.zeros(S, dtype=bool)
    ends[states:] = True
    return Dynamics(P, np.broadcast_to(r, P.shape).copy(), ends, start, obs, 0.5)


@cache
def walk(states: int) -> Dynamics:
    """A random walk whose ends pay -1 and 1; actions push left or right, each fails with 0.2."""
    S = states + 2
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    for s in range(1, S - 1):
        P[s, 0, [s - 1, s + 1]] = 0.8, 0.2
        P[s, 1, [s - 1, s + 1]] = 0.2, 0.8
    P[[0, -1], :, [0, -1]] = 1.0
    r[:, :, 0], r[:, :, -1] = -1.0, 1.0
    start = np.zeros(S)
    start[S // 2 - 1 : S // 2 + 2] = 1.0 / 3.0
    ends = np.zeros(S, dtype=bool)
    ends[[0, -1]] = True
    return Dynamics(P, r, ends, start, np.linspace(-1.0, 1.0, S)[:, None])


@cache
def river(states: int = 6, end: float = 0.02) -> Dynamics:
    """RiverSwim: against the current (action 1) to a large reward, with it to a small one."""
    S = states + 1
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    for s in range(states):
        down, up = max(s - 1, 0), min(s + 1, states - 1)
        P[s, 0, down] += 1.0
        for after, p in ((down, 0.05), (s, 0.6), (up, 0.35)):
            P[s, 1, after] += p
    P[:states] *= 1.0 - end
    P[:states, :, -1] += end
    P[-1, :, -1] = 1.0
    r[0, 0], r[states - 1, 1] = 0.05, 1.0
    start = np.zeros(S)
    start[:2] = 0.5
    obs = np.arange(S, dtype=float)[:, None]
    return Dynamics(P, r, np.arange(S) == states, start, obs)


@cache
def tree(depth: int) -> Dynamics:
    """A binary tree: `depth` choices that succeed with 0.9; leaves pay drawn prizes."""
    rng = np.random.default_rng(31)
    S = 2 ** (depth + 1) - 1
    inner = 2**depth - 1
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    prize = rng.gamma(1.0, size=S)
    for s in range(inner):
        for a in (0, 1):
            P[s, a, 2 * s + 1 + a], P[s, a, 2 * s + 2 - a] = 0.9, 0.1
    r[:, :, inner:] = prize[inner:]
    P[np.arange(inner, S), :, np.arange(inner, S)] = 1.0
    level = np.floor(np.log2(np.arange(S) + 1.0))
    obs = np.stack([level, (np.arange(S) + 1.5 - 2**level) / 2**level], axis=1)
    start = np.zeros(S)
    start[0] = 1.0
    return Dynamics(P, r, np.arange(S) >= inner, start, obs, 0.2)


@cache
def stopping(prices: int = 21, end: float = 0.03) -> Dynamics:
    """Sell a share: hold (0) while a mean-reverting price moves, or sell at the price (1)."""
    S = prices + 2  # lapsed, sold
    price = np.linspace(0.5, 1.5, prices)
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    for s in range(prices):
        up = 0.5 - 0.35 * (2 * s / (prices - 1) - 1.0)
        P[s, 0, min(s + 1, prices - 1)] += (1 - end) * up
        P[s, 0, max(s - 1, 0)] += (1 - end) * (1 - up)
        P[s, 0, prices] = end
        P[s, 1, -1] = 1.0
        r[s, 1] = price[s]
        r[s, 0] = -0.002
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[:prices] = np.exp(-0.5 * ((np.arange(prices) - 8) / 2.0) ** 2)
    obs = np.append(price, [0.0, 0.1])[:, None]
    return Dynamics(P, r, np.arange(S) >= prices, start / start.sum(), obs)


@cache
def line(points: int = 41) -> Dynamics:
    """Endless: x' = 0.9 x + 0.3 a + noise on a grid, three pushes, reward 1 - x^2 - 0.1 |a|."""
    x = np.linspace(-2.0, 2.0, points)
    P = np.empty((points, 3, points))
    r = np.empty((points, 3, points))
    for a, push in enumerate((-1.0, 0.0, 1.0)):
        middle = 0.9 * x + 0.3 * push
        weight = np.exp(-0.5 * ((x[None, :] - middle[:, None]) / 0.25) ** 2)
        P[:, a] = weight / weight.sum(axis=1, keepdims=True)
        r[:, a] = (1.0 - x**2 - 0.1 * abs(push))[:, None]
    start = np.full(points, 1.0 / points)
    return Dynamics(P, r, np.zeros(points, dtype=bool), start, x[:, None])
