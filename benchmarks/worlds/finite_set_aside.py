"""Finite worlds that are set aside: their dynamics are others, and no number was chosen on them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from benchmarks.worlds.world import (
    Dynamics,
    Moves,
    World,
    closing,
    even,
    softer,
    swapped,
    table,
    worlds,
)
from scipy.stats import binom

AROUND = ((-1, 0), (0, 1), (1, 0), (0, -1))


def _between(x: int, low: int, high: int) -> int:
    return min(max(x, low), high)


@table([i / 20 for i in range(20)], actions=4, first=[i / 20 for i in range(20)], noise=0.3)
def contextual(s: float, a: int) -> Moves:
    """One step: contexts on a line; each arm is best somewhere."""
    x = s * 20 / 19
    return [(1.0, None, np.exp(-8.0 * (x - a / 3) ** 2) - 0.3 * x)]


HEALS = np.random.default_rng([139, 5]).uniform(0.02, 0.25, size=(6, 5))


@table(range(6), actions=5, first=range(6))
def trials(s: int, a: int) -> Moves:
    """One step: a patient of a group gets a drug; it seldom heals (1) or harms (-6)."""
    heals, harms = HEALS[s, a], (0.001, 0.002, 0.005, 0.02, 0.04)[a]
    return [(heals, None, 1.0), (harms, None, -6.0), (1.0 - heals - harms, None, 0.0)]


@table(range(4), actions=3, first=range(4))
def scratch(s: int, a: int) -> Moves:
    """One step: no card, a small or a large one; prizes of 2, 10, 50 (and 500 of large cards)."""
    cards = np.array([[0.0] * 4, [0.1, 0.02, 0.002, 0.0], [0.1, 0.05, 0.01, 0.0015]])
    wins, cost = cards[a] * (1.0 + 0.1 * s), (0.0, 0.5, 1.5)[a]
    yield from zip(wins, [None] * 4, np.array([2.0, 10.0, 50.0, 500.0]) - cost, strict=True)
    yield 1.0 - wins.sum(), None, -cost


@table(range(6), actions=2, first=(0, 1))
def river(s: int, a: int) -> Moves:
    """RiverSwim: against the current (1) to a large reward, with it to a small one."""
    down, pays = max(s - 1, 0), {(0, 0): 0.05, (5, 1): 1.0}.get((s, a), 0.0)
    moves = ((0.05, down), (0.6, s), (0.35, min(s + 1, 5))) if a else ((1.0, down),)
    return [*((0.98 * p, to, pays) for p, to in moves), (0.02, None, pays)]


LIKING_RNG = np.random.default_rng(53)
LIKING = LIKING_RNG.beta(1.0, 3.0, size=(6, 5))
DRIFT = LIKING_RNG.dirichlet(np.full(6, 0.4), size=(6, 5))


@table(list(product(range(6), range(2))), actions=5, first=[(mood, 0) for mood in range(6)])
def session(s: tuple[int, int], a: int) -> Moves:
    """A visitor of some mood is shown an item: pays 1 by chance, changes mood, or leaves."""
    likes = LIKING[s[0], a]
    stays = 0.6 + 0.35 * likes
    for mood, p in enumerate(stays * DRIFT[s[0], a]):
        yield p * (1 - likes), (mood, 0), 0.0
        yield p * likes, (mood, 1), 1.0
    yield 1.0 - stays, None, 0.0


@table(list(product(range(2), range(16))), actions=3, first=[(0, 0), (0, 1), (0, 2)])
def bursts(s: tuple[int, int], a: int) -> Moves:
    """Calm or burst: arrivals 0.15 or 0.8; two servers (0), three (1) or five (2) at work."""
    burst, n = s
    change, come = (0.15, 0.8) if burst else (0.02, 0.15)
    go = (0.3, 0.5, 0.75)[a] if n else 0.0
    up, down = come * (1 - go), go * (1 - come)
    for step, p in ((1, up), (-1, down), (0, 1.0 - up - down)):
        for now, q in ((burst, 1 - change), (1 - burst, change)):
            yield p * q, (now, _between(n + step, 0, 15)), -0.02 * n**1.5 - (0.0, 0.3, 0.8)[a]


@table(list(product(range(6), range(2))), actions=3, first=[(wind, 0) for wind in range(6)])
def sailing(s: tuple[int, int], a: int) -> Moves:
    """Endless: wind 0 to 5; sails small, half or full. In strong wind full sails may tear (-30)."""
    wind, torn = s
    tears = (0.0, 0.0004, 0.004)[a] * (wind >= 3)
    for step, p in ((-1, 0.3), (0, 0.4), (1, 0.3)):
        to = _between(wind + step, 0, 5)
        if torn:
            yield 0.8 * p, (to, 1), 0.0
            yield 0.2 * p, (to, 0), 0.0
        else:
            yield p * (1.0 - tears), (to, 0), (0.4, 0.8, 1.1)[a] * (1.0 + 0.1 * wind)
            yield p * tears, (to, 1), -30.0


DOORS = ((6, 6), (0, 3), (4, 0), (1, 6), (6, 1), (0, 0))  # their numbers are in no order


@table(list(product(range(7), range(7), range(6))), 5, [(3, 3, door) for door in range(6)])
def courier(s: tuple[int, int, int], a: int) -> Moves:
    """A parcel for one of six doors of a grid; knock at the right one (20) or a wrong one (-4)."""
    i, j, door = s
    if a == 4:
        return [(1.0, None, 20.0) if DOORS[door] == (i, j) else (1.0, s, -4.0)]
    di, dj = AROUND[a]
    return [(0.85, (_between(i + di, 0, 6), _between(j + dj, 0, 6), door), -0.5), (0.15, s, -0.5)]


@table(range(8), actions=3, first=[0])
def treasure(s: int, a: int) -> Moves:
    """Deeper (0), dig (1) or home (2): digging costs 0.2 and finds 2^place once in forty tries."""
    if a == 0:
        return [(0.95, min(s + 1, 7), 0.1), (0.05, None, 0.1)]
    return [(0.025, None, 2.0**s), (0.975, s, -0.2)] if a == 1 else [(1.0, None, 0.5)]


@table(range(5), actions=3, first=(0, 1))
def grants(s: int, a: int) -> Moves:
    """Each year: teach, ask for a small grant (3, one in four), or a large one (60, one in 45)."""
    wins = (0.0, 0.25, 1.0 / 45.0)[a]
    yield 1.0 - wins, s + 1 if s < 4 else None, (0.5, 0.1, -0.1)[a]
    yield wins, None, (0.0, 3.0, 60.0)[a]


@table(range(6), actions=3, first=(0, 1, 2))
def loot(s: int, a: int) -> Moves:
    """Rooms of a game: fight, sneak or flee. A won fight drops 1, 6, 36 or 216, each rarer."""
    if a == 0:
        luck = np.array([0.2, 0.04, 0.006, 0.0008]) * (0.5 + s / 6)
        yield from zip(luck, [None] * 4, (1.0, 6.0, 36.0, 216.0), strict=True)
        yield 0.05, None, -2.0
        yield 1.0 - luck.sum() - 0.05, s, -0.1
    elif a == 1:
        yield 0.97, (s + 1) % 6, 0.0
        yield 0.03, None, -2.0
    else:
        yield 1.0, None, 0.3


@table(range(6), actions=3, first=(0, 1))
def clients(s: int, a: int) -> Moves:
    """A lawyer's clients by rank: bill, woo or wait. High ranks pay 1.9^rank and leave seldom."""
    leaves, rises = (0.3, 0.18, 0.24)[a] * 0.6**s + 0.004, (0.03, 0.12, 0.06)[a]
    pays = (0.2, 0.08, 0.12)[a] * 1.9**s
    yield leaves, None, pays
    yield (1.0 - leaves) * rises, min(s + 1, 5), pays
    yield (1.0 - leaves) * (1.0 - rises), s, pays


@table(range(80), actions=3, first=(8, 9, 10), scale=0.1)
def balloon(s: int, a: int) -> Moves:
    """Heights 0 to 79: burn, drift or vent. Fine views up to 25, above it is colder and colder."""
    moves = (((1, 0.6), (0, 0.4)), ((1, 0.25), (0, 0.5), (-1, 0.25)), ((-1, 0.7), (0, 0.3)))[a]
    pays = 0.1 * min(s, 25) - 0.02 * max(s - 25, 0) ** 2
    return [(p, _between(s + move, 0, 79), pays) for move, p in moves]


ILL = [(ill, immune) for ill in range(1, 13) for immune in range(13 - ill)]


@table(ILL, actions=3, first=[(1, 0), (2, 0), (2, 2)])
def outbreak(s: tuple[int, int], a: int) -> Moves:
    """Ill and immune of twelve: nothing, masks or shut doors; it is over when nobody is ill."""
    ill, immune = s
    well, rate = 12 - ill - immune, 1.0 - (1.0 - (0.11, 0.06, 0.02)[a]) ** ill
    for new, heals in product(range(well + 1), range(ill + 1)):
        p = float(binom.pmf(new, well, rate) * binom.pmf(heals, ill, 0.35))
        now = ill + new - heals
        yield p, (now, immune + heals) if now else None, -0.2 * ill - (0.0, 0.3, 1.0)[a]


PLAN = ("....#..", ".##...#", "..#.#..", "#...#.#", "..#....", ".##.##.", "...#...")
FREE = [(i, j) for i in range(7) for j in range(7) if PLAN[i][j] == "."]


@table(FREE, actions=4, first=[(0, 0), (0, 3)])
def maze(s: tuple[int, int], a: int) -> Moves:
    """Seven by seven with walls and an exit in the far corner; the floor slips once in ten."""
    for turn, p in ((-1, 0.05), (0, 0.9), (1, 0.05)):
        di, dj = AROUND[(a + turn) % 4]
        to = s[0] + di, s[1] + dj
        yield (p, None, 5.0) if to == (6, 6) else (p, to if to in FREE else s, -0.1)


@table(list(product(range(5), range(3))), actions=3, first=[(4, ill) for ill in range(3)])
def triage(s: tuple[int, int], a: int) -> Moves:
    """Free beds and how ill the next one is: send home, watch, or admit; 1 for life, -3 for death.

    Observed: the beds, then how ill.
    """
    free, ill = s
    taken = a == 2 and free > 0
    lost = (0.02, 0.1, 0.35)[ill] * (1.0, 0.6, 0.2 if taken else 0.6)[a]
    pays = (1.0 - lost) - 3.0 * lost - (0.0, 0.2, 0.3)[a]
    for (back, p), (grade, q) in product(((0, 0.6), (1, 0.4)), enumerate((0.5, 0.3, 0.2))):
        yield 0.93 * p * q, (min(free - taken + back, 4), grade), pays
    yield 0.07, None, pays


def short_bursts() -> Dynamics:
    """The line of a shop that closes."""
    return closing(bursts(), 0.03)


CONTEXT, SESSION = softer(0.5, 2.0, 0.1, 0.0), softer(0.5, 1.0, 0.3, 0.05)
TRIALS = even([0.4, 0.3, 0.2, 0.06, 0.04], [0.28, 0.22, 0.2, 0.116, 0.184])
SCRATCH = even([0.4, 0.4, 0.2], [0.2, 0.4, 0.4])
RIVER = even([0.5, 0.5], [0.365, 0.635])

FINITE: dict[str, Callable[[], World]] = {
    **worlds("contextual", contextual, 0.9, CONTEXT, "onehot 500", "raw 200"),
    **worlds("contextual scaled", contextual, 0.9, softer(0.5, 1.0, 0.1, 0.0), ": onehot 500",
             stated=lambda mu: mu / np.linspace(1.4, 0.6, 4)),  # the mean ratio stays near 1
    **worlds("contextual estimated", contextual, 0.9, CONTEXT, ": onehot 500", estimated=True),
    **worlds("trials", trials, 0.9, TRIALS, "raw 400", "onehot 1500", length=200),
    **worlds("scratch", scratch, 0.9, SCRATCH, "raw 1200", "many: onehot 4000", length=300),
    **worlds("river", river, 0.97, RIVER, "onehot 300", length=120),
    **worlds("river", river, 0.97, even([0.5, 0.5], [0.05, 0.95]), "raw far: raw 500", length=120),
    **worlds("session", session, 0.95, SESSION, "onehot 300"),
    **worlds("session", session, 0.95, softer(0.5, 2.0, 0.3, 0.05), "raw 2000"),
    **worlds("session hidden", session, 0.95, SESSION, ": onehot 1000", seen=1),
    **worlds("session estimated", session, 0.95, SESSION, ": onehot 300", estimated=True),
    **worlds("bursts", short_bursts, 0.99, softer(0.4, 1.0, 0.3), "onehot 300", "raw 300"),
    **worlds("bursts endless", bursts, 0.95, softer(0.4, 1.0, 0.3, 0.2), "onehot 10000",
             "raw 20000", endless=True),
    **worlds("sailing endless", sailing, 0.95, even([0.4, 0.45, 0.15], [0.2, 0.5, 0.3]),
             ": onehot 4000", endless=True, length=300),
    **worlds("courier", courier, 0.96, softer(3.0, 4.0, 0.3), "onehot 300", "raw 500", length=120),
    **worlds("courier", courier, 0.96, softer(3.0, 6.0, 0.3), "poly:2 1000", length=120),
    **worlds("treasure", treasure, 0.98, even([0.6, 0.15, 0.25], [0.6, 0.3, 0.1]), "onehot 400",
             "raw 1500", length=200),
    **worlds("grants", grants, 0.95, even([0.5, 0.42, 0.08], [0.3, 0.35, 0.35]), "onehot 150",
             length=300),
    **worlds("grants", grants, 0.95, even([0.45, 0.4, 0.15], [0.3, 0.4, 0.3]), "raw 500",
             length=300),
    **worlds("loot", loot, 0.98, even([0.2, 0.6, 0.2], [0.4, 0.5, 0.1]), "onehot 500", "raw 1500",
             length=300),
    **worlds("clients", clients, 0.99, even([0.4, 0.3, 0.3], [0.25, 0.5, 0.25]), "few: raw 50",
             length=300),
    **worlds("clients", clients, 0.99, even([0.4, 0.3, 0.3], [0.3, 0.4, 0.3]), "onehot 300",
             length=300),
    **worlds("balloon", balloon, 0.96, even([0.25, 0.4, 0.35], [0.55, 0.35, 0.1]), "raw 400",
             length=40),
    **worlds("balloon", balloon, 0.96, even([0.35, 0.4, 0.25], [0.45, 0.35, 0.2]), "poly:2 400",
             length=60),
    **worlds("outbreak", outbreak, 1.0, softer(0.5, 1.3, 0.3), "raw 200", "poly:2 400", length=300),
    **worlds("maze", maze, 0.97, softer(1.5, 2.5, 0.3), "onehot 200", "raw 300", length=300),
    **worlds("maze wrong", maze, 0.97, softer(1.5, 2.5, 0.3), ": onehot 200", stated=swapped,
             length=300),
    **worlds("triage", triage, 0.97, softer(1.0, 2.5, 0.3), "onehot 200", "raw 400", length=300),
    **worlds("triage estimated", triage, 0.97, softer(1.0, 2.5, 0.3), ": onehot 500",
             estimated=True, length=300),
    **worlds("triage confounded", triage, 0.97, softer(1.0, 2.5, 0.3), ": onehot 500",
             estimated=True, seen=1, length=300),
}  # fmt: skip
