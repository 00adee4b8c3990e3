"""Queues and stocks: one server, two servers, inventory, machines that wear out."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from benchmarks.worlds.world import Dynamics
from scipy.stats import poisson


def closing(d: Dynamics, end: float) -> Dynamics:
    """The same, but each step is the last one with probability `end`."""
    S, A = d.P.shape[:2]
    P, r = np.zeros((S + 1, A, S + 1)), np.zeros((S + 1, A, S + 1))
    P[:S, :, :S], P[:S, :, S], P[S, :, S] = d.P * (1.0 - end), end, 1.0
    r[:S, :, :S] = d.r
    r[:S, :, S] = np.einsum("sat,sat->sa", d.P, d.r)
    obs = np.vstack([d.obs, d.obs.min(axis=0) - 1.0])
    ends = np.append(np.zeros(S, dtype=bool), True)
    return Dynamics(P, r, ends, np.append(d.start, 0.0), obs, d.noise)


@cache
def queue(room: int = 20) -> Dynamics:
    """One server, slow (0) or fast (1): arrivals 0.45; service 0.4 or 0.65; fast costs 0.7."""
    S = room + 1
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    for s in range(S):
        for a, (serve, cost) in enumerate(((0.4, 0.0), (0.65, 0.7))):
            come, go = 0.45, serve if s else 0.0
            P[s, a, min(s + 1, room)] += come * (1 - go)
            P[s, a, max(s - 1, 0)] += go * (1 - come)
            P[s, a, s] += come * go + (1 - come) * (1 - go)
            r[s, a] = -0.1 * s - cost
    start = np.zeros(S)
    start[:4] = 0.25
    return Dynamics(P, r, np.zeros(S, dtype=bool), start, np.arange(S, dtype=float)[:, None])


@cache
def two_queues(room: int = 8) -> Dynamics:
    """One server for two queues: serve the first, the second, or the longer one; unequal costs."""
    states = list(product(range(room + 1), repeat=2))
    at = {x: i for i, x in enumerate(states)}
    S = len(states)
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (x, y), s in at.items():
        for a in range(3):
            first = a == 0 or (a == 2 and x >= y)
            go = (0.8 * (x > 0), 0.0) if first else (0.0, 0.6 * (y > 0))
            for come in product((0, 1), repeat=2):
                p = (0.3 if come[0] else 0.7) * (0.2 if come[1] else 0.8)
                for left, q in ((1, sum(go)), (0, 1.0 - sum(go))):
                    new_x = min(x - left * (go[0] > 0) + come[0], room)
                    new_y = min(y - left * (go[1] > 0) + come[1], room)
                    P[s, a, at[new_x, new_y]] += p * q
            r[s, a] = -(x + 2.0 * y) / 10.0
    start = np.zeros(S)
    start[at[0, 0]] = start[at[2, 2]] = 0.5
    return Dynamics(P, r, np.zeros(S, dtype=bool), start, np.array(states, dtype=float))


@cache
def inventory(room: int = 12) -> Dynamics:
    """Order 0, 3, 6 or 9 pieces; Poisson demand of 3; sales, keeping and orders are paid."""
    S, orders = room + 1, (0, 3, 6, 9)
    P, r = np.zeros((S, 4, S)), np.zeros((S, 4, S))
    demand = poisson.pmf(np.arange(60), 3.0)
    for s in range(S):
        for a, order in enumerate(orders):
            have = min(s + order, room)
            for n, p in enumerate(demand):
                left = max(have - n, 0)
                P[s, a, left] += p
            cost = 0.5 * (order > 0) + 1.0 * (have - s) + 0.1 * have
            for left in range(have + 1):
                r[s, a, left] = 2.0 * (have - left) - cost
    P /= P.sum(axis=2, keepdims=True)
    start = np.full(S, 1.0 / S)
    obs = np.arange(S, dtype=float)[:, None]
    return Dynamics(P, r, np.zeros(S, dtype=bool), start, obs, 0.3)


@cache
def machine(ages: int = 15) -> Dynamics:
    """Endless: run (0), repair (1) or replace (2) a machine that wears out and may break."""
    S = ages + 1  # the last is broken
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(ages):
        fail = 0.01 + 0.3 * (s / ages) ** 2
        P[s, 0, min(s + 1, ages - 1)] += 1.0 - fail
        P[s, 0, ages] += fail
        P[s, 1, max(s - 4, 0)] = 1.0
        r[s, 0], r[s, 1] = 1.0 - 0.4 * s / ages, 0.1
    P[ages, 0, ages], P[ages, 0, ages - 4] = 0.7, 0.3
    P[ages, 1, ages], P[ages, 1, ages // 2] = 0.3, 0.7
    r[ages, 0], r[ages, 1] = -1.0, -1.5
    P[:, 2, 0], r[:, 2] = 1.0, -1.0
    start = np.zeros(S)
    start[0] = 1.0
    obs = np.arange(S, dtype=float)[:, None]
    return Dynamics(P, r, np.zeros(S, dtype=bool), start, obs, 0.1)
