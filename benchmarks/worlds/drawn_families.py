"""Families of drawn worlds for development: see `drawn.py`."""

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
from numpy.typing import NDArray


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


def walls(rng: Generator) -> Dynamics:
    """A grid with walls and one or two goals; moves slip, and may cost."""
    high, wide = (int(n) for n in rng.integers(3, 8, size=2))
    free = rng.random((high, wide)) > rng.uniform(0.0, 0.3)
    both = rng.permutation(np.argwhere(np.ones_like(free)))[:2].tolist()
    goals = [(int(i), int(j)) for i, j in both]
    cells = _connected(free, goals[0])
    at = {cell: i for i, cell in enumerate(cells)}
    S, slip = len(cells), rng.uniform(0.0, 0.4)
    P, r = np.zeros((S, 4, S)), np.full((S, 4, S), -float(rng.choice([0.0, 0.02, 0.1, 1.0])))
    for (i, j), s in at.items():
        after = [at.get((i + di, j + dj), s) for di, dj in MOVES]
        for a, b in product(range(4), repeat=2):
            P[s, a, after[b]] += (1.0 - slip) * (a == b) + slip / 4
    ends = np.zeros(S, dtype=bool)
    for goal in goals[: int(rng.integers(1, 3))]:
        if goal in at:
            ends[at[goal]] = True
            r[:, :, at[goal]] = rng.uniform(0.5, 3.0) * rng.choice([1.0, 5.0])
    start = (
        ~ends if rng.random() < 0.5 else np.arange(S) == rng.permutation(np.flatnonzero(~ends))[:1]
    )
    return Dynamics(P, r, ends, start / max(start.sum(), 1), np.array(cells, dtype=float))


def _connected(free: NDArray[np.bool_], goal: tuple[int, int]) -> list[tuple[int, int]]:
    """The cells from which the goal can be reached."""
    found, todo = {goal}, [goal]
    while todo:
        i, j = todo.pop()
        for di, dj in MOVES:
            to = i + di, j + dj
            inside = 0 <= to[0] < free.shape[0] and 0 <= to[1] < free.shape[1]
            if inside and free[to] and to not in found:
                found.add(to)
                todo.append(to)
    return sorted(found)


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


def car(rng: Generator) -> Dynamics:
    """A car in a valley, as steep and as strong as drawn; a step costs 1, or the top pays."""
    axes = [np.linspace(-1.2, 0.6, int(rng.integers(9, 15))), np.linspace(-0.07, 0.07, 9)]
    power, steep, times = rng.uniform(0.004, 0.01), rng.uniform(0.001, 0.003), rng.uniform(1.5, 3.0)

    def step(x: Floats, a: int) -> Floats:
        v = np.clip(x[:, 1] + power * (a - 1) - steep * np.cos(3 * x[:, 0]), -0.07, 0.07)
        place = np.clip(x[:, 0] + times * v, -1.2, 0.6)
        return np.stack([place, np.where(place <= -1.2, 0.0, v)], axis=1)

    obs, P = _world(axes, 3, step)
    ends = obs[:, 0] >= 0.45
    start = ((np.abs(obs[:, 0] + 0.5) < 0.2) & (np.abs(obs[:, 1]) < 0.01)).astype(float)
    pays = rng.random() < 0.3
    r = np.full(P.shape, 0.0 if pays else -1.0) + (10.0 if pays else 0.0) * ends
    return Dynamics(P, r, ends, start / start.sum(), obs)


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


def lottery(rng: Generator) -> Dynamics:
    """As `prizes`, but all sizes are worth about as much: the largest is seen seldom or never."""
    n, kinds = int(rng.integers(1, 6)), int(rng.integers(2, 5))
    times = rng.uniform(3.0, 12.0)
    size = rng.uniform(0.5, 2.0) * times ** np.arange(kinds)
    luck = rng.uniform(0.03, 0.2) / times ** (rng.uniform(0.7, 1.1) * np.arange(kinds))
    size = size * rng.choice([1.0, -1.0], p=[0.7, 0.3])
    hard, over = rng.uniform(1.5, 3.0), float(rng.choice([1.0, rng.uniform(0.1, 0.6)]))
    S = n + kinds + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, (a, tries) in product(range(n), enumerate((0.0, 1.0, hard))):
        wins = tries * luck / 3.0
        P[s, a, n : n + kinds] = wins
        P[s, a, -1] = over * (1.0 - wins.sum())
        P[s, a, rng.integers(n)] += (1.0 - over) * (1.0 - wins.sum())
        r[s, a] = -np.sign(size[0]) * luck[0] * tries / 3.0
        r[s, a, n : n + kinds] = size
    return _ended(P, r, list(range(n)), np.arange(n, dtype=float)[:, None], kinds + 1)


DRAWN: Worlds = families(
    {
        "garnet": garnet, "walls": walls, "queue": queue, "bandit": bandit, "chain": chain,
        "car": car, "prizes": prizes, "endless-garnet": partial(garnet, ends=False),
        "endless-queue": partial(queue, ends=False), "lottery": lottery,
    },
    first=100,
)  # fmt: skip
