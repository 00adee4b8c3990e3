"""Dynamics of the worlds of `later`, none of which stand in another part."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from benchmarks.worlds.grids import MOVES
from benchmarks.worlds.world import Dynamics


@cache
def courier(side: int = 7, doors: int = 6) -> Dynamics:
    """A parcel for one of six doors of a grid; knock at the right one (20) or a wrong one (-4).

    The door is drawn at the start, and its number, in no order, is all that is seen of it.
    """
    places = [(6, 6), (0, 3), (4, 0), (1, 6), (6, 1), (0, 0)][:doors]
    states = list(product(range(side), range(side), range(doors)))
    at = {x: i for i, x in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, 5, S)), np.full((S, 5, S), -0.5)
    for (i, j, door), s in at.items():
        for a, (di, dj) in enumerate(MOVES):
            to = int(np.clip(i + di, 0, side - 1)), int(np.clip(j + dj, 0, side - 1)), door
            P[s, a, at[to]] += 0.85
            P[s, a, s] += 0.15
        right = places[door] == (i, j)
        P[s, 4, S - 1 if right else s] = 1.0
        r[s, 4] = 20.0 if right else -4.0
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[[at[3, 3, door] for door in range(doors)]] = 1.0 / doors
    obs = np.array([*states, (-1, -1, -1)], dtype=float)
    return Dynamics(P, r, np.arange(S) == S - 1, start, obs)


@cache
def warehouse(rooms: int = 16, goals: int = 4) -> Dynamics:
    """Rooms joined at random, by number; one of four numbered goods is to be fetched.

    Three ways lead on from a room; each step costs 1, and one in fifty steps ends the shift.
    """
    rng = np.random.default_rng([131, 5])
    ways = np.stack([(np.arange(rooms) + 1) % rooms, *rng.integers(0, rooms, size=(2, rooms))])
    shelf = rng.choice(rooms, size=goals, replace=False)
    S = rooms * goals + 1
    P, r = np.zeros((S, 3, S)), np.full((S, 3, S), -1.0)
    for room, goal, a in product(range(rooms), range(goals), range(3)):
        s, to = room * goals + goal, int(ways[a, room])
        for after, p in ((to, 0.88), (room, 0.1)):
            if after == shelf[goal] and after == to:
                P[s, a, -1] += p
                r[s, a, -1] = 10.0
            else:
                P[s, a, after * goals + goal] += p
        r[s, a, -1] = (r[s, a, -1] * P[s, a, -1] - 0.02) / (P[s, a, -1] + 0.02)
        P[s, a, -1] += 0.02
    P[-1, :, -1] = 1.0
    start = np.append(np.full(rooms * goals, 1.0), 0.0)
    for goal in range(goals):
        start[shelf[goal] * goals + goal] = 0.0
    obs = np.array([*(divmod(s, goals) for s in range(S - 1)), (-1, -1)], dtype=float)
    return Dynamics(P, r, np.arange(S) == S - 1, start / start.sum(), obs)


@cache
def guests(kinds: int = 5) -> Dynamics:
    """Hotel guests of a kind that nobody sees: each day an offer is made, and some leave.

    Observed: the day of the week, then the kind.
    """
    rng = np.random.default_rng([137, 5])
    S = 7 * kinds + 1
    spend = rng.gamma(0.7, 1.5, size=(kinds, 3))
    leave = np.array([0.03, 0.05, 0.1, 0.15, 0.3])
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for day, kind, a in product(range(7), range(kinds), range(3)):
        s, out = day * kinds + kind, min(leave[kind] * (0.7, 1.0, 1.4)[a], 1.0)
        P[s, a, (day + 1) % 7 * kinds + kind], P[s, a, -1] = 1.0 - out, out
        r[s, a] = spend[kind, a] * (1.3 if day > 4 else 1.0) - 0.3 * a
    P[-1, :, -1] = 1.0
    start = np.append(np.full(7 * kinds, 1.0 / (7 * kinds)), 0.0)
    obs = np.array([*(divmod(s, kinds) for s in range(S - 1)), (-1, -1)], dtype=float)
    return Dynamics(P, r, np.arange(S) == S - 1, start, obs, 0.3)


@cache
def tutor(levels: int = 9) -> Dynamics:
    """A pupil of one of three talents: easy, hard or no lesson; 10 at the last level.

    A hard lesson may drive the weak away. Observed: the level, then the talent.
    """
    states = list(product(range(levels), range(3)))
    S = len(states) + 2  # gave up, done
    P, r = np.zeros((S, 3, S)), np.full((S, 3, S), -0.1)
    for (level, talent), a in product(states, range(3)):
        s = 3 * level + talent
        up = ((0.1, 0.15, 0.2), (0.05, 0.25, 0.5), (0.0, 0.02, 0.05))[a][talent]
        stop = ((0.01, 0.01, 0.03), (0.08, 0.02, 0.0), (0.02, 0.02, 0.02))[a][talent]
        up *= 1.0 - level / (2.0 * levels)
        P[s, a, -2] = stop
        if level + 1 < levels:
            P[s, a, s + 3] += up
        else:
            P[s, a, -1] += up
        P[s, a, s] += 1.0 - up - stop
    r[:, :, -1] = 10.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[3:6] = (0.5, 0.3, 0.2)
    obs = np.array([*states, (-1, -1), (-2, -2)], dtype=float)
    return Dynamics(P, r, np.arange(S) >= S - 2, start, obs)


@cache
def field(wet: int = 7) -> Dynamics:
    """Soil from dry to wet under a season that changes once in fifty days: water it or not.

    Observed: the soil, then the season.
    """
    S = 2 * wet
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for soil, season, a in product(range(wet), range(2), range(3)):
        s = 2 * soil + season
        dry, rain = (0.7, 0.05) if season else (0.25, 0.3)
        for step, p in ((-1, dry), (1, rain), (0, 1.0 - dry - rain)):
            to = int(np.clip(soil + a + step, 0, wet - 1))
            P[s, a, 2 * to + season] += 0.98 * p
            P[s, a, 2 * to + 1 - season] += 0.02 * p
        r[s, a] = 1.0 - 0.15 * (soil - 4) ** 2 - (0.4 if season else 0.15) * a
    start = np.zeros(S)
    start[[6, 7]] = 0.5
    obs = np.array([divmod(s, 2) for s in range(S)], dtype=float)
    return Dynamics(P, r, np.zeros(S, dtype=bool), start, obs, 0.1)


@cache
def pump(states: int = 8) -> Dynamics:
    """Pressure 0 to 7: slow, normal, or the seldom tried full power, which may burst (-40)."""
    S = states + 2  # over, burst
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(states):
        for a, (up, pay) in enumerate(((0.1, 0.3), (0.4, 0.7), (0.8, 1.3))):
            burst = (0.0, 0.001, 0.02)[a] * (s + 1) / states
            P[s, a, min(s + 1, states - 1)] += up
            P[s, a, max(s - 1, 0)] += 0.9 - up
            P[s, a, -2] += 0.1 - burst
            P[s, a, -1] += burst
            r[s, a] = pay
    r[:, :, -1] = -40.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[:3] = 1 / 3
    return Dynamics(P, r, np.arange(S) >= states, start, np.arange(S, dtype=float)[:, None])


@cache
def trials(groups: int = 6, drugs: int = 5) -> Dynamics:
    """One step: a patient of a group gets a drug; it seldom heals (1) or harms (-6)."""
    rng = np.random.default_rng([139, 5])
    heals = rng.uniform(0.02, 0.25, size=(groups, drugs))
    harms = np.array([0.001, 0.002, 0.005, 0.02, 0.04])
    S = groups + 3
    P, r = np.zeros((S, drugs, S)), np.zeros((S, drugs, S))
    P[:groups, :, -1], P[:groups, :, -3] = heals, harms
    P[:groups, :, -2] = 1.0 - heals - harms
    r[:, :, -1], r[:, :, -3] = 1.0, -6.0
    P[[-3, -2, -1], :, [-3, -2, -1]] = 1.0
    start = np.append(np.full(groups, 1.0 / groups), np.zeros(3))
    return Dynamics(P, r, np.arange(S) >= groups, start, np.arange(S, dtype=float)[:, None])


@cache
def treasure(depth: int = 8) -> Dynamics:
    """Deeper (0), dig (1) or home (2): digging costs 0.2 and finds 2^place once in forty tries."""
    S = depth + 2  # found, home
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(depth):
        P[s, 0, min(s + 1, depth - 1)], P[s, 0, -1] = 0.95, 0.05
        P[s, 1, -2], P[s, 1, s] = 0.025, 0.975
        P[s, 2, -1] = 1.0
        r[s, 0], r[s, 1], r[s, 2] = 0.1, -0.2, 0.5
        r[s, 1, -2] = 2.0**s
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[0] = 1.0
    return Dynamics(P, r, np.arange(S) >= depth, start, np.arange(S, dtype=float)[:, None])


@cache
def lift(floors: int = 6) -> Dynamics:
    """A lift: (floor, a call from some floor or none); down, stay or up; waiting costs."""
    states = list(product(range(floors), range(-1, floors)))
    at = {x: i for i, x in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    come = np.append(0.4, np.full(floors - 1, 0.6 / (floors - 1))) * 0.3
    for ((floor, call), s), a in product(at.items(), range(3)):
        to = min(max(floor + a - 1, 0), floors - 1)
        r[s, a] = (-0.5 if call >= 0 else 0.0) - 0.1 * (a != 1)
        if call >= 0 and to == call:
            r[s, a] += 2.0
        if call >= 0 and to != call:
            P[s, a, at[to, call]] += 0.96
        else:
            for new in range(floors):
                P[s, a, at[to, new]] += 0.96 * come[new]
            P[s, a, at[to, -1]] += 0.96 * (1.0 - come.sum())
        P[s, a, -1] = 0.04
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[[at[floor, -1] for floor in range(floors)]] = 1.0 / floors
    obs = np.array([*states, (-1, -2)], dtype=float)
    return Dynamics(P, r, np.arange(S) == S - 1, start, obs)


@cache
def fishery(stock: int = 16) -> Dynamics:
    """A stock of fish that grows by itself: take none, some or many; an empty sea ends it."""
    P, r = np.zeros((stock, 3, stock)), np.zeros((stock, 3, stock))
    for s, a in product(range(1, stock), range(3)):
        take = min(2 * a, s)
        left = s - take
        grow = 3.0 * left * (stock - left) / stock**2 * 2.0
        for step, p in ((0, 0.25), (1, 0.5), (2, 0.25)):
            P[s, a, min(left + round(grow * step), stock - 1)] += p
        r[s, a] = take - 0.3 * a
    P[0, :, 0] = 1.0
    start = np.zeros(stock)
    start[6:11] = 0.2
    return Dynamics(P, r, np.arange(stock) == 0, start, np.arange(stock, dtype=float)[:, None], 0.2)


@cache
def ladders(squares: int = 30) -> Dynamics:
    """Snakes and ladders with a small or a large die; each throw costs 1 until the last square."""
    jump = {3: 11, 6: 17, 9: 18, 10: 12, 14: 4, 19: 8, 22: 20, 27: 1, 24: 16}
    P = np.zeros((squares, 2, squares))
    for s, (a, sides) in product(range(squares - 1), enumerate((3, 6))):
        for throw in range(1, sides + 1):
            to = min(s + throw, squares - 1)
            P[s, a, jump.get(to, to)] += 1.0 / sides
    P[-1, :, -1] = 1.0
    start = np.zeros(squares)
    start[0] = 1.0
    obs = np.arange(squares, dtype=float)[:, None]
    return Dynamics(P, np.full(P.shape, -1.0), np.arange(squares) == squares - 1, start, obs)


@cache
def parking(places: int = 12) -> Dynamics:
    """Drive past twelve places, each free with 0.4: take a free one (better the later) or go on."""
    S = 2 * places + 1
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    for place, free in product(range(places), range(2)):
        s = 2 * place + free
        for go_on in (0, 1):
            if go_on == 0 and free:
                P[s, 0, -1], r[s, 0] = 1.0, 1.0 + place
            elif place + 1 < places:
                P[s, go_on, 2 * place + 3], P[s, go_on, 2 * place + 2] = 0.4, 0.6
                r[s, go_on] = -0.1
            else:
                P[s, go_on, -1], r[s, go_on] = 1.0, -3.0
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[:2] = (0.6, 0.4)
    obs = np.array([*(divmod(s, 2) for s in range(S - 1)), (-1, -1)], dtype=float)
    return Dynamics(P, r, np.arange(S) == S - 1, start, obs)


@cache
def heating(points: int = 13) -> Dynamics:
    """Endless: the room's warmth follows the weather outside (3, slow); heat 0, 1 or 2."""
    states = list(product(range(points), range(3)))
    S = len(states)
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (warm, out), a in product(states, range(3)):
        s = 3 * warm + out
        drift = 0.25 * (4.0 * out - warm) / 2.0 + 1.2 * a
        low = int(np.floor(drift))
        for step, p in ((low, 1.0 - drift + low), (low + 1, drift - low)):
            for more, q in ((-1, 0.15), (0, 0.7), (1, 0.15)):
                to = int(np.clip(warm + step + more, 0, points - 1))
                for other in range(3):
                    stays = 0.9 if other == out else 0.05
                    P[s, a, 3 * to + other] += p * q * stays
        r[s, a] = 1.0 - 0.08 * (warm - 7) ** 2 - 0.2 * a
    start = np.full(S, 1.0 / S)
    obs = np.array(states, dtype=float)
    return Dynamics(P, r, np.zeros(S, dtype=bool), start, obs, 0.2)
