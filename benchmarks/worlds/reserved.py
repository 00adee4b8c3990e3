"""Worlds set aside before rewards that were seen once, and estimated probabilities, were looked at.

Rewards of several sizes that come the more seldom the larger they are; episodes of which few last;
ordinary worlds whose rewards have few values, so that the price of caution is seen; and behaviours
that have to be estimated, with and without something that they knew and the log does not show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
from benchmarks.worlds.last import even, hidden, made, softer
from benchmarks.worlds.unseen import _with_ends
from benchmarks.worlds.world import Dynamics, Floats, World


def _line(n: int) -> Floats:
    return np.arange(n, dtype=float)[:, None]


@cache
def reef(depths: int = 6, breath: int = 7) -> Dynamics:
    """A diver at a depth with some breath: down, search or up. Deep shells hold larger pearls.

    A search finds one of 3^depth with 0.06 (0.02 from depth 3 on); to run out of breath costs 4.
    """
    states = list(product(range(depths), range(1, breath + 1)))
    at = {x: s for s, x in enumerate(states)}
    S = len(states) + 2  # found, over
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (depth, air), a in product(states, range(3)):
        s = at[depth, air]
        finds = (0.06 if depth < 3 else 0.02) if a == 1 else 0.0
        P[s, a, -2], r[s, a, -2] = finds, 3.0**depth
        for used, p in ((1, 0.8), (2, 0.2)):
            to = min(max(depth + (1, 0, -1)[a], 0), depths - 1)
            after = S - 1 if (a == 2 and depth == 0) or air <= used else at[to, air - used]
            P[s, a, after] += p * (1.0 - finds)
        if not (a == 2 and depth == 0):
            r[s, a, -1] = -4.0
        r[s, a, : S - 2] = -0.1
    return _with_ends(P, r, [at[0, breath], at[1, breath]], np.array(states, dtype=float), 2)


@cache
def loot(rooms: int = 6) -> Dynamics:
    """Rooms of a game: fight, sneak or flee. A won fight drops 1, 6, 36 or 216, each rarer."""
    S = rooms + 6  # four drops, dead, away
    drops = np.array([1.0, 6.0, 36.0, 216.0])
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(rooms):
        luck = np.array([0.2, 0.04, 0.006, 0.0008]) * (0.5 + s / rooms)
        P[s, 0, rooms : rooms + 4], P[s, 0, -2] = luck, 0.05
        P[s, 0, s] = 1.0 - luck.sum() - 0.05
        P[s, 1, (s + 1) % rooms], P[s, 1, -2] = 0.97, 0.03
        P[s, 2, -1] = 1.0
        r[s, 0], r[s, 1], r[s, 2] = -0.1, 0.0, 0.3
        r[s, 0, rooms : rooms + 4] = drops
        r[s, :, -2] = -2.0
    return _with_ends(P, r, [0, 1, 2], _line(rooms), 6)


@cache
def bridges(count: int = 9) -> Dynamics:
    """A lorry and nine bridges: light, full or too much. Bridge b breaks seldom, and costs 2^b."""
    S = count + 2  # fallen, arrived
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, (a, (breaks, pays)) in product(
        range(count), enumerate(((0.0, 0.3), (0.004, 0.6), (0.03, 1.0)))
    ):
        P[s, a, -2] = breaks
        P[s, a, s + 1 if s + 1 < count else S - 1] += 0.97 * (1.0 - breaks)
        P[s, a, -1] += 0.03 * (1.0 - breaks)
        r[s, a], r[s, a, -2] = pays, -(2.0**s)
    return _with_ends(P, r, [0, 2, 4], _line(count), 2)


@cache
def scratch(shops: int = 4) -> Dynamics:
    """One step: no card, a small or a large one; prizes of 2, 10, 50 (and 500 of large cards)."""
    prizes = np.array([2.0, 10.0, 50.0, 500.0])
    S = shops + 5
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(shops):
        small, large = np.array([0.1, 0.02, 0.002, 0.0]), np.array([0.1, 0.05, 0.01, 0.0015])
        for a, (wins, costs) in enumerate(((0.0 * small, 0.0), (small, 0.5), (large, 1.5))):
            P[s, a, shops : shops + 4] = wins * (1.0 + 0.1 * s)
            P[s, a, -1] = 1.0 - P[s, a].sum()
            r[s, a] = -costs
            r[s, a, shops : shops + 4] = prizes - costs
    return _with_ends(P, r, list(range(shops)), _line(shops), 5)


@cache
def breaches(servers: int = 8) -> Dynamics:
    """A watchman's round of eight servers: pass, look or mend. A breach is rare, one costs 80."""
    S = servers + 2  # breach, end of the shift
    cost = np.array([3.0, 3.0, 3.0, 80.0, 3.0, 3.0, 12.0, 3.0])
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(servers), range(3)):
        breach = (0.02, 0.006, 0.001)[a]
        P[s, a, -2], P[s, a, -1] = breach, 0.05
        P[s, a, (s + 1) % servers] = 0.95 - breach
        r[s, a], r[s, a, -2] = (0.5, 0.3, 0.0)[a], -cost[s]
    return _with_ends(P, r, list(range(servers)), _line(servers), 2)


@cache
def patrons(ranks: int = 6) -> Dynamics:
    """Patrons of a theatre: a letter, a seat or a dinner each month; the few great ones stay."""
    S = ranks + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(ranks), range(3)):
        leaves = (0.3, 0.24, 0.2)[a] / (1.0 + s) ** 2.2
        rises = (0.05, 0.09, 0.13)[a]
        P[s, a, -1] = leaves
        P[s, a, min(s + 1, ranks - 1)] += (1.0 - leaves) * rises
        P[s, a, max(s - 1, 0)] += (1.0 - leaves) * 0.05
        P[s, a, s] += (1.0 - leaves) * (0.95 - rises)
        r[s, a] = 0.4 * 1.5**s - (0.0, 0.15, 0.5)[a]
    return _with_ends(P, r, [0], _line(ranks))._replace(noise=0.15)


@cache
def postman(side: int = 4) -> Dynamics:
    """A street grid with three doors (1 each, 4 for all) and a dog that bites (-1); home ends."""
    doors = ((0, 3), (2, 1), (3, 3))
    states = list(product(range(side), range(side), range(8)))
    at = {x: s for s, x in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, 4, S)), np.full((S, 4, S), -0.05)
    for (i, j, done), (a, (di, dj)) in product(
        states, enumerate(((-1, 0), (0, 1), (1, 0), (0, -1)))
    ):
        s = at[i, j, done]
        to = min(max(i + di, 0), side - 1), min(max(j + dj, 0), side - 1)
        new = done | (1 << doors.index(to)) if to in doors else done
        after = S - 1 if new == 7 else at[*to, new]
        P[s, a, after] += 0.85
        P[s, a, s] += 0.12
        P[s, a, -1] += 0.03
        r[s, a, after] = (
            4.0 if new == 7 else 1.0 if new != done else -1.0 if to == (1, 2) else -0.05
        )
    return _with_ends(P, r, [at[0, 0, 0], at[3, 0, 0]], np.array(states, dtype=float))


@cache
def triage(beds: int = 5, grades: int = 3) -> Dynamics:
    """Free beds and how ill the next one is: send home, watch, or admit; 1 for life, -3 for death.

    Observed: the beds, then how ill.
    """
    states = list(product(range(beds), range(grades)))
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (free, ill), a in product(states, range(3)):
        s = free * grades + ill
        taken = a == 2 and free > 0
        lost = (0.02, 0.1, 0.35)[ill] * (1.0, 0.6, 0.2 if taken else 0.6)[a]
        r[s, a] = (1.0 - lost) - 3.0 * lost - (0.0, 0.2, 0.3)[a]
        for back, p in ((0, 0.6), (1, 0.4)):
            left = min(free - taken + back, beds - 1)
            for grade, q in enumerate((0.5, 0.3, 0.2)):
                P[s, a, left * grades + grade] += 0.93 * p * q
        P[s, a, -1] = 0.07
    first = [(beds - 1) * grades + ill for ill in range(grades)]
    return _with_ends(P, r, first, np.array(states, dtype=float))


@cache
def bargain(rounds: int = 8, kinds: int = 3) -> Dynamics:
    """A buyer in a hurry, or not: hold, yield a little or much, round by round; a deal pays.

    Observed: the round and how far one has yielded, then the buyer's kind.
    """
    states = list(product(range(rounds), range(5), range(kinds)))
    at = {x: s for s, x in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (n, down, kind), a in product(states, range(3)):
        s, to = at[n, down, kind], min(down + a, 4)
        deal = (0.35, 0.15, 0.06)[kind] * (1.0 + 0.5 * to)
        walks = (0.02, 0.05, 0.1)[kind]
        r[s, a, -1] = (10.0 - 2.0 * to) * deal / (deal + walks)
        if n + 1 < rounds:
            P[s, a, at[n + 1, to, kind]] = max(1.0 - deal - walks, 0.0)
        else:
            r[s, a, -1] *= deal + walks
        P[s, a, -1] = 1.0 - P[s, a].sum()
    first = [at[0, 0, kind] for kind in range(kinds)]
    return _with_ends(P, r, first, np.array(states, dtype=float))._replace(noise=0.2)


@cache
def sweeper(cells: int = 7, charges: int = 6) -> Dynamics:
    """A robot in a corridor with a charge: left, right, sweep or charge at the end; 1 for dust."""
    states = list(product(range(cells), range(1, charges + 1)))
    at = {x: s for s, x in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, 4, S)), np.zeros((S, 4, S))
    for (cell, charge), a in product(states, range(4)):
        s, to = at[cell, charge], min(max(cell + (-1, 1, 0, 0)[a], 0), cells - 1)
        if a == 3 and cell == 0:
            P[s, a, at[0, charges]] = 0.97
        else:
            P[s, a, at[to, charge]] += 0.55
            P[s, a, at[to, charge - 1] if charge > 1 else S - 1] += 0.42
        P[s, a, -1] += 0.03
        r[s, a] = 0.15 * cell if a == 2 else 0.0
        if charge == 1 and not (a == 3 and cell == 0):
            r[s, a, -1] = -2.0
    return _with_ends(P, r, [at[2, charges], at[4, charges]], np.array(states, dtype=float))


def _reef() -> World:
    return even(reef(), [0.4, 0.2, 0.4], [0.4, 0.4, 0.2], 0.97)


def _loot() -> World:
    return even(loot(), [0.2, 0.6, 0.2], [0.4, 0.5, 0.1], 0.98)


def _bridges() -> World:
    return even(bridges(), [0.5, 0.4, 0.1], [0.3, 0.4, 0.3], 0.99)


def _scratch() -> World:
    return even(scratch(), [0.4, 0.4, 0.2], [0.2, 0.4, 0.4], 0.9)


def _breaches() -> World:
    return even(breaches(), [0.2, 0.5, 0.3], [0.4, 0.4, 0.2], 0.99)


def _patrons() -> World:
    return replace(even(patrons(), [0.4, 0.3, 0.3], [0.25, 0.4, 0.35], 0.99), length=10_000)


def _postman() -> World:
    return softer(postman(), 0.97, (1.0, 2.0), 0.3)


def _triage() -> World:
    return softer(triage(), 0.97, (1.0, 2.5), 0.3)


def _bargain() -> World:
    return softer(bargain(), 1.0, (0.5, 1.2), 0.3)


def _sweeper() -> World:
    return softer(sweeper(), 0.97, (0.5, 1.2), 0.3)


def _estimated(world: World) -> World:
    return replace(world, estimated=True)


def _confounded(world: World, shown: int) -> World:
    """What the behaviour knows is hidden from the log, and from the target."""
    found = hidden(world, shown)
    same = (found.dynamics.obs[:, None] == found.dynamics.obs).all(axis=2)
    return _estimated(replace(found, pi=same @ world.pi / same.sum(axis=1, keepdims=True)))


RESERVED: dict[str, Callable[[], World]] = {
    "reef onehot": lambda: made(_reef(), "onehot", 400),
    "reef raw": lambda: made(_reef(), "raw", 1500),
    "loot onehot": lambda: made(_loot(), "onehot", 500),
    "loot raw": lambda: made(_loot(), "raw", 1500),
    "bridges onehot": lambda: made(_bridges(), "onehot", 300),
    "bridges raw": lambda: made(_bridges(), "raw", 1000),
    "scratch raw": lambda: made(_scratch(), "raw", 1200),
    "scratch many": lambda: made(_scratch(), "onehot", 4000),
    "breaches onehot": lambda: made(_breaches(), "onehot", 200),
    "breaches raw": lambda: made(_breaches(), "raw", 600),
    "patrons few": lambda: made(_patrons(), "raw", 60),
    "patrons onehot": lambda: made(_patrons(), "onehot", 300),
    "postman onehot": lambda: made(_postman(), "onehot", 300),
    "postman raw": lambda: made(_postman(), "raw", 500),
    "triage onehot": lambda: made(_triage(), "onehot", 200),
    "triage raw": lambda: made(_triage(), "raw", 400),
    "bargain onehot": lambda: made(_bargain(), "onehot", 600),
    "bargain hidden": lambda: hidden(made(_bargain(), "onehot", 400), 2),
    "sweeper onehot": lambda: made(_sweeper(), "onehot", 200),
    "sweeper poly:2": lambda: made(_sweeper(), "poly:2", 300),
    "postman estimated": lambda: _estimated(made(_postman(), "onehot", 500)),
    "triage estimated": lambda: _estimated(made(_triage(), "onehot", 500)),
    "triage estimated raw": lambda: _estimated(made(_triage(), "raw", 500)),
    "bargain estimated": lambda: _estimated(made(_bargain(), "onehot", 1000)),
    "sweeper estimated": lambda: _estimated(made(_sweeper(), "onehot", 500)),
    "sweeper estimated poly:2": lambda: _estimated(made(_sweeper(), "poly:2", 500)),
    "triage confounded": lambda: _confounded(made(_triage(), "onehot", 500), 1),
    "bargain confounded": lambda: _confounded(made(_bargain(), "onehot", 1000), 2),
}  # fmt: skip
