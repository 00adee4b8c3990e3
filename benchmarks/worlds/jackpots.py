"""Worlds of `development` whose rewards have many sizes, and come the more seldom the larger."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
from benchmarks.worlds.beyond import _ended
from benchmarks.worlds.world import Dynamics, Floats, World


def _line(n: int) -> Floats:
    return np.arange(n, dtype=float)[:, None]


@cache
def fishing(zones: int = 7, catch: float = 0.03) -> Dynamics:
    """Out to sea, cast, or drift back: a cast may end the day with a fish of 2.2^zone."""
    S = zones + 2  # caught, over
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(zones):
        P[s, 0, s], P[s, 0, -1] = 0.24, 0.06
        P[s, 0, min(s + 1, zones - 1)] += 0.7
        P[s, 1, s], P[s, 1, -2], P[s, 1, -1] = 0.97 - catch, catch, 0.03
        P[s, 2, max(s - 1, 0)], P[s, 2, -1] = 0.8, 0.2
        r[s, 0], r[s, 1], r[s, 2] = -0.05, -0.1, 0.1
        r[s, 1, -2] = 2.2**s
    return _ended(P, r, [0, 1], _line(zones), 2)


@cache
def tombola(tables: int = 5) -> Dynamics:
    """Up to five tables: pass, one ticket or three; prizes of 1, 5, 25 and 125, each rarer."""
    S = tables + 5  # four prizes, over
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    wins = np.array([0.05, 0.012, 0.0025, 0.0005])
    for s, (a, tickets) in product(range(tables), enumerate((0.0, 1.0, 3.0))):
        P[s, a, tables : tables + 4] = tickets * wins
        P[s, a, s + 1 if s + 1 < tables else S - 1] += 1.0 - tickets * wins.sum()
        r[s, a] = -0.15 * tickets
        r[s, a, tables : tables + 4] = np.array([1.0, 5.0, 25.0, 125.0])
    return _ended(P, r, [0, 1, 2], _line(tables), 5)


@cache
def storms(coasts: int = 8) -> Dynamics:
    """A ship passes coasts: near, far or in port. Near may be wrecked: 1.9^coast is lost."""
    S = coasts + 2  # wrecked, home
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(coasts), range(3)):
        wreck = (0.025, 0.005, 0.0)[a]
        on = (0.9, 0.6, 0.1)[a] * (1.0 - wreck)
        P[s, a, -2] = wreck
        P[s, a, s + 1 if s + 1 < coasts else S - 1] += on
        P[s, a, s] += 0.98 * (1.0 - wreck) - on
        P[s, a, -1] += 0.02 * (1.0 - wreck)
        r[s, a] = (0.8, 0.4, -0.1)[a]
        r[s, a, -2] = -(1.9**s)
    return _ended(P, r, [0, 3], _line(coasts), 2)


@cache
def forks(levels: int = 5) -> Dynamics:
    """Left, right or stop on a tree of ways; each end may hold a prize, drawn with a long tail."""
    rng = np.random.default_rng([211, 5])
    nodes = 2**levels - 1
    prize = np.round(rng.pareto(0.9, size=nodes) + 1.0, 1)
    S = nodes + 2  # won, over
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(nodes):
        for a in range(2):
            to = 2 * s + 1 + a
            P[s, a, to if to < nodes else S - 1] += 0.95
            P[s, a, -1] += 0.05
            r[s, a] = 0.05
        P[s, 2, -2], P[s, 2, -1] = 0.04, 0.96
        r[s, 2, -2] = prize[s] * 4.0
    return _ended(P, r, [0], _line(nodes), 2)


@cache
def parcels(kinds: int = 6) -> Dynamics:
    """Parcels of six kinds, ten a day: plain, wrapped or insured; a loss costs 1 to 100."""
    S = 2 * kinds + 2  # each kind early and late; lost, over
    cost = np.array([1.0, 2.0, 5.0, 15.0, 40.0, 100.0])
    often = np.array([0.3, 0.25, 0.2, 0.15, 0.07, 0.03])
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for kind, late, a in product(range(kinds), range(2), range(3)):
        s, lost = 2 * kind + late, (0.02, 0.01, 0.003)[a] * (1.0 + late)
        P[s, a, -2], P[s, a, -1] = lost, 0.08
        for to in range(kinds):
            P[s, a, 2 * to + (late if to % 2 else 1)] += (0.92 - lost) * often[to]
        r[s, a] = (0.6, 0.45, 0.2)[a]
        r[s, a, -2] = -cost[kind]
    obs = np.array(list(product(range(kinds), range(2))), dtype=float)
    return _ended(P, r, [0, 2, 4], obs, 2)


def jackpots(d: Dynamics, both: tuple[list[float], list[float]], features: str, n: int) -> World:
    mu, pi = (np.tile(p, (len(d.P), 1)) for p in both)
    return World(d, mu, pi, 0.98, features, n, length=200)


FISHING = [0.4, 0.2, 0.4], [0.45, 0.4, 0.15]
TOMBOLA = [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]
STORMS = [0.15, 0.6, 0.25], [0.4, 0.4, 0.2]
FORKS = [0.4, 0.45, 0.15], [0.35, 0.35, 0.3]
PARCELS = [0.2, 0.5, 0.3], [0.5, 0.3, 0.2]

WORLDS: dict[str, Callable[[], World]] = {
    "fishing onehot": lambda: jackpots(fishing(), FISHING, "onehot", 400),
    "fishing raw": lambda: jackpots(fishing(), FISHING, "raw", 1500),
    "fishing few": lambda: jackpots(fishing(), FISHING, "onehot", 150),
    "tombola onehot": lambda: jackpots(tombola(), TOMBOLA, "onehot", 500),
    "tombola raw": lambda: jackpots(tombola(), TOMBOLA, "raw", 2000),
    "storms onehot": lambda: jackpots(storms(), STORMS, "onehot", 300),
    "storms raw": lambda: jackpots(storms(), STORMS, "raw", 1000),
    "forks onehot": lambda: jackpots(forks(), FORKS, "onehot", 500),
    "forks raw": lambda: jackpots(forks(), FORKS, "raw", 1500),
    "parcels onehot": lambda: jackpots(parcels(), PARCELS, "onehot", 300),
    "parcels raw": lambda: jackpots(parcels(), PARCELS, "raw", 1000),
}
