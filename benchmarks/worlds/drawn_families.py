"""Families of drawn worlds: see `drawn.py`. No rule was made on those of `SET_ASIDE`."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
from benchmarks.worlds.drawn import Worlds, families
from benchmarks.worlds.finite import closing
from benchmarks.worlds.world import Dynamics, Floats
from numpy.random import Generator
from scipy.stats import poisson


def _ended(P: Floats, r: Floats, first: list[int], obs: Floats, ends: int = 1) -> Dynamics:
    """The last states end an episode; it starts in one of `first`."""
    S = len(P)
    P[np.arange(S - ends, S), :, np.arange(S - ends, S)] = 1.0
    start = np.zeros(S)
    start[first] = 1.0 / len(first)
    shown = np.vstack([obs, np.full((ends, obs.shape[1]), -1.0)])
    return Dynamics(P, r, np.arange(S) >= S - ends, start, shown)


def garnet(rng: Generator, ends: bool = True) -> Dynamics:
    """Random transitions to a few states, rewards of a part of all pairs, some noise."""
    S, A, b = (int(rng.integers(*x)) for x in ((5, 50), (2, 6), (2, 6)))
    P = np.zeros((S, A, S))
    for s, a in product(range(S), range(A)):
        P[s, a, rng.choice(S, min(b, S), replace=False)] = rng.dirichlet(np.ones(min(b, S)))
    r = rng.standard_normal((S, A)) * (rng.random((S, A)) < rng.choice([0.1, 0.3, 1.0]))
    first = rng.random(S) * (rng.random(S) < 0.5) + 1e-3
    d = Dynamics(
        P, np.repeat(r[:, :, None], S, axis=2), np.zeros(S, dtype=bool), first / first.sum(),
        rng.standard_normal((S, 3)), float(rng.choice([0.0, 0.3])),
    )  # fmt: skip
    return closing(d, rng.uniform(0.02, 0.3)) if ends else d


def queue(rng: Generator, ends: bool = True) -> Dynamics:
    """Births and deaths: arrivals, a server of two to four speeds; waiting costs, service pays."""
    room, A = int(rng.integers(5, 25)), int(rng.integers(2, 5))
    come, serve = rng.uniform(0.2, 0.6), np.sort(rng.uniform(0.1, 0.9, A))
    cost = np.sort(rng.uniform(0.0, 1.0, A))
    waits, pays, lost = rng.uniform(0.02, 0.3), rng.uniform(0.0, 1.0), rng.uniform(0.0, 5.0)
    P, r = np.zeros((room + 1, A, room + 1)), np.zeros((room + 1, A, room + 1))
    for s, a in product(range(room + 1), range(A)):
        go = serve[a] if s else 0.0
        P[s, a, min(s + 1, room)] += come * (1.0 - go)
        P[s, a, max(s - 1, 0)] += go * (1.0 - come)
        P[s, a, s] += come * go + (1.0 - come) * (1.0 - go)
        r[s, a] = pays * go - waits * s - cost[a] - (lost * come if s == room else 0.0)
    start = np.zeros(room + 1)
    start[: int(rng.integers(1, room))] = 1.0
    obs = np.arange(room + 1, dtype=float)[:, None]
    d = Dynamics(P, r, np.zeros(room + 1, dtype=bool), start / start.sum(), obs)
    return closing(d, rng.uniform(0.01, 0.2)) if ends else d


def bandit(rng: Generator) -> Dynamics:
    """One step: contexts, arms; wins or not, normal rewards, or outcomes of several sizes."""
    contexts, A = int(rng.integers(1, 20)), int(rng.integers(2, 7))
    how = int(rng.integers(3))
    sizes = [np.array([0.0, 1.0]), np.zeros(1), np.array([0.0, 1.0, 4.0, 15.0])][how]
    K = len(sizes)
    S = contexts + K
    P, r = np.zeros((S, A, S)), np.zeros((S, A, S))
    for s, a in product(range(contexts), range(A)):
        P[s, a, contexts:] = rng.dirichlet(np.array([8.0, 2.0, 0.7, 0.25])[:K])
        r[s, a, contexts:] = sizes + (rng.standard_normal() if how == 1 else 0.0)
    obs = np.column_stack([np.arange(contexts), rng.standard_normal(contexts)])
    d = _ended(P, r, list(range(contexts)), obs, K)
    return d._replace(noise=1.0 if how == 1 else 0.0)


def chain(rng: Generator) -> Dynamics:
    """Left, right or stay on a line with two ends; rewards normal, skewed, or at few steps."""
    n, A = int(rng.integers(3, 20)), int(rng.integers(2, 4))
    slip = rng.uniform(0.0, 0.4)
    S = n + 2
    place = {-1: S - 2, n: S - 1}
    P = np.zeros((S, A, S))
    for s, a in product(range(n), range(A)):
        for move, p in ((-1, slip / 2), (1, slip / 2), ((-1, 1, 0)[a], 1.0 - slip)):
            P[s, a, place.get(s + move, s + move)] += p
    how = int(rng.integers(3))
    if how == 0:
        r = rng.standard_normal(S)
    elif how == 1:
        r = rng.exponential(size=S) ** 2 * rng.choice([-1.0, 1.0])
    else:
        r = rng.uniform(1.0, 10.0, size=S) * (rng.random(S) < 0.2) - 0.1
    ends = rng.choice([0.0, 1.0, 10.0], size=2)
    r = np.append(r[:n], ends)
    first = [int(rng.integers(n))] if rng.random() < 0.5 else list(range(n))
    obs = np.arange(n, dtype=float)[:, None]
    d = _ended(P, np.broadcast_to(r, P.shape).copy(), first, obs, 2)
    return d._replace(noise=float(rng.choice([0.0, 0.5])))


def prizes(rng: Generator) -> Dynamics:
    """Places where one can pass, try, or try hard; up to four prizes, the larger the rarer."""
    n, kinds = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    size = rng.uniform(0.5, 2.0) * rng.uniform(2.0, 8.0) ** np.arange(kinds)
    luck = rng.uniform(0.03, 0.2) / rng.uniform(2.0, 8.0) ** np.arange(kinds)
    size = size * rng.choice([1.0, -1.0], p=[0.7, 0.3])
    hard, over = rng.uniform(1.5, 3.0), rng.uniform(0.03, 0.5)
    S = n + kinds + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    cost = rng.uniform(0.0, 0.3)
    for s, (a, tries) in product(range(n), enumerate((0.0, 1.0, hard))):
        wins = np.minimum(tries * luck * rng.uniform(0.5, 1.5), 0.2)
        P[s, a, n : n + kinds] = wins
        left = 1.0 - wins.sum()
        P[s, a, -1] = over * left
        P[s, a, (s + 1) % n] += (1.0 - over) * left
        r[s, a] = -cost * tries * np.sign(size[0])
        r[s, a, n : n + kinds] = size
    first = list(range(int(rng.integers(1, n + 1))))
    return _ended(P, r, first, np.arange(n, dtype=float)[:, None], kinds + 1)


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


# the numbers are part of the seeds
DEVELOPMENT: Worlds = families({
    ("garnet", 100): garnet, ("queue", 102): queue, ("bandit", 103): bandit, ("chain", 104): chain,
    ("prizes", 106): prizes, ("endless-garnet", 107): partial(garnet, ends=False),
    ("endless-queue", 108): partial(queue, ends=False),
})  # fmt: skip
SET_ASIDE: Worlds = families({
    ("layers", 200): layers, ("stock", 202): stock, ("session", 203): session,
    ("ladder", 204): ladder, ("hazards", 206): hazards,
    ("endless-stock", 207): partial(stock, ends=False), ("endless-season", 208): season,
})  # fmt: skip
