"""Worlds of `development` in which features miss something that lasts."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from benchmarks.worlds.world import Dynamics


@cache
def depot(places: int = 12, stops: int = 4) -> Dynamics:
    """A ring: fetch a parcel at one numbered stop, bring it to another; left, right, load, drop.

    Numbers of stops are in no order; loading or dropping at the wrong place costs 5.
    """
    where = [(k * places) // 12 for k in (0, 7, 3, 10)][:stops]
    states = list(product(range(places), range(stops + 1), range(stops)))
    at = {x: i for i, x in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, 4, S)), np.full((S, 4, S), -1.0)
    for (place, parcel, goal), s in at.items():
        P[s, 0, at[(place - 1) % places, parcel, goal]] = 1.0
        P[s, 1, at[(place + 1) % places, parcel, goal]] = 1.0
        here = parcel < stops and where[parcel] == place
        P[s, 2, at[place, stops, goal] if here else s] = 1.0
        done = parcel == stops and where[goal] == place
        P[s, 3, S - 1 if done else s] = 1.0
        r[s, 2] = -1.0 if here else -5.0
        r[s, 3] = 25.0 if done else -5.0
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    for place, parcel, goal in states:
        start[at[place, parcel, goal]] = parcel < stops and parcel != goal
    obs = np.array([*states, (-1, -1, -1)], dtype=float)
    return Dynamics(P, r, np.arange(S) == S - 1, start / start.sum(), obs)


@cache
def star(arms: int = 5, length: int = 5) -> Dynamics:
    """A hub with arms; a prize at the end of the arm whose number is seen; out, in or turn.

    Turning goes on to the next arm, at the hub only. Each step costs 0.3, a wrong end 2.
    """
    order = np.array([2, 0, 4, 1, 3])[:arms]  # numbers say nothing of the order
    states = list(product(range(arms), range(length), range(arms)))
    at = {x: i for i, x in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.full((S, 3, S), -0.3)
    for (arm, depth, goal), s in at.items():
        end = depth == length - 1
        if end and order[goal] == arm:
            P[s, 0, -1], r[s, 0] = 1.0, 15.0
        else:
            P[s, 0, at[arm, min(depth + 1, length - 1), goal]] = 1.0
            r[s, 0] = -2.0 if end else -0.3
        P[s, 1, at[arm, max(depth - 1, 0), goal]] = 1.0
        P[s, 2, at[(arm + (depth == 0)) % arms, depth, goal]] = 1.0
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[[at[0, 0, goal] for goal in range(arms)]] = 1.0 / arms
    obs = np.array([*states, (-1, -1, -1)], dtype=float)
    return Dynamics(P, r, np.arange(S) == S - 1, start, obs)


@cache
def patients(stages: int = 6) -> Dynamics:
    """An illness in six stages, of one of three courses that no sign shows: wait, drug or cut.

    Observed: the stage, then the course.
    """
    states = list(product(range(stages), range(3)))
    S = len(states) + 2  # dead, well
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (stage, course), a in product(states, range(3)):
        s = 3 * stage + course
        up = ((0.15, 0.25, 0.4), (0.1, 0.3, 0.15), (0.2, 0.2, 0.2))[a][course]
        down = ((0.2, 0.1, 0.05), (0.35, 0.08, 0.3), (0.25, 0.3, 0.15))[a][course]
        P[s, a, -2 if stage + 1 == stages else s + 3] += 0.5 * up
        P[s, a, -1 if stage == 0 else s - 3] += 0.5 * down
        P[s, a, s] += 1.0 - 0.5 * (up + down)
        r[s, a] = -0.02 * a
    r[:, :, -2], r[:, :, -1] = -1.0, 1.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[6:9] = (0.4, 0.3, 0.3)
    obs = np.array([*states, (-1, -1), (-2, -2)], dtype=float)
    return Dynamics(P, r, np.arange(S) >= S - 2, start, obs)


@cache
def tide(places: int = 11, end: float = 0.02) -> Dynamics:
    """A boat on a line in a current that turns once in forty steps: row left, rest, row right.

    1 near the middle. Observed: the place, then the current.
    """
    S = 2 * places + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for place, current, a in product(range(places), range(2), range(3)):
        s = 2 * place + current
        flow = 0.6 if current else -0.6
        right = np.clip(0.5 + 0.5 * (flow + 0.7 * (a - 1)), 0.02, 0.98)
        for step, p in ((-1, 1.0 - right), (1, right)):
            to = min(max(place + step, 0), places - 1)
            for turned, q in ((0, 0.975), (1, 0.025)):
                P[s, a, 2 * to + (current ^ turned)] += (1.0 - end) * p * q
        P[s, a, -1] = end
        r[s, a] = (abs(place - places // 2) < 2) - 0.1 * (a != 1)
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[[2 * (places // 2), 2 * (places // 2) + 1]] = 0.5
    obs = np.array([*(divmod(s, 2) for s in range(S - 1)), (-1, -1)], dtype=float)
    return Dynamics(P, r, np.arange(S) == S - 1, start, obs)
