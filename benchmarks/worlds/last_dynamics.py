"""Dynamics of the worlds of `last`, none of which stand in another part."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from benchmarks.worlds.grids import MOVES
from benchmarks.worlds.world import Dynamics


def _line(n: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.arange(n, dtype=float)[:, None]


@cache
def warranty(years: int = 6) -> Dynamics:
    """A sold product of age 0 to 5: no, a short or the long warranty each year.

    The long one pays best, and is recalled (-45) once in a hundred years; one in eight is scrapped.
    """
    S = years + 2  # recalled, scrapped
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(years), range(3)):
        recall, out = (0.0, 0.001, 0.01)[a], 0.125
        P[s, a, min(s + 1, years - 1)] = 1.0 - recall - out
        P[s, a, -2], P[s, a, -1] = recall, out
        r[s, a] = (0.2, 0.5, 0.9)[a] * (1.0 - 0.08 * s)
    r[:, :, -2] = -45.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[:2] = (0.8, 0.2)
    return Dynamics(P, r, np.arange(S) >= years, start, _line(S))


@cache
def booster(groups: int = 5) -> Dynamics:
    """Two steps: a first dose (none, low, high), then a second; 1 if it protects.

    A second high dose after a high one hurts (-15) with 0.015; a low one after it with 0.003.
    """
    S = 4 * groups + 3  # group x (before, none, low, high given), hurt, ill, protected
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for g, a in product(range(groups), range(3)):
        P[g, a, groups * (1 + a) + g] = 1.0
        r[g, a] = (0.0, -0.02, -0.05)[a]
        for had in range(3):
            s = groups * (1 + had) + g
            hurt = (0.0, 0.0, 0.0, 0.0, 0.003, 0.015)[3 * (had == 2) + a]
            safe = (0.2, 0.45, 0.6, 0.75, 0.8)[had + a] * (1.0 - 0.05 * g)
            P[s, a, -3], P[s, a, -1], P[s, a, -2] = hurt, safe - hurt, 1.0 - safe
            r[s, a] = (0.0, -0.02, -0.05)[a]
    r[:, :, -3], r[:, :, -1] = -15.0, 1.0
    for s in (-3, -2, -1):
        P[s, :, s] = 1.0
    start = np.append(np.full(groups, 1.0 / groups), np.zeros(S - groups))
    given = np.repeat(np.arange(4), groups)
    obs = np.stack([np.append(np.tile(np.arange(groups), 4), [-1, -2, -3]),
                    np.append(given, [-1, -2, -3])], axis=1)  # fmt: skip
    return Dynamics(P, r, np.arange(S) >= S - 3, start, obs.astype(float))


@cache
def seedlings(heights: int = 6) -> Dynamics:
    """A tree of height 0 to 5: leave, water or thin; most die small, a few stand for very long.

    What it yields grows with its height, so those few give most of it all.
    """
    S = heights + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(heights), range(3)):
        dies = (0.25, 0.18, 0.1, 0.05, 0.02, 0.01)[s] * (1.0, 0.85, 1.05)[a]
        grows = (0.08, 0.14, 0.2)[a] if s + 1 < heights else 0.0
        P[s, a, -1] = dies
        P[s, a, min(s + 1, heights - 1)] += (1.0 - dies) * grows
        P[s, a, s] += (1.0 - dies) * (1.0 - grows)
        r[s, a] = 0.1 + 0.6 * s**1.5 - (0.0, 0.1, 0.05)[a]
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[0] = 1.0
    return Dynamics(P, r, np.arange(S) == heights, start, _line(S))


@cache
def payments(kinds: int = 4) -> Dynamics:
    """A card's payments by amount and kind of shop: let pass, ask, or refuse.

    A payment that passes pays a little; one in some hundred is stolen money (-25), and ends it.
    """
    states = list(product(range(3), range(kinds)))
    S = len(states) + 2  # stolen, closed
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    come = np.outer((0.6, 0.3, 0.1), np.full(kinds, 1.0 / kinds)).ravel()
    for (amount, kind), a in product(states, range(3)):
        s = amount * kinds + kind
        stolen = (0.002 + 0.006 * amount * (kind + 1) / kinds) * (1.0, 0.15, 0.0)[a]
        closed = (0.06, 0.08, 0.2)[a]
        P[s, a, :-2] = (1.0 - stolen - closed) * come
        P[s, a, -2], P[s, a, -1] = stolen, closed
        r[s, a] = (0.15 + 0.2 * amount, 0.1 + 0.15 * amount, 0.0)[a]
    r[:, :, -2] = -25.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    obs = np.array([*states, (-1, -1), (-2, -2)], dtype=float)
    return Dynamics(P, r, np.arange(S) >= S - 2, np.append(come, [0.0, 0.0]), obs)


@cache
def gate(side: int = 5) -> Dynamics:
    """A yard with a gate in the far corner that is open once in thirty knocks (24); steps cost 0.1.

    Knocking elsewhere does nothing. One step in twenty-five is the last.
    """
    S = side * side + 2  # through, over
    P, r = np.zeros((S, 5, S)), np.full((S, 5, S), -0.1)
    for s in range(side * side):
        i, j = divmod(s, side)
        for a, (di, dj) in enumerate(MOVES):
            to = int(np.clip(i + di, 0, side - 1)) * side + int(np.clip(j + dj, 0, side - 1))
            P[s, a, to] += 0.86
            P[s, a, s] += 0.1
        opens = 0.03 if s == side * side - 1 else 0.0
        P[s, 4, -2], P[s, 4, s] = opens, 0.96 - opens
        P[s, :, -1] += 0.04
    r[:, :, -2] = 24.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[[0, side * side // 2]] = 0.5
    obs = np.array([*(divmod(s, side) for s in range(side * side)), (-1, -1), (-2, -2)], float)
    return Dynamics(P, r, np.arange(S) >= S - 2, start, obs)


@cache
def sailing(winds: int = 6) -> Dynamics:
    """Endless: wind 0 to 5; sails small, half or full. In strong wind full sails may tear (-30)."""
    S = winds
    P, r = np.zeros((2 * S, 3, 2 * S)), np.zeros((2 * S, 3, 2 * S))
    for wind, a in product(range(winds), range(3)):
        tears = (0.0, 0.0004, 0.004)[a] * (wind >= 3)
        for step, p in ((-1, 0.3), (0, 0.4), (1, 0.3)):
            to = min(max(wind + step, 0), winds - 1)
            P[wind, a, to] += p * (1.0 - tears)
            P[wind, a, S + to] += p * tears
            P[S + wind, a, S + to] += 0.8 * p
            P[S + wind, a, to] += 0.2 * p
        r[wind, a, :S] = (0.4, 0.8, 1.1)[a] * (1.0 + 0.1 * wind)
        r[wind, a, S:] = -30.0
    start = np.append(np.full(S, 1.0 / S), np.zeros(S))
    obs = np.array([divmod(s, S)[::-1] for s in range(2 * S)], dtype=float)
    return Dynamics(P, r, np.zeros(2 * S, dtype=bool), start, obs)


@cache
def bicycles(room: int = 6) -> Dynamics:
    """Bicycles at two places; carry one from the first to the second, back, or none. 40 hours."""
    total = 2 * room - 3
    states = [(x, hour) for x in range(total + 1) for hour in range(3)]
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (x, hour), a in product(states, range(3)):
        s = 3 * x + hour
        have = int(np.clip(x + (0, -1, 1)[a], 0, total))
        take, bring = ((0.5, 0.2), (0.3, 0.3), (0.2, 0.5))[hour]
        gain = -0.15 * (a > 0)
        for out, back in product((0, 1), repeat=2):
            p = (take if out else 1.0 - take) * (bring if back else 1.0 - bring)
            served = (out and have > 0) + (back and have < total)
            to = have - (out and have > 0) + (back and have < total)
            gain += p * (served - 0.8 * (out + back - served))
            P[s, a, 3 * int(to) + (hour + 1) % 3] += 0.975 * p
        P[s, a, -1] = 0.025
        r[s, a] = gain
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[[3 * (total // 2) + hour for hour in range(3)]] = 1 / 3
    obs = np.array([*states, (-1, -1)], dtype=float)
    return Dynamics(P, r, np.arange(S) == S - 1, start, obs)


@cache
def battery(levels: int = 9) -> Dynamics:
    """Endless: a battery and the price of power (4, slow): charge, wait or sell."""
    states = list(product(range(levels), range(4)))
    S = len(states)
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (charge, price), a in product(states, range(3)):
        s = 4 * charge + price
        to = min(max(charge + 1 - a, 0), levels - 1)
        for step, p in ((-1, 0.15), (0, 0.7), (1, 0.15)):
            P[s, a, 4 * to + min(max(price + step, 0), 3)] += p
        r[s, a] = (charge - to) * (0.5 + 0.5 * price) * (0.9 if a == 2 else 1.0) - 0.02 * charge
    start = np.full(S, 1.0 / S)
    return Dynamics(P, r, np.zeros(S, dtype=bool), start, np.array(states, dtype=float))


@cache
def dialog(slots: int = 4) -> Dynamics:
    """An assistant fills four fields: ask (often heard wrong), check, or send it off.

    Sent off it pays 4 for each right field less 3 for each wrong one; each turn costs 0.3.
    Observed: how many are filled, and how many of these were checked.
    """
    states = [(n, c) for n in range(slots + 1) for c in range(n + 1)]
    at = {x: i for i, x in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.full((S, 3, S), -0.3)
    for (n, c), s in at.items():
        P[s, 0, at[min(n + 1, slots), c]] += 0.65
        P[s, 0, s] += 0.3
        P[s, 1, at[n, min(c + 1, n)]] += 0.8
        P[s, 1, s] += 0.15
        P[s, :2, -1] = 0.05
        P[s, 2, -1] = 1.0
        r[s, 2] = 4.0 * (c + 0.7 * (n - c)) - 3.0 * 0.3 * (n - c) - 3.0 * (slots - n)
        r[s, :2, -1] = -4.0
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[at[0, 0]] = start[at[1, 0]] = 0.5
    obs = np.array([*states, (-1, -1)], dtype=float)
    return Dynamics(P, r, np.arange(S) == S - 1, start, obs)


@cache
def tennis() -> Dynamics:
    """A game of tennis: serve safely, hard or very hard; 1 if it is won, -1 if it is lost."""
    states = list(product(range(4), range(4)))
    at = {x: i for i, x in enumerate(states)}
    S = len(states) + 2
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for ((mine, yours), s), a in product(at.items(), range(3)):
        wins = (0.52, 0.58, 0.55)[a] - 0.02 * (yours > mine) * a
        for won, p in ((1, wins), (0, 1.0 - wins)):
            x, y = mine + won, yours + 1 - won
            over, share = (S - 1 if won else S - 2), 1.0 if max(x, y) == 4 else 0.0
            if share and min(x, y) == 3:  # an advantage is lost again, as often as not
                x, y, share = 3, 3, 0.5
            P[s, a, over] += share * p
            P[s, a, at[min(x, 3), min(y, 3)]] += (1.0 - share) * p
    r[:, :, -1], r[:, :, -2] = 1.0, -1.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[0] = 1.0
    obs = np.array([*states, (-1, -1), (-2, -2)], dtype=float)
    return Dynamics(P, r, np.arange(S) >= S - 2, start, obs)


@cache
def pig(goal: int = 20) -> Dynamics:
    """Throw a die as long as you like, or hold: a 1 loses the turn's sum. One turn, to 20."""
    S = goal + 2  # sums 0 to 20, over
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    for s in range(goal + 1):
        P[s, 1, -1], r[s, 1] = 1.0, float(s)
        P[s, 0, -1] += 1 / 6
        for pips in range(2, 7):
            P[s, 0, min(s + pips, goal)] += 1 / 6
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[0] = 1.0
    return Dynamics(P, r, np.arange(S) == S - 1, start, _line(S))


@cache
def crossing(room: int = 5) -> Dynamics:
    """Endless: cars wait on two roads; keep the light, or change it (one step of red for all)."""
    states = list(product(range(room + 1), range(room + 1), range(2)))
    at = {x: i for i, x in enumerate(states)}
    S = len(states)
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    for ((x, y, light), s), a in product(at.items(), range(2)):
        go = (0.0, 0.0) if a else ((0.9, 0.0) if light == 0 else (0.0, 0.9))
        for i, j in product((0, 1), repeat=2):
            p = (0.3 if i else 0.7) * (0.25 if j else 0.75)
            for left, q in ((1, sum(go)), (0, 1.0 - sum(go))):
                u = min(max(x - left * (go[0] > 0), 0) + i, room)
                v = min(max(y - left * (go[1] > 0), 0) + j, room)
                P[s, a, at[u, v, light ^ a]] += p * q
        r[s, a] = -0.1 * (x + y) - 0.05 * a
    start = np.zeros(S)
    start[at[1, 1, 0]] = 1.0
    return Dynamics(P, r, np.zeros(S, dtype=bool), start, np.array(states, dtype=float))


@cache
def vault(side: int = 5) -> Dynamics:
    """A grid with a key in one corner and a door in another: 5 behind the door, steps cost 0.05.

    Whether the key is held lasts, and may be hidden.
    """
    cells = side * side
    S = 2 * cells + 1
    P, r = np.zeros((S, 4, S)), np.full((S, 4, S), -0.05)
    for s, held, a, b in product(range(cells), range(2), range(4), range(4)):
        i, j = divmod(s, side)
        di, dj = MOVES[b]
        to = int(np.clip(i + di, 0, side - 1)) * side + int(np.clip(j + dj, 0, side - 1))
        p = (0.7 if a == b else 0.1) * 0.98
        has = 1 if to == side - 1 else held
        if has and to == side * (side - 1):
            P[2 * s + held, a, -1] += p
            r[2 * s + held, a, -1] = 5.0
        else:
            P[2 * s + held, a, 2 * to + has] += p
    for s, a in product(range(S - 1), range(4)):
        r[s, a, -1] = (5.0 * P[s, a, -1] - 0.05 * 0.02) / (P[s, a, -1] + 0.02) if (
            P[s, a, -1] > 0.0
        ) else -0.05  # fmt: skip
        P[s, a, -1] += 0.02
    P[-1, :, -1] = 1.0
    start = np.zeros(S)
    start[[0, 2 * (cells // 2)]] = 0.5
    obs = np.array([*((*divmod(s // 2, side), s % 2) for s in range(S - 1)), (-1, -1, -1)], float)
    return Dynamics(P, r, np.arange(S) == S - 1, start, obs)
