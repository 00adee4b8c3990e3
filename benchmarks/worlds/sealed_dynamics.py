"""Dynamics of the worlds in `sealed`: such as a stranger would grade the rule of trust with."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from benchmarks.worlds.control import _world
from benchmarks.worlds.unseen import _with_ends
from benchmarks.worlds.world import Dynamics, Floats
from scipy.stats import binom

_AROUND = ((-1, 0), (0, 1), (1, 0), (0, -1))


def _column(n: int) -> Floats:
    return np.arange(n, dtype=float)[:, None]


def _open(P: Floats, r: Floats, first: list[int], obs: Floats) -> Dynamics:
    """Nothing ends by itself."""
    start = np.zeros(len(P))
    start[first] = 1.0 / len(first)
    return Dynamics(P, r, np.zeros(len(P), dtype=bool), start, obs)


@cache
def maze() -> Dynamics:
    """Seven by seven with walls and an exit in the far corner; the floor slips once in ten."""
    plan = ["....#..", ".##...#", "..#.#..", "#...#.#", "..#....", ".##.##.", "...#..."]
    free = [(i, j) for i in range(7) for j in range(7) if plan[i][j] == "."]
    at = {place: s for s, place in enumerate(free)}
    S = len(free) + 1
    P, r = np.zeros((S, 4, S)), np.full((S, 4, S), -0.1)
    for (i, j), a, turn in product(free, range(4), range(-1, 2)):
        di, dj = _AROUND[(a + turn) % 4]
        to = (i + di, j + dj)
        after = S - 1 if to == (6, 6) else at.get(to, at[i, j])
        P[at[i, j], a, after] += 0.9 if turn == 0 else 0.05
    r[:, :, -1] = 5.0
    return _with_ends(P, r, [at[0, 0], at[0, 3]], np.array(free, dtype=float))


@cache
def chase(side: int = 5) -> Dynamics:
    """A cat at (0, 0) of what is seen: the mouse's distance in both ways; it runs at random."""
    states = [x for x in product(range(-side, side + 1), repeat=2) if x != (0, 0)]
    at = {place: s for s, place in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, 4, S)), np.full((S, 4, S), -0.2)
    for (x, y), a, flees in product(states, range(4), range(5)):
        dx, dy = _AROUND[flees] if flees < 4 else (0, 0)
        to = tuple(np.clip((x + dx - _AROUND[a][0], y + dy - _AROUND[a][1]), -side, side))
        P[at[x, y], a, S - 1 if to == (0, 0) else at[to[0], to[1]]] += 0.15 if flees < 4 else 0.4
    r[:, :, -1] = 4.0
    return _with_ends(P, r, [at[3, 3], at[-4, 2], at[0, -5]], np.array(states, dtype=float))


@cache
def grocer(room: int = 10) -> Dynamics:
    """Goods on the shelf and whether it is a feast day; order 0, 3 or 6, which rot at random."""
    states = list(product(range(room + 1), range(2)))
    S = len(states)
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (have, feast), a in product(states, range(3)):
        full = min(have + 3 * a, room)
        for asked, rots in product(range(7), range(2)):
            p = float(binom.pmf(asked, 6, 0.7 if feast else 0.3)) * (0.3 if rots else 0.7)
            left = max(full - asked - rots, 0)
            for day, q in ((1 - feast, 0.3), (feast, 0.7)):
                P[2 * have + feast, a, 2 * left + day] += p * q
        sold = sum(float(binom.pmf(k, 6, 0.7 if feast else 0.3)) * min(k, full) for k in range(7))
        r[2 * have + feast, a] = 2.0 * sold - 3.0 * a - 0.1 * full
    return _open(P, r, [8, 9], np.array(states, dtype=float))


@cache
def counter(room: int = 12) -> Dynamics:
    """People wait at two tills; open one or both, or call for help. The shop shuts at random."""
    S = room + 2
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(room + 1), range(3)):
        for come, served in product(range(4), range(a + 2)):
            p = float(binom.pmf(come, 3, 0.3) * binom.pmf(served, a + 1, 0.5))
            P[s, a, min(max(s - served, 0) + come, room)] += 0.94 * p
        P[s, a, -1] = 0.06
        r[s, a] = -0.02 * s**2 - (0.0, 0.5, 1.4)[a]
    return _with_ends(P, r, [1, 2, 3], _column(room + 1))


@cache
def stairs(steps: int = 12) -> Dynamics:
    """Up one, up two or wait; two may stumble down three. A bell rings at the top (6) and ends."""
    S = steps + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(steps):
        P[s, 0, min(s + 1, S - 1)] = 0.9
        P[s, 0, s] = 0.1
        P[s, 1, min(s + 2, S - 1)] = 0.7
        P[s, 1, max(s - 3, 0)] += 0.3
        P[s, 2, s] = 0.8
        P[s, 2, max(s - 1, 0)] += 0.2
        r[s] = -0.3
    r[:, :, -1] = 6.0
    return _with_ends(P, r, [0], _column(steps))


@cache
def belt(ages: int = 10) -> Dynamics:
    """A belt wears: run slow, run fast, mend. A tear costs 8 and a new belt; it may shut."""
    S = ages + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(ages), range(3)):
        if a == 2:
            P[s, a, max(s - 4, 0)], r[s, a] = 0.97, -0.8
        else:
            tears = (0.002, 0.006)[a] * (s + 1)
            P[s, a, min(s + 1, ages - 1)] += 0.97 * (1.0 - tears) * (0.3, 0.6)[a]
            P[s, a, s] += 0.97 * (1.0 - tears) * (0.7, 0.4)[a]
            P[s, a, 0] += 0.97 * tears
            r[s, a] = (0.6, 1.0)[a] - 8.0 * tears
        P[s, a, -1] = 0.03
    return _with_ends(P, r, [0, 1], _column(ages))


@cache
def dozen(goal: int = 12) -> Dynamics:
    """Roll one die, two dice or stop: the nearer to twelve the better, beyond it all is lost."""
    S = goal + 2  # stopped, lost
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    two = np.convolve(np.ones(6), np.ones(6)) / 36.0
    for s in range(goal):
        for pips, p in enumerate(np.full(6, 1.0 / 6.0), 1):
            P[s, 0, s + pips if s + pips < goal else S - 2 if s + pips == goal else S - 1] += p
        for pips, p in enumerate(two, 2):
            P[s, 1, s + pips if s + pips < goal else S - 2 if s + pips == goal else S - 1] += p
        P[s, 2, -2], r[s, 2] = 1.0, s / goal
        r[s, :2, -2], r[s, :2, -1] = 2.0, -0.5
    return _with_ends(P, r, [0], _column(goal), 2)


@cache
def streak(cards: int = 9, most: int = 6) -> Dynamics:
    """Guess higher, guess lower, or take 1.7^streak; a wrong guess ends it with nothing."""
    states = list(product(range(cards), range(most + 1)))
    S = len(states) + 2  # taken, wrong
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (card, won), a in product(states, range(3)):
        s = (most + 1) * card + won
        if a == 2 or won == most:
            P[s, a, -2], r[s, a] = 1.0, 1.7**won - 1.0
            continue
        for drawn in range(cards):
            good = drawn > card if a == 0 else drawn < card
            P[s, a, (most + 1) * drawn + won + 1 if good else S - 1] += 1.0 / cards
    first = [(most + 1) * card for card in range(cards)]
    return _with_ends(P, r, first, np.array(states, dtype=float), 2)


@cache
def adverts(ages: int = 4, hours: int = 6, arms: int = 5) -> Dynamics:
    """One step: which advert for whom and when. A click pays 1 to 3, once in 3 to 30 showings."""
    rng = np.random.default_rng(9100)
    states = list(product(range(ages), range(hours)))
    S = len(states) + 2  # clicked, not
    P, r = np.zeros((S, arms, S)), np.zeros((S, arms, S))
    for (age, hour), a in product(states, range(arms)):
        s = hours * age + hour
        clicks = 1.0 / (3.0 + 27.0 * rng.random())
        P[s, a, -2], P[s, a, -1] = clicks, 1.0 - clicks
        r[s, a, -2] = 1.0 + 0.5 * a
    return _with_ends(P, r, list(range(len(states))), np.array(states, dtype=float), 2)


@cache
def outbreak(people: int = 12) -> Dynamics:
    """Ill and immune of twelve: nothing, masks or shut doors; it is over when nobody is ill."""
    states = [(i, m) for i in range(1, people + 1) for m in range(people + 1 - i)]
    at = {x: s for s, x in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (ill, immune), a in product(states, range(3)):
        rate = 1.0 - (1.0 - (0.11, 0.06, 0.02)[a]) ** ill
        well = people - ill - immune
        for new, heals in product(range(well + 1), range(ill + 1)):
            p = float(binom.pmf(new, well, rate) * binom.pmf(heals, ill, 0.35))
            now = ill + new - heals
            P[at[ill, immune], a, at[now, immune + heals] if now else S - 1] += p
        r[at[ill, immune], a] = -0.2 * ill - (0.0, 0.3, 1.0)[a]
    return _with_ends(P, r, [at[1, 0], at[2, 0], at[2, 2]], np.array(states, dtype=float))


@cache
def dip() -> Dynamics:
    """A sledge between two hills: push left, rest, push right; it ends behind the right hill."""
    axes = [np.linspace(-1.0, 1.0, 15), np.linspace(-0.6, 0.6, 11)]

    def step(x: Floats, a: int) -> Floats:
        speed = np.clip(0.97 * x[:, 1] + 0.06 * (a - 1) - 0.12 * x[:, 0], -0.6, 0.6)
        return np.stack([np.clip(x[:, 0] + 0.5 * speed, -1.0, 1.0), speed], axis=1)

    obs, P = _world(axes, 3, step)
    ends = (obs[:, 0] > 0.95) & (obs[:, 1] > -0.01)
    r = np.full(P.shape, -1.0)
    r[:, :, ends] = 0.0
    P[ends] = np.eye(len(P))[ends][:, None]
    start = ((np.abs(obs[:, 0]) < 0.3) & (np.abs(obs[:, 1]) < 0.1)).astype(float)
    return Dynamics(P, r, ends, start / start.sum(), obs)


@cache
def crane() -> Dynamics:
    """A load on a rope: its angle and speed; pull left, wait, pull right. Never ends."""
    axes = [np.linspace(-1.2, 1.2, 13), np.linspace(-1.5, 1.5, 11)]

    def step(x: Floats, a: int) -> Floats:
        speed = np.clip(0.96 * x[:, 1] - 0.5 * np.sin(x[:, 0]) + 0.25 * (a - 1), -1.5, 1.5)
        return np.stack([np.clip(x[:, 0] + 0.4 * speed, -1.2, 1.2), speed], axis=1)

    obs, P = _world(axes, 3, step)
    calm = np.exp(-3.0 * obs[:, 0] ** 2 - obs[:, 1] ** 2)
    r = np.broadcast_to(calm[:, None, None], P.shape) - 0.1 * np.array([1.0, 0.0, 1.0])[:, None]
    start = ((np.abs(obs[:, 0]) > 0.5) & (np.abs(obs[:, 1]) < 0.5)).astype(float)
    return Dynamics(P, r, np.zeros(len(P), dtype=bool), start / start.sum(), obs)


@cache
def tangle(size: int = 25, actions: int = 4, end: float = 0.06) -> Dynamics:
    """Drawn at random: each action leads to five states; rewards are normal, with noise 0.5."""
    rng = np.random.default_rng(9200)
    S = size + 1
    P, r = np.zeros((S, actions, S)), np.zeros((S, actions, S))
    for s, a in product(range(size), range(actions)):
        to = rng.choice(size, 5, replace=False)
        P[s, a, to] = (1.0 - end) * rng.dirichlet(np.full(5, 0.7))
        P[s, a, -1] = end
        r[s, a] = rng.normal()
    return _with_ends(P, r, [0, 1, 2, 3], rng.normal(size=(size, 3)))._replace(noise=0.5)


@cache
def kite(most: int = 70) -> Dynamics:
    """A string of 0 to 69: give, hold or wind in. Up to 20 it flies; beyond, the wind breaks it."""
    P, height = np.zeros((most, 3, most)), np.arange(most)
    for s, (a, moves) in product(
        range(most),
        enumerate((((2, 0.4), (0, 0.6)), ((1, 0.2), (-1, 0.2), (0, 0.6)), ((-1, 1.0),))),
    ):
        for move, p in moves:
            P[s, a, int(np.clip(s + move, 0, most - 1))] += p
    pays = np.where(height < 20, 0.2 * height, 4.0 - 0.01 * (height - 20.0) ** 2)
    return _open(P, np.broadcast_to(pays[:, None, None], P.shape), [4, 5, 6], _column(most) / 7.0)


@cache
def savings(most: int = 50) -> Dynamics:
    """Spend, keep or invest money of 0 to 49: what is owned earns with its square root."""
    P, r = np.zeros((most, 3, most)), np.zeros((most, 3, most))
    for s, a in product(range(most), range(3)):
        for move, p in (
            ((-2, 0.6), (-1, 0.4)),
            ((0, 0.7), (1, 0.3)),
            ((1, 0.5), (3, 0.3), (-2, 0.2)),
        )[a]:
            P[s, a, int(np.clip(s + move, 0, most - 1))] += p
        r[s, a] = 0.6 * np.sqrt(s) + (1.0 if a == 0 and s > 1 else 0.0)
    return _open(P, r, [5, 6, 7, 8], _column(most))


@cache
def mine(depth: int = 9) -> Dynamics:
    """Dig on, go up, or blast: blasting pays, below level 5 it may bring the roof down (-50)."""
    S = depth + 2  # buried, home
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(depth), range(3)):
        falls = 0.025 if a == 2 and s > 5 else 0.0
        to = min(s + (1, -1, 1)[a], depth - 1) if s + (1, -1, 1)[a] >= 0 else S - 1
        P[s, a, to] = 0.93 * (1.0 - falls)
        P[s, a, -2], P[s, a, -1] = falls, P[s, a, -1] + 0.07 * (1.0 - falls)
        r[s, a] = (0.1 * s, 0.0, 0.3 * s)[a]
    r[:, :, -2] = -50.0
    return _with_ends(P, r, [2], _column(depth), 2)


@cache
def wells(sites: int = 12) -> Dynamics:
    """Twelve sites in turn: pass, test or drill. Four have oil (25) once in twenty holes."""
    S = sites + 2  # oil, over
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(sites), range(3)):
        oil = 0.05 if a == 2 and s % 3 == 1 else 0.0
        P[s, a, -2] = oil
        P[s, a, s + 1 if s + 1 < sites else S - 1] = 1.0 - oil
        r[s, a] = (0.0, 0.05 * (s % 3 == 1) - 0.02, -0.15)[a]
    r[:, :, -2] = 25.0
    return _with_ends(P, r, [0, 4, 8], _column(sites), 2)


@cache
def clients(ranks: int = 6) -> Dynamics:
    """A lawyer's clients by rank: bill, woo or wait. High ranks pay 1.9^rank and leave seldom."""
    S = ranks + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(ranks), range(3)):
        leaves = (0.3, 0.18, 0.24)[a] * 0.6**s + 0.004
        rises = (0.03, 0.12, 0.06)[a]
        P[s, a, -1] = leaves
        P[s, a, min(s + 1, ranks - 1)] += (1.0 - leaves) * rises
        P[s, a, s] += (1.0 - leaves) * (1.0 - rises)
        r[s, a] = (0.2, 0.08, 0.12)[a] * 1.9**s
    return _with_ends(P, r, [0, 1], _column(ranks))


@cache
def support(hard: int = 4) -> Dynamics:
    """Calls of four sorts, from a minute to hours: script, ask or send on; and a mood."""
    states = list(product(range(hard), range(3)))
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (sort, mood), a in product(states, range(3)):
        s = 3 * sort + mood
        done = (0.6, 0.15, 0.05, 0.01)[sort] * (1.0, 0.8, 0.9)[a]
        eases = (0.05, 0.12, 0.25)[a]
        P[s, a, -1] = done
        for to, p in ((max(sort - 1, 0), eases), (sort, 1.0 - eases)):
            for m, q in ((mood, 0.8), ((mood + 1) % 3, 0.2)):
                P[s, a, 3 * to + m] += (1.0 - done) * p * q
        r[s, a] = -0.1 - 0.1 * mood - (0.0, 0.05, 0.3)[a]
    r[:, :, -1] = 2.0
    return _with_ends(P, r, [0, 3, 6, 9], np.array(states, dtype=float))


@cache
def ferry(room: int = 9) -> Dynamics:
    """Endless: cars wait on two banks; wait, cross half empty, or cross full only."""
    states = list(product(range(room + 1), range(2)))
    S = len(states)
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (wait, bank), a in product(states, range(3)):
        goes = a == 1 or (a == 2 and wait >= 5)
        took = min(wait, 6) if goes else 0
        for come, p in ((0, 0.4), (1, 0.35), (2, 0.25)):
            other = min(room, 2 + come) if goes else min(wait + come, room)
            P[2 * wait + bank, a, 2 * other + (1 - bank if goes else bank)] += p
        r[2 * wait + bank, a] = 0.5 * took - 1.0 * goes - 0.05 * wait
    return _open(P, r, list(range(S)), np.array(states, dtype=float))


@cache
def cooler(points: int = 15) -> Dynamics:
    """Endless: a room of servers that heats up with the load (low, high); fan off, slow, fast."""
    states = list(product(range(points), range(2)))
    S = len(states)
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (heat, load), a in product(states, range(3)):
        up = (0.35, 0.7)[load] * (1.0, 0.6, 0.25)[a]
        down = (0.1, 0.3, 0.6)[a]
        for to, p in ((heat + 1, up * (1.0 - down)), (heat - 1, down * (1.0 - up))):
            for turned, q in ((0, 0.95), (1, 0.05)):
                P[2 * heat + load, a, 2 * int(np.clip(to, 0, points - 1)) + (load ^ turned)] += (
                    p * q
                )
        for turned, q in ((0, 0.95), (1, 0.05)):
            stays = 1.0 - up * (1.0 - down) - down * (1.0 - up)
            P[2 * heat + load, a, 2 * heat + (load ^ turned)] += stays * q
        r[2 * heat + load, a] = 1.0 + load - 0.02 * max(heat - 6, 0) ** 2 - (0.0, 0.2, 0.5)[a]
    return _open(P, r, list(range(S)), np.array(states, dtype=float))
