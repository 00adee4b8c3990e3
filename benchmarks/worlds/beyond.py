"""Worlds of `development` whose targets go where logs hardly were, or that rest on little.

The target runs to where features miss what is there; or an action that is seldom tried decides at
one place of many; or most of the return comes from the few episodes that last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from benchmarks.worlds.world import Dynamics, Floats, World


def _ended(P: Floats, r: Floats, first: list[int], obs: Floats, ends: int = 1) -> Dynamics:
    """The last states end an episode; it starts in one of `first`."""
    S = len(P)
    P[np.arange(S - ends, S), :, np.arange(S - ends, S)] = 1.0
    start = np.zeros(S)
    start[first] = 1.0 / len(first)
    shown = np.vstack([obs, np.full((ends, obs.shape[1]), -1.0)])
    return Dynamics(P, r, np.arange(S) >= S - ends, start, shown)


@cache
def oven(points: int = 90, end: float = 0.0, steep: float = 0.0) -> Dynamics:
    """Heat up, hold or cool: bread bakes best at 30, above it burns, more and more."""
    S = points + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    moves = (
        ((2, 0.5), (1, 0.3), (0, 0.2)),
        ((1, 0.2), (-1, 0.3), (0, 0.5)),
        ((-2, 0.5), (-1, 0.5)),
    )
    for s, a in product(range(points), range(3)):
        for move, p in moves[a]:
            P[s, a, int(np.clip(s + move, 0, points - 1))] += (1.0 - end) * p
        P[s, a, -1] = end
        r[s, a] = 0.15 * min(s, 30) - 0.12 * max(s - 30, 0) - steep * max(s - 20, 0) ** 2
    return _ended(P, r, [6, 7, 8, 9, 10], np.arange(points, dtype=float)[:, None] / 5.0)


@cache
def training(loads: int = 40, steep: float = 0.004) -> Dynamics:
    """A load and how tired (0 to 3) one is: more, same or less. Beyond 16 it tears, when tired."""
    states = list(product(range(loads), range(4)))
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (load, tired), a in product(states, range(3)):
        s, to = 4 * load + tired, int(np.clip(load + (1, 0, -1)[a], 0, loads - 1))
        tires = (0.45, 0.25, 0.1)[a]
        P[s, a, 4 * to + min(tired + 1, 3)] += 0.98 * tires
        P[s, a, 4 * to + max(tired - 1, 0)] += 0.98 * (1.0 - tires)
        P[s, a, -1] = 0.02
        r[s, a] = 0.1 * load - steep * max(load - 10, 0) ** 2 * tired
    return _ended(P, r, [16, 20, 24], np.array(states, dtype=float))


@cache
def gardens(weeds: int = 50) -> Dynamics:
    """Weeds that grow by a tenth: weed, water or rest. Flowers pay until weeds are too many."""
    S = weeds + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(weeds), range(3)):
        up = 1 + s // 10
        for move, p in (((-3, 0.7), (up, 0.3)), ((up, 0.6), (0, 0.4)), ((up, 0.3), (0, 0.7)))[a]:
            P[s, a, int(np.clip(s + move, 0, weeds - 1))] += 0.99 * p
        P[s, a, -1] = 0.01
        r[s, a] = (0.2, 1.0, 0.6)[a] * (1.0 if s < 20 else np.exp(-(s - 20) / 8.0))
    return _ended(P, r, [2, 3, 4], np.arange(weeds, dtype=float)[:, None])


@cache
def chests(rooms: int = 10) -> Dynamics:
    """A ring of rooms: go on, look, or open. One chest (in room 6) holds 30, once in thirty."""
    S = rooms + 2  # found, over
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(rooms), range(3)):
        found = 1.0 / 30.0 if a == 2 and s == 6 else 0.0
        P[s, a, -2], P[s, a, -1] = found, 0.06
        P[s, a, (s + 1) % rooms if a == 0 else s] += 0.94 - found
        r[s, a] = (0.0, 0.05, -0.1)[a]
    r[:, :, -2] = 30.0
    return _ended(P, r, list(range(rooms)), np.arange(rooms, dtype=float)[:, None], 2)


@cache
def quiz(questions: int = 15) -> Dynamics:
    """Answer, skip or bet, question by question; bets pay 1, and 50 once in 25 at the eleventh."""
    S = questions + 2  # the great prize, over
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(questions), range(3)):
        great = 0.04 if a == 2 and s == 10 else 0.0
        out = (0.08, 0.02, 0.12)[a]
        P[s, a, -2] = great
        P[s, a, -1] += out
        P[s, a, s + 1 if s + 1 < questions else S - 1] += 1.0 - out - great
        r[s, a] = (0.5, 0.0, 1.0 if s != 10 else -0.5)[a]
    r[:, :, -2] = 50.0
    return _ended(P, r, [0], np.arange(questions, dtype=float)[:, None], 2)


@cache
def fires(sizes: int = 9) -> Dynamics:
    """Fires: watch, dig or fly. Most go out at once; the few that grow cost 1.6^size, for long."""
    S = sizes + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(sizes), range(3)):
        out = (0.3, 0.4, 0.5)[a] * 0.55**s + 0.01
        grows = (0.35, 0.28, 0.2)[a]
        P[s, a, -1] = out
        P[s, a, min(s + 1, sizes - 1)] += (1.0 - out) * grows
        P[s, a, max(s - 1, 0)] += (1.0 - out) * 0.2
        P[s, a, s] += (1.0 - out) * (0.8 - grows)
        r[s, a] = -0.1 * 1.6**s - (0.0, 0.1, 0.3)[a]
    return _ended(P, r, [0, 1], np.arange(sizes, dtype=float)[:, None])


@cache
def readers(ranks: int = 5) -> Dynamics:
    """Readers of a paper, from guests to friends: nothing, a letter or a gift; friends stay."""
    S = ranks + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(ranks), range(3)):
        leaves = (0.35, 0.3, 0.22)[a] * 0.45**s + 0.003
        rises = (0.06, 0.1, 0.14)[a]
        P[s, a, -1] = leaves
        P[s, a, min(s + 1, ranks - 1)] += (1.0 - leaves) * rises
        P[s, a, s] += (1.0 - leaves) * (1.0 - rises)
        r[s, a] = 0.3 * (1.0 + s) - (0.0, 0.1, 0.4)[a]
    return _ended(P, r, [0], np.arange(ranks, dtype=float)[:, None])._replace(noise=0.1)


def beyond_log(name: str, target: list[float], features: str, episodes: int, **more: Any) -> World:
    """A world of `beyond`; the behaviour does the first action less, the second most."""
    d: Dynamics = DYNAMICS[name](**more)
    mu, pi = (np.tile(p, (len(d.P), 1)) for p in (BEHAVIOR.get(name, [0.3, 0.4, 0.3]), target))
    return World(d, mu, pi, 0.97, features, episodes, length=60)


DYNAMICS: dict[str, Callable[..., Dynamics]] = {
    one.__name__: one for one in (oven, training, gardens, chests, quiz, fires, readers)
}
BEHAVIOR = {
    "oven": [0.25, 0.4, 0.35], "gardens": [0.4, 0.3, 0.3], "chests": [0.6, 0.35, 0.05],
    "quiz": [0.5, 0.4, 0.1], "fires": [0.3, 0.4, 0.3], "readers": [0.4, 0.4, 0.2],
}  # fmt: skip


def lasting_few(name: str, target: list[float], features: str, episodes: int) -> World:
    return replace(beyond_log(name, target, features, episodes), discount=0.99, length=10_000)


WORLDS: dict[str, Callable[[], World]] = {
    "oven raw": lambda: beyond_log("oven", [0.5, 0.4, 0.1], "raw", 400),
    "oven raw far": lambda: beyond_log("oven", [0.7, 0.25, 0.05], "raw", 400),
    "oven raw near": lambda: beyond_log("oven", [0.3, 0.4, 0.3], "raw", 300),
    "oven poly:2": lambda: beyond_log("oven", [0.45, 0.4, 0.15], "poly:2", 400),
    "oven rbf": lambda: beyond_log("oven", [0.4, 0.4, 0.2], "rbf:10", 400),
    "oven ends raw": lambda: replace(
        beyond_log("oven", [0.5, 0.4, 0.1], "raw", 400, end=0.03), length=1000
    ),
    "oven ends far": lambda: replace(
        beyond_log("oven", [0.65, 0.3, 0.05], "raw", 800, end=0.02), length=1000
    ),
    "oven steep": lambda: beyond_log("oven", [0.45, 0.4, 0.15], "raw", 400, steep=0.01),
    "oven steep far": lambda: beyond_log("oven", [0.55, 0.35, 0.1], "raw", 800, steep=0.02),
    "oven steep ends": lambda: beyond_log(
        "oven", [0.45, 0.4, 0.15], "raw", 400, steep=0.02, end=0.02
    ),
    "oven steep poly:2": lambda: beyond_log("oven", [0.4, 0.4, 0.2], "poly:2", 400, steep=0.01),
    "training steep": lambda: beyond_log("training", [0.5, 0.35, 0.15], "raw", 400, steep=0.02),
    "training raw": lambda: beyond_log("training", [0.5, 0.35, 0.15], "raw", 300),
    "training raw far": lambda: beyond_log("training", [0.7, 0.25, 0.05], "raw", 500),
    "training poly:2": lambda: beyond_log("training", [0.5, 0.35, 0.15], "poly:2", 500),
    "gardens raw": lambda: beyond_log("gardens", [0.15, 0.6, 0.25], "raw", 300),
    "gardens raw far": lambda: beyond_log("gardens", [0.05, 0.7, 0.25], "raw", 500),
    "gardens onehot": lambda: beyond_log("gardens", [0.3, 0.4, 0.3], "onehot", 300),
    "chests onehot": lambda: beyond_log("chests", [0.5, 0.2, 0.3], "onehot", 200),
    "chests raw": lambda: beyond_log("chests", [0.5, 0.2, 0.3], "raw", 300),
    "chests many": lambda: beyond_log("chests", [0.5, 0.25, 0.25], "onehot", 800),
    "quiz onehot": lambda: beyond_log("quiz", [0.4, 0.3, 0.3], "onehot", 300),
    "quiz raw": lambda: beyond_log("quiz", [0.4, 0.3, 0.3], "raw", 500),
    "fires few": lambda: lasting_few("fires", [0.45, 0.35, 0.2], "raw", 50),
    "fires onehot": lambda: lasting_few("fires", [0.2, 0.4, 0.4], "onehot", 200),
    "readers few": lambda: lasting_few("readers", [0.3, 0.4, 0.3], "raw", 50),
    "readers some": lambda: lasting_few("readers", [0.2, 0.4, 0.4], "onehot", 100),
    "readers raw": lambda: lasting_few("readers", [0.2, 0.4, 0.4], "raw", 300),
}
