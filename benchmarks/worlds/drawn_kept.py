"""Families of drawn worlds that were set aside: no rule was made on them. See `drawn.py`."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
from benchmarks.worlds.beyond import _ended
from benchmarks.worlds.control import _world
from benchmarks.worlds.drawn import Worlds, families
from benchmarks.worlds.grids import MOVES
from benchmarks.worlds.queues import closing
from benchmarks.worlds.world import Dynamics, Floats
from numpy.random import Generator
from scipy.stats import poisson


def layers(rng: Generator) -> Dynamics:
    """From layer to layer of random states, or out of it; rewards on steps or at the end alone."""
    deep, wide, A = (int(rng.integers(*x)) for x in ((2, 11), (2, 8), (2, 5)))
    S, late = deep * wide + 1, rng.random() < 0.4
    P, r = np.zeros((S, A, S)), np.zeros((S, A, S))
    leaves = rng.uniform(0.0, 0.1)
    for s, a in product(range(S - 1), range(A)):
        layer = s // wide
        last = layer + 1 == deep
        to = np.array([S - 1]) if last else np.arange((layer + 1) * wide, (layer + 2) * wide)
        P[s, a, to] = (1.0 - leaves) * rng.dirichlet(np.full(len(to), 0.5))
        P[s, a, -1] += leaves
        r[s, a] = rng.standard_normal() * (not late)
        if last:
            r[s, a] = rng.standard_normal() * 2.0
    states = np.array(list(product(range(deep), range(wide))), dtype=float)
    d = _ended(P, r, list(range(wide)), states)
    return d._replace(noise=float(rng.choice([0.0, 1.0])))


def lake(rng: Generator) -> Dynamics:
    """A grid with holes or a cliff: they end the walk, or lead back to the start at a cost."""
    high, wide = (int(n) for n in rng.integers(3, 8, size=2))
    S, start, goal = high * wide, 0, high * wide - 1
    bad = rng.random(S) < rng.uniform(0.05, 0.25)
    if rng.random() < 0.3:  # a cliff along the way
        bad = np.arange(S) % wide > 0
        bad[wide:] = False
        goal = wide - 1
    bad[[start, goal]] = False
    back, slip = bool(rng.random() < 0.4), float(rng.choice([0.0, 0.1, 1 / 3, 2 / 3]))
    cost = float(rng.choice([0.0, 0.05, 1.0]))
    falls = -float(rng.choice([0.0, 1.0, 10.0])) if not back else -float(rng.choice([1.0, 20.0]))
    P, r = np.zeros((S, 4, S)), np.full((S, 4, S), -cost)
    for s, a in product(range(S), range(4)):
        for turn, p in ((0, 1.0 - slip), (1, slip / 2), (3, slip / 2)):
            di, dj = MOVES[(a + turn) % 4]
            i, j = min(max(s // wide + di, 0), high - 1), min(max(s % wide + dj, 0), wide - 1)
            to = i * wide + j
            if bad[to] and back:
                r[s, a, start] = falls
                to = start
            P[s, a, to] += p
    r[:, :, goal] = rng.choice([1.0, 5.0, 20.0])
    ends = np.arange(S) == goal
    if not back:
        r[:, :, bad] = falls
        ends = ends | bad
    obs = np.array([divmod(s, wide) for s in range(S)], dtype=float)
    return Dynamics(P, r, ends, np.eye(S)[start], obs)


def stock(rng: Generator, ends: bool = True) -> Dynamics:
    """A shelf: order none, some or many; a drawn demand; what is missing costs."""
    room = int(rng.integers(5, 25))
    orders = np.unique(
        np.rint(np.array([0.0, rng.uniform(0.1, 0.4), rng.uniform(0.5, 1.0)]) * room)
    )
    A, mean = len(orders), rng.uniform(0.1, 0.5) * room
    price, keeps, missed = rng.uniform(0.5, 2.0), rng.uniform(0.01, 0.2), rng.uniform(0.0, 2.0)
    fixed = rng.uniform(0.0, 2.0)
    S = room + 1
    want = poisson.pmf(np.arange(4 * S), mean)
    want[-1] += 1.0 - want.sum()
    P, r = np.zeros((S, A, S)), np.zeros((S, A, S))
    for s, a in product(range(S), range(A)):
        have = min(s + int(orders[a]), room)
        total = 0.0
        for n, p in enumerate(want):
            sold = min(n, have)
            P[s, a, have - sold] += p
            total += p * (price * sold - missed * (n - sold))
        r[s, a] = total - keeps * have - fixed * (orders[a] > 0) - 0.3 * (have - s)
    start = np.ones(S)
    d = Dynamics(P, r, np.zeros(S, dtype=bool), start / S, np.arange(S, dtype=float)[:, None])
    return closing(d, rng.uniform(0.02, 0.3)) if ends else d


def session(rng: Generator) -> Dynamics:
    """A visitor who tires is shown items: clicks pay, a sale pays more and ends it."""
    kinds, tired, A = (int(rng.integers(*x)) for x in ((1, 6), (2, 7), (2, 6)))
    likes = rng.beta(1.0, 4.0, size=(kinds, A))
    tires, sale = rng.uniform(0.1, 0.9, size=A), rng.uniform(2.0, 30.0)
    sells = likes * rng.uniform(0.005, 0.1)
    leaves = rng.uniform(0.02, 0.15) + rng.uniform(0.05, 0.4) * np.arange(tired) / tired
    n = kinds * tired
    S = n + 2  # sold, gone
    P, r = np.zeros((S, A, S)), np.zeros((S, A, S))
    for k, t, a in product(range(kinds), range(tired), range(A)):
        s = k * tired + t
        P[s, a, -2] = sells[k, a]
        stays = (1.0 - sells[k, a]) * (1.0 - leaves[t])
        P[s, a, -1] = (1.0 - sells[k, a]) * leaves[t]
        P[s, a, k * tired + min(t + 1, tired - 1)] += stays * tires[a]
        P[s, a, k * tired + max(t - 1, 0)] += stays * (1.0 - tires[a])
        r[s, a], r[s, a, -2] = likes[k, a], sale
    obs = np.array(list(product(range(kinds), range(tired))), dtype=float)
    d = _ended(P, r, [k * tired for k in range(kinds)], obs, 2)
    return d._replace(noise=float(rng.choice([0.0, 0.4])))


def ladder(rng: Generator) -> Dynamics:
    """Rungs: climb, rest or leave; one may fall; what a rung pays has a long tail."""
    n = int(rng.integers(3, 16))
    rises, falls = rng.uniform(0.3, 0.9), rng.uniform(0.02, 0.2)
    pays = np.sort(rng.pareto(rng.uniform(1.2, 4.0), size=n)) * rng.uniform(0.2, 1.0)
    S = n + 2  # fallen, left
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(n):
        up = min(s + 1, n - 1)
        P[s, 0, -2], P[s, 1, -2], P[s, 2, -1] = falls, falls / 4.0, 1.0
        P[s, 0, up] += (1.0 - falls) * rises
        P[s, 0, s] += (1.0 - falls) * (1.0 - rises)
        P[s, 1, s] += (1.0 - falls / 4.0) * 0.9
        P[s, 1, -1] += (1.0 - falls / 4.0) * 0.1
        r[s, 0], r[s, 1], r[s, 2] = -0.05, 0.2 * pays[s], pays[s]
        r[s, :, -2] = -rng.uniform(0.0, 2.0)
    d = _ended(P, r, [0], np.arange(n, dtype=float)[:, None], 2)
    return d._replace(noise=float(rng.choice([0.0, 0.2])))


def pendulum(rng: Generator) -> Dynamics:
    """A pendulum to hold up, as heavy and as strong as drawn; a cost by angle, or 1 per step."""
    axes = [np.linspace(-1.2, 1.2, int(rng.integers(9, 15))), np.linspace(-4.0, 4.0, 9)]
    weight, torque, dt = rng.uniform(4.0, 9.0), rng.uniform(4.0, 10.0), rng.uniform(0.08, 0.15)

    def step(x: Floats, a: int) -> Floats:
        turn = np.clip(x[:, 1] + dt * (weight * np.sin(x[:, 0]) + torque * (a - 1)), -4.0, 4.0)
        return np.stack([np.clip(x[:, 0] + dt * turn, -1.2, 1.2), turn], axis=1)

    obs, P = _world(axes, 3, step)
    ends = np.abs(obs[:, 0]) > 1.1
    falls = float(rng.choice([0.0, 5.0]))
    cost = (obs[:, 0] ** 2 + 0.1 * obs[:, 1] ** 2) / 5.0
    each = np.ones(len(obs)) if rng.random() < 0.5 else -cost
    r = np.broadcast_to(each[:, None, None], P.shape) - falls * ends
    start = (np.abs(obs) < [0.4, 1.1]).all(axis=1).astype(float)
    return Dynamics(P, r, ends, start / start.sum(), obs)


def hazards(rng: Generator) -> Dynamics:
    """A way of several stages: careful, usual or fast; a rare loss, as large as the stage says."""
    n = int(rng.integers(2, 13))
    lost = rng.uniform(1.0, 3.0) * np.exp(rng.normal(0.0, rng.uniform(0.3, 1.5), size=n))
    chance = rng.uniform(0.003, 0.05) * np.array(
        [rng.uniform(0.0, 0.5), 1.0, rng.uniform(1.5, 4.0)]
    )
    gains = np.sort(rng.uniform(0.0, 0.5, 3))
    S = n + 2  # lost, arrived
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    goes_on = bool(rng.random() < 0.5)  # after a loss
    for s, a in product(range(n), range(3)):
        to = s + 1 if s + 1 < n else S - 1
        P[s, a, -2] = 0.0 if goes_on else chance[a]
        moves = rng.uniform(0.5, 1.0)
        P[s, a, to] += (1.0 - P[s, a, -2]) * moves
        P[s, a, s] += (1.0 - P[s, a, -2]) * (1.0 - moves)
        r[s, a] = gains[a]
        if goes_on:  # back to the first stage
            P[s, a] *= 1.0 - chance[a]
            r[s, a, 0] = (r[s, a, 0] * P[s, a, 0] - lost[s] * chance[a]) / (P[s, a, 0] + chance[a])
            P[s, a, 0] += chance[a]
        r[s, a, -2] = -lost[s]
    first = [0] if rng.random() < 0.5 else list(range(n))
    return _ended(P, r, first, np.arange(n, dtype=float)[:, None], 2)


def season(rng: Generator) -> Dynamics:
    """Endless: a season that turns, and a level that moves up and down; three actions."""
    long, n = int(rng.integers(2, 9)), int(rng.integers(3, 9))
    S = long * n
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    turn, push = rng.uniform(0.1, 0.9), rng.uniform(0.2, 0.8)
    best, scale = rng.integers(0, n, size=long), rng.uniform(0.1, 1.0)
    for t, x, a in product(range(long), range(n), range(3)):
        s = t * n + x
        for later, p in ((1, turn), (0, 1.0 - turn)):
            for move, q in ((a - 1, push), (0, (1.0 - push) / 2), (1, (1.0 - push) / 2)):
                to = (t + later) % long * n + min(max(x + move, 0), n - 1)
                P[s, a, to] += p * q
        r[s, a] = -scale * abs(x - best[t]) - 0.1 * abs(a - 1)
    obs = np.array(list(product(range(long), range(n))), dtype=float)
    return Dynamics(
        P, r, np.zeros(S, dtype=bool), np.full(S, 1.0 / S), obs, float(rng.choice([0.0, 0.5]))
    )


DRAWN_KEPT: Worlds = families(
    {
        "layers": layers, "lake": lake, "stock": stock, "session": session, "ladder": ladder,
        "pendulum": pendulum, "hazards": hazards, "endless-stock": partial(stock, ends=False),
        "endless-season": season,
    },
    first=200,
)  # fmt: skip
