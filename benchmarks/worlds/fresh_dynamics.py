"""Dynamics of the worlds of `fresh`, none of which stand in `development` or `set_aside`."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from benchmarks.worlds.control import _world
from benchmarks.worlds.grids import MOVES
from benchmarks.worlds.toy_text import _table, _taxi_obs, blackjack
from benchmarks.worlds.world import Dynamics, Floats
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv

LAKE = ("SFFFHF", "FFHFFF", "FFFFFH", "HFFHFF", "FFFFFF", "FHFFHG")


@cache
def icy_cliff() -> Dynamics:
    """Cliff walking on ice: one move in three goes to either side."""
    obs = np.array([divmod(s, 12) for s in range(48)], dtype=float)
    return _table(CliffWalkingEnv(is_slippery=True), obs)


@cache
def rainy_taxi() -> Dynamics:
    """Taxi in the rain: moves fail by chance."""
    return _table(TaxiEnv(is_rainy=True), np.array([_taxi_obs(s) for s in range(500)], float))


@cache
def lake() -> Dynamics:
    """A slippery lake of 6 x 6."""
    obs = np.array([divmod(s, 6) for s in range(36)], dtype=float)
    return _table(FrozenLakeEnv(desc=list(LAKE), is_slippery=True), obs)


@cache
def hard_blackjack() -> Dynamics:
    """Blackjack whose dealer wins draws."""
    d = blackjack()
    r = d.r.copy()
    r[:, :, -2] = -1.0
    return d._replace(r=r)


@cache
def gambler(goal: int = 20) -> Dynamics:
    """Stake 1, 2 or 4 of the capital, won with 0.45; 1 for reaching the goal, 0 for ruin."""
    S = goal + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    P[[0, goal], :, [0, goal]] = 1.0
    for s in range(1, goal):
        for a, asked in enumerate((1, 2, 4)):
            stake = min(asked, s, goal - s)
            P[s, a, s + stake] += 0.45
            P[s, a, s - stake] += 0.55
    r[:, :, goal] = 1.0
    start = np.zeros(S)
    start[5:11] = 1 / 6
    obs = np.arange(S, dtype=float)[:, None]
    return Dynamics(P, r, np.isin(np.arange(S), [0, goal]), start, obs)


@cache
def lottery(steps: int = 12) -> Dynamics:
    """A chain of steps: work (0) pays 0.2, a ticket (1) costs 0.1 and wins 25 once in a hundred."""
    S = 2 * steps + 1  # place x just won, over
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    for s in range(2 * steps):
        after = s % steps + 1
        plain, won = (S - 1, S - 1) if after == steps else (after, steps + after)
        P[s, 0, plain], r[s, 0] = 1.0, 0.2
        P[s, 1, plain] += 0.99
        P[s, 1, won] += 0.01
        r[s, 1] = -0.1
        r[s, 1, won] = 25.0 if plain != won else 0.15
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[0] = 1.0
    obs = np.append(np.tile(np.arange(steps), 2), steps).astype(float)[:, None]
    return Dynamics(P, r, np.arange(S) == S - 1, start, obs)


@cache
def swamp(side: int = 7) -> Dynamics:
    """A grid with four swamps that are left with 0.06 a step; each step costs 0.1, the goal 0."""
    S, deep = side * side, {(2, 2), (4, 1), (1, 5), (5, 4)}
    P = np.zeros((S, 4, S))
    for s in range(S):
        i, j = divmod(s, side)
        for a, b in product(range(4), repeat=2):
            di, dj = MOVES[b]
            to = int(np.clip(i + di, 0, side - 1)) * side + int(np.clip(j + dj, 0, side - 1))
            p = (0.7 if a == b else 0.1) * (0.06 if (i, j) in deep else 1.0)
            P[s, a, to] += p
        if (i, j) in deep:
            P[s, :, s] += 0.94
    start = np.zeros(S)
    start[0] = start[side - 1] = 0.5
    obs = np.array([divmod(s, side) for s in range(S)], dtype=float)
    return Dynamics(P, np.full(P.shape, -0.1), np.arange(S) == S - 1, start, obs)


@cache
def bursts(room: int = 15) -> Dynamics:
    """Calm or burst: arrivals 0.15 or 0.8; two servers (0), three (1) or five (2) at work."""
    S = 2 * (room + 1)
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(S):
        burst, n = divmod(s, room + 1)
        change, come = (0.15, 0.8) if burst else (0.02, 0.15)
        for a, (serve, cost) in enumerate(((0.3, 0.0), (0.5, 0.3), (0.75, 0.8))):
            go = serve if n else 0.0
            moves = {1: come * (1 - go), -1: go * (1 - come)}
            moves[0] = 1.0 - moves[1] - moves[-1]
            for step, p in moves.items():
                to = min(max(n + step, 0), room)
                P[s, a, burst * (room + 1) + to] += p * (1 - change)
                P[s, a, (1 - burst) * (room + 1) + to] += p * change
            r[s, a] = -0.02 * n**1.5 - cost
    start = np.zeros(S)
    start[:3] = 1 / 3
    obs = np.array([divmod(s, room + 1) for s in range(S)], dtype=float)
    return Dynamics(P, r, np.zeros(S, dtype=bool), start, obs)


@cache
def prizes(arms: int = 10) -> Dynamics:
    """One step: arm k wins a prize of 1 + 2 k with 0.3 / (1 + k), else nothing."""
    S = arms + 3  # two first states alike, nothing, and the prizes
    P, r = np.zeros((S, arms, S)), np.zeros((S, arms, S))
    for k in range(arms):
        P[:2, k, 3 + k], P[:2, k, 2] = 0.3 / (1 + k), 1.0 - 0.3 / (1 + k)
        r[:, :, 3 + k] = 1.0 + 2.0 * k
    P[np.arange(2, S), :, np.arange(2, S)] = 1.0
    start = np.zeros(S)
    start[:2] = 0.5
    return Dynamics(P, r, np.arange(S) >= 2, start, np.arange(S, dtype=float)[:, None])


@cache
def news(side: int = 6, arms: int = 6) -> Dynamics:
    """One step: readers on a square, articles at drawn places; a click (1) is rarer far away."""
    rng = np.random.default_rng(97)
    x = np.array(list(product(np.linspace(0, 1, side), repeat=2)))
    place = rng.random((arms, 2))
    click = 0.35 * np.exp(-4.0 * ((x[:, None] - place) ** 2).sum(axis=2))
    S = len(x) + 2
    P, r = np.zeros((S, arms, S)), np.zeros((S, arms, S))
    P[: len(x), :, -1], P[: len(x), :, -2] = click, 1.0 - click
    P[[-2, -1], :, [-2, -1]] = 1.0
    r[:, :, -1] = 1.0
    start = np.append(rng.dirichlet(np.full(len(x), 2.0)), [0.0, 0.0])
    return Dynamics(P, r, np.arange(S) >= len(x), start, np.vstack([x, [[2, 2], [3, 3]]]))


@cache
def perishable(room: int = 5) -> Dynamics:
    """Fresh and old stock; order 0, 2 or 4 each day; old stock is thrown away. 20 days at most."""
    states = list(product(range(room + 1), repeat=2))
    at = {x: i for i, x in enumerate(states)}
    S, end = len(states) + 1, 0.05
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    demand = (0.1, 0.2, 0.25, 0.2, 0.15, 0.07, 0.03)
    for (new, old), s in at.items():
        for a, order in enumerate((0, 2, 4)):
            gain, total = np.zeros(S), np.zeros(S)
            for n, p in enumerate(demand):
                sold_old = min(n, old)
                sold = min(n - sold_old, new)
                to = at[min(order, room), new - sold]
                total[to] += p
                gain[to] += p * (3.0 * (sold_old + sold) - 1.2 * order - 0.5 * (old - sold_old))
            P[s, a, :-1], P[s, a, -1] = (1 - end) * total[:-1], end
            r[s, a] = np.where(total > 0, gain / np.maximum(total, 1e-300), gain.sum())
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[at[0, 0]] = start[at[2, 0]] = 0.5
    obs = np.array([*states, (-1, -1)], dtype=float)
    return Dynamics(P, r, np.arange(S) == S - 1, start, obs, 0.2)


@cache
def turbine(wear: int = 6) -> Dynamics:
    """Two worn parts; run, care for one, or overhaul both. A crash is rare, ends all, costs 30."""
    states = list(product(range(wear), repeat=2))
    at = {x: i for i, x in enumerate(states)}
    S = len(states) + 2  # sold, crashed
    P, r = np.zeros((S, 4, S)), np.zeros((S, 4, S))
    for (x, y), s in at.items():
        for a in range(4):
            u, v = (x, y) if a == 0 else (max(x - 2, 0), y) if a == 1 else (x, max(y - 2, 0))
            u, v = (0, 0) if a == 3 else (u, v)
            crash = 0.0005 + 0.03 * (max(u, v) / (wear - 1)) ** 4
            for i, j in product((0, 1), repeat=2):
                p = (0.35 if i else 0.65) * (0.2 if j else 0.8)
                P[s, a, at[min(u + i, wear - 1), min(v + j, wear - 1)]] += p
            P[s, a] *= 1.0 - crash - 0.02
            P[s, a, -2], P[s, a, -1] = 0.02, crash
            r[s, a] = (1.0, 0.4, 0.4, -1.5)[a] - 0.05 * (u + v)
    r[:, :, -1] -= 30.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[at[0, 0]] = 1.0
    obs = np.array([*states, (-1, -1), (-2, -2)], dtype=float)
    return Dynamics(P, r, np.arange(S) >= S - 2, start, obs, 0.1)


@cache
def valley() -> Dynamics:
    """A cart in a valley, too weak for one push: 1 at the top on the right, -1 over the left."""
    axes = [np.linspace(-1.0, 1.0, 13), np.linspace(-0.5, 0.5, 9)]

    def step(x: Floats, a: int) -> Floats:
        speed = np.clip(0.97 * x[:, 1] + 0.09 * (a - 1) - 0.12 * np.sin(2.5 * x[:, 0]), -0.5, 0.5)
        return np.stack([np.clip(x[:, 0] + 0.5 * speed, -1.0, 1.0), speed], axis=1)

    obs, P = _world(axes, 3, step)
    right, left = obs[:, 0] >= 0.99, obs[:, 0] <= -0.99
    r = np.broadcast_to(1.0 * right - 1.0 * left, P.shape).copy()
    start = ((np.abs(obs[:, 0]) < 0.2) & (np.abs(obs[:, 1]) < 0.2)).astype(float)
    return Dynamics(P, r, right | left, start / start.sum(), obs)


@cache
def ward() -> Dynamics:
    """Sugar (5), pressure (3), tired (2, fixed): no drug, insulin, fluid or both. Death is rare."""
    states = list(product(range(5), range(3), range(2)))
    at = {x: i for i, x in enumerate(states)}
    S = len(states) + 2
    P, r = np.zeros((S, 4, S)), np.zeros((S, 4, S))
    for (sugar, pressure, tired), s in at.items():
        die = 0.003 + 0.03 * (sugar in (0, 4)) + 0.02 * (pressure == 0) + 0.01 * tired
        home = 0.2 if sugar == 2 and pressure == 1 else 0.02
        for a in range(4):
            down, up = (0.5, 0.05) if a & 1 else (0.1, 0.2 + 0.15 * tired)
            fall, rise = (0.05, 0.4) if a & 2 else (0.15, 0.1)
            for i, j in product((-1, 0, 1), repeat=2):
                p = (down, 1 - down - up, up)[i + 1] * (fall, 1 - fall - rise, rise)[j + 1]
                to = min(max(sugar + i, 0), 4), min(max(pressure + j, 0), 2), tired
                P[s, a, at[to]] += p * (1 - die - home)
            P[s, a, -2], P[s, a, -1] = die, home
            r[s, a] = -0.01 * (a > 0) - 0.01 * (a == 3)
    r[:, :, -2], r[:, :, -1] = -1.0, 1.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    for sugar, tired in product((0, 1, 3, 4), (0, 1)):
        start[at[sugar, 1, tired]] = 1 / 8
    obs = np.array([*states, (-1, -1, -1), (-2, -2, -2)], dtype=float)
    return Dynamics(P, r, np.arange(S) >= S - 2, start, obs)


@cache
def subscribers(levels: int = 7) -> Dynamics:
    """Loyalty 0 to 6 of a subscriber: nothing, a mail or a discount; each month pays, some leave.

    Few become loyal; those stay for very long, and pay most of it all.
    """
    S = levels + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(levels):
        leave = 0.3 * 0.55**s
        for a, (up, pay) in enumerate(((0.06, 1.0), (0.12, 0.95), (0.25, 0.7))):
            down = 0.12
            P[s, a, min(s + 1, levels - 1)] += (1 - leave) * up
            P[s, a, max(s - 1, 0)] += (1 - leave) * down
            P[s, a, s] += (1 - leave) * (1 - up - down)
            P[s, a, -1] = leave
            r[s, a] = pay * (1.0 + 0.5 * s)
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[0] = 1.0
    return Dynamics(P, r, np.arange(S) == levels, start, np.arange(S, dtype=float)[:, None], 0.2)
