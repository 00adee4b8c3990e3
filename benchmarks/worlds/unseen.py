"""Worlds set aside before trust was refused where an answer rests on too little; they grade it.

A third of them have rare outcomes that decide, a third are ordinary, in some the target runs to
where the log hardly was, and two are endless.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
from benchmarks.worlds.last import endless, even, made, softer
from benchmarks.worlds.world import Dynamics, Floats, World
from scipy.stats import binom


def _with_ends(P: Floats, r: Floats, first: list[int], obs: Floats, ends: int = 1) -> Dynamics:
    """The last states end an episode; it starts in one of `first`."""
    S = len(P)
    for s in range(S - ends, S):
        P[s, :, s] = 1.0
    start = np.zeros(S)
    start[first] = 1.0 / len(first)
    shown = np.vstack([obs, -1.0 - np.arange(ends)[:, None] * np.ones(obs.shape[1])])
    return Dynamics(P, r, np.arange(S) >= S - ends, start, shown)


@cache
def voyage(legs: int = 7) -> Dynamics:
    """Seven legs: the coast, the open sea or the strait; the strait is fast, and may sink (-90)."""
    S = legs + 2  # sunk, arrived
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(legs), range(3)):
        sinks, step = (0.0, 0.0005, 0.012)[a], (1, 1, 2)[a]
        to = s + step if s + step < legs else S - 1
        P[s, a, to] += 0.85 * (1.0 - sinks)
        P[s, a, s] += 0.15 * (1.0 - sinks)
        P[s, a, legs] += sinks
        r[s, a] = (-1.5, -1.1, -0.9)[a]
    r[:, :, legs] = -90.0
    return _with_ends(P, r, [0], np.arange(legs, dtype=float)[:, None], 2)


@cache
def grants(years: int = 5) -> Dynamics:
    """Each year: teach, ask for a small grant (3, one in four), or a large one (60, one in 45)."""
    S = years + 3  # small, large, over
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(years), range(3)):
        wins = (0.0, 0.25, 1.0 / 45.0)[a]
        P[s, a, s + 1 if s + 1 < years else S - 1] = 1.0 - wins
        if a:
            P[s, a, years + a - 1] = wins
        r[s, a] = (0.5, 0.1, -0.1)[a]
    r[:, :, years], r[:, :, years + 1] = 3.0, 60.0
    return _with_ends(P, r, [0, 1], np.arange(years, dtype=float)[:, None], 3)


@cache
def machine(wear: int = 6) -> Dynamics:
    """A machine of wear 0 to 5: oil, run or race. Worn ones break, and stand still for long."""
    S = wear + 2  # broken, sold
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(wear), range(3)):
        breaks = (0.0, 0.001, 0.004)[a] * (1 + s)
        P[s, a, wear] = breaks
        P[s, a, -1] = 0.04
        more = (0.1, 0.3, 0.6)[a]
        P[s, a, max(s - 1, 0) if a == 0 else s] += (1.0 - breaks - 0.04) * (1.0 - more)
        P[s, a, min(s + 1, wear - 1)] += (1.0 - breaks - 0.04) * more
        r[s, a] = (0.1, 0.8, 1.1)[a]
    P[wear, :, wear], P[wear, :, -1] = 0.985, 0.015
    r[wear] = -1.0
    return _with_ends(P, r, [0, 1, 2], np.arange(wear + 1, dtype=float)[:, None])


@cache
def rumour(levels: int = 8) -> Dynamics:
    """A story that 2^s people read: most are forgotten at once, a few grow. Post, wait, or pay."""
    S = levels + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(levels), range(3)):
        out = (0.35, 0.4, 0.3)[a] * 0.85**s
        grows = (0.3, 0.2, 0.38)[a]
        P[s, a, -1] = out
        P[s, a, min(s + 1, levels - 1)] += (1.0 - out) * grows
        P[s, a, max(s - 1, 0)] += (1.0 - out) * 0.25
        P[s, a, s] += (1.0 - out) * (0.75 - grows)
        r[s, a] = 0.05 * 2.0**s - (0.02, 0.0, 0.1)[a]
    return _with_ends(P, r, [0], np.arange(levels, dtype=float)[:, None])


@cache
def allergy(days: int = 6) -> Dynamics:
    """Six days: no drug, the old or the new one. The new one cures best; given again it may harm.

    The harm (-30) comes to one in ninety of those who had it before.
    """
    states = list(product(range(days), range(2)))
    S = len(states) + 3  # harmed, well, over
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (day, had), a in product(states, range(3)):
        s = 2 * day + had
        harm = 0.011 if a == 2 and had else 0.0
        well = (0.05, 0.12, 0.22)[a] * (1.0 - harm)
        P[s, a, -3], P[s, a, -2] = harm, well
        after = 2 * (day + 1) + int(had or a == 2)
        P[s, a, after if day + 1 < days else S - 1] += 1.0 - harm - well
        r[s, a] = (-0.2, -0.25, -0.3)[a]
    r[:, :, -3], r[:, :, -2] = -30.0, 2.0
    return _with_ends(P, r, [0], np.array(states, dtype=float), 3)


@cache
def lift(floors: int = 6) -> Dynamics:
    """A lift at one of six floors, a call from another; up, down or open. One in thirty is last."""
    states = list(product(range(floors), range(floors)))
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (here, call), a in product(states, range(3)):
        s, to = floors * here + call, int(np.clip(here + (1, -1, 0)[a], 0, floors - 1))
        if a == 2 and here == call:
            P[s, a, floors * here : floors * (here + 1)] = 0.97 / floors
            r[s, a] = 1.0
        else:
            P[s, a, floors * to + call] = 0.97
            r[s, a] = -0.1 * abs(to - call)
        P[s, a, -1] = 0.03
    return _with_ends(P, r, list(range(S - 1)), np.array(states, dtype=float))


@cache
def kitchen(room: int = 8) -> Dynamics:
    """Orders wait; cook one well, one fast, or two at once, badly. The evening has 25 rounds."""
    states = list(product(range(room + 1), range(25)))
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (wait, hour), a in product(states, range(3)):
        s = 25 * wait + hour
        ready = (0.5, 0.8, 0.6)[a]
        for new, done in product(range(3), range(2)):
            p = float(binom.pmf(new, 2, 0.35)) * (ready if done else 1.0 - ready)
            left = max(wait - done * (2 if a == 2 else 1), 0)
            to = min(left + new, room)
            P[s, a, 25 * to + hour + 1 if hour < 24 else S - 1] += p
        served = ready * min(wait, 2 if a == 2 else 1)
        r[s, a] = (1.0, 0.8, 0.6)[a] * served - 0.05 * wait
    return _with_ends(P, r, [0, 25, 50], np.array(states, dtype=float))


@cache
def drone(far: int = 7) -> Dynamics:
    """A drone at distance 0 to 6 with charge 0 to 9: out, home, or hover; parcels pay far out."""
    states = list(product(range(far), range(10)))
    S = len(states) + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (place, charge), a in product(states, range(3)):
        s = 10 * place + charge
        to = int(np.clip(place + (1, -1, 0)[a], 0, far - 1))
        if charge == 0 and place > 0:
            P[s, a, -1], r[s, a] = 1.0, -3.0
            continue
        for used, p in ((0, 0.3), (1, 0.6), (2, 0.1)):
            left = 9 if to == 0 else max(charge - used, 0)
            P[s, a, 10 * to + left] += 0.96 * p
        P[s, a, -1] += 0.04
        r[s, a] = 0.2 * to - 0.1
    return _with_ends(P, r, [5, 9], np.array(states, dtype=float))


@cache
def exam(topics: int = 3, weeks: int = 8) -> Dynamics:
    """Three topics known 0 to 2, eight weeks: learn one of them; some is forgotten. Then marks."""
    known = list(product(range(3), repeat=topics))
    states = [(*k, week) for week in range(weeks) for k in known]
    number = {state: i for i, state in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, topics, S)), np.zeros((S, topics, S))
    for (*k, week), a in product(states, range(topics)):
        s = number[(*k, week)]
        for learnt, lost in product(range(2), range(topics + 1)):
            p = (0.7 if learnt else 0.3) * (0.1 if lost < topics else 1.0 - 0.1 * topics)
            new = list(k)
            new[a] = min(new[a] + learnt, 2)
            if lost < topics and lost != a:
                new[lost] = max(new[lost] - 1, 0)
            P[s, a, S - 1 if week + 1 == weeks else number[(*new, week + 1)]] += p
        r[s, a] = float(np.dot(k, (1.0, 1.5, 2.0))) - 0.3 * a if week + 1 == weeks else -0.1 * a
    return _with_ends(P, r, list(range(9)), np.array(states, dtype=float))


@cache
def auction(money: int = 9, rounds: int = 7) -> Dynamics:
    """Seven things of worth 1 to 3 and nine coins: bid 0, 1, 2 or 3; what is left is lost."""
    states = list(product(range(money + 1), range(3), range(rounds)))
    number = {state: i for i, state in enumerate(states)}
    S = len(states) + 1
    P, r = np.zeros((S, 4, S)), np.zeros((S, 4, S))
    for (coins, worth, turn), a in product(states, range(4)):
        s, bid = number[coins, worth, turn], min(a, coins)
        wins = (0.0, 0.35, 0.65, 0.85)[bid] - 0.08 * worth * (bid > 0)
        for left, p in ((coins - bid, wins), (coins, 1.0 - wins)):
            for next_worth in range(3):
                to = S - 1 if turn + 1 == rounds else number[left, next_worth, turn + 1]
                P[s, a, to] += p / 3.0
        r[s, a] = wins * (worth + 1.0)
    first = [number[money, worth, 0] for worth in range(3)]
    return _with_ends(P, r, first, np.array(states, dtype=float))


def _moving(steps: Floats, size: int, rewards: Callable[[Floats], Floats], first: int) -> Dynamics:
    """Nothing ends: a place 0 to size - 1 that action a moves by each of its steps, with chances.

    `steps` has rows (action, move, chance).
    """
    actions = int(steps[:, 0].max()) + 1
    P = np.zeros((size, actions, size))
    for s in range(size):
        for a, move, p in steps:
            P[s, int(a), int(np.clip(s + move, 0, size - 1))] += p
    place = np.arange(size, dtype=float)
    r = np.broadcast_to(rewards(place)[:, None, None], P.shape)
    start = np.zeros(size)
    start[first : first + 3] = 1.0 / 3.0
    return Dynamics(P, r, np.zeros(size, dtype=bool), start, place[:, None] / 10.0)


@cache
def balloon() -> Dynamics:
    """Heights 0 to 79: burn, drift or vent. Fine views up to 25, above it is colder and colder."""
    steps = [(0, 1, 0.6), (0, 0, 0.4), (1, 1, 0.25), (1, 0, 0.5), (1, -1, 0.25), (2, -1, 0.7),
             (2, 0, 0.3)]  # fmt: skip
    return _moving(
        np.array(steps), 80, lambda h: 0.1 * np.minimum(h, 25) - 0.02 * np.maximum(h - 25, 0) ** 2,
        8,
    )  # fmt: skip


@cache
def debt() -> Dynamics:
    """Debts of 0 to 99: save, spend or splurge. Up to 30 spending is fun, then interest eats it."""
    steps = [(0, -1, 0.6), (0, 0, 0.4), (1, 1, 0.3), (1, 0, 0.5), (1, -1, 0.2), (2, 2, 0.6),
             (2, 0, 0.4)]  # fmt: skip
    return _moving(np.array(steps), 100, lambda x: 0.05 * x - 0.25 * np.maximum(x - 40.0, 0.0), 4)


@cache
def dam(levels: int = 12) -> Dynamics:
    """Endless: water behind a dam; let out none, some or much. Power grows with it; it may flood.

    Above level 9 a flood (-40) comes once in eighty hours.
    """
    S = levels + 1  # flooded
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s, a in product(range(levels), range(3)):
        floods = 0.0125 if s > 9 else 0.0
        for rain, p in ((0, 0.5), (1, 0.4), (2, 0.1)):
            P[s, a, int(np.clip(s + rain - a, 0, levels - 1))] += p * (1.0 - floods)
        P[s, a, levels] = floods
        r[s, a] = 0.1 * s * min(a, s) ** 0.5
    P[levels, :, levels], P[levels, :, 3] = 0.5, 0.5
    r[:, :, levels] = -40.0
    start = np.append(np.full(levels, 1.0 / levels), 0.0)
    return Dynamics(P, r, np.zeros(S, dtype=bool), start, np.arange(S, dtype=float)[:, None])


@cache
def printer(room: int = 6) -> Dynamics:
    """Endless: pages wait, the ink runs dry; print one, print two, or fill the ink."""
    states = list(product(range(room + 1), range(6)))
    S = len(states)
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for (wait, ink), a in product(states, range(3)):
        s = 6 * wait + ink
        done = min(a + 1, wait, ink) if a < 2 else 0
        for new, p in ((0, 0.4), (1, 0.4), (2, 0.2)):
            for used, q in ((done, 0.8), (0, 0.2)):
                to = min(wait - done + new, room)
                P[s, a, 6 * to + (5 if a == 2 else ink - used)] += p * q
        r[s, a] = done - 0.1 * wait - 0.4 * (a == 2) - 0.15 * (a == 1)
    start = np.full(S, 1.0 / S)
    return Dynamics(P, r, np.zeros(S, dtype=bool), start, np.array(states, dtype=float))


def _cut(world: World, features: str, episodes: int, length: int) -> World:
    return replace(made(world, features, episodes), length=length)


UNSEEN: dict[str, Callable[[], World]] = {
    "voyage raw": lambda: made(
        even(voyage(), [0.4, 0.5, 0.1], [0.3, 0.4, 0.3], 0.99), "raw", 120
    ),
    "voyage onehot": lambda: made(
        even(voyage(), [0.35, 0.4, 0.25], [0.2, 0.3, 0.5], 0.99), "onehot", 400
    ),
    "grants onehot": lambda: made(
        even(grants(), [0.5, 0.42, 0.08], [0.3, 0.35, 0.35], 0.95), "onehot", 150
    ),
    "grants raw": lambda: made(
        even(grants(), [0.45, 0.4, 0.15], [0.3, 0.4, 0.3], 0.95), "raw", 500
    ),
    "machine raw": lambda: made(
        even(machine(), [0.3, 0.6, 0.1], [0.2, 0.5, 0.3], 0.98), "raw", 100
    ),
    "machine onehot": lambda: made(
        even(machine(), [0.3, 0.5, 0.2], [0.15, 0.5, 0.35], 0.98), "onehot", 400
    ),
    "rumour raw": lambda: made(
        even(rumour(), [0.3, 0.5, 0.2], [0.3, 0.3, 0.4], 0.98), "raw", 60
    ),
    "allergy onehot": lambda: made(
        even(allergy(), [0.4, 0.5, 0.1], [0.2, 0.5, 0.3], 1.0), "onehot", 150
    ),
    "allergy raw": lambda: made(
        even(allergy(), [0.3, 0.5, 0.2], [0.2, 0.4, 0.4], 1.0), "raw", 600
    ),
    "lift onehot": lambda: made(softer(lift(), 0.97, (1.0, 2.0), 0.3), "onehot", 200),
    "lift poly:2": lambda: made(softer(lift(), 0.97, (1.0, 1.8), 0.3), "poly:2", 400),
    "kitchen raw": lambda: made(softer(kitchen(), 1.0, (0.5, 1.2), 0.3), "raw", 200),
    "kitchen poly:2": lambda: made(softer(kitchen(), 1.0, (1.0, 0.3), 0.3), "poly:2", 100),
    "drone onehot": lambda: made(softer(drone(), 0.97, (0.7, 1.3), 0.3), "onehot", 300),
    "drone raw": lambda: made(softer(drone(), 0.97, (0.7, 1.2), 0.3), "raw", 150),
    "exam raw": lambda: made(softer(exam(), 1.0, (0.3, 1.5), 0.4), "raw", 300),
    "exam tiles": lambda: made(softer(exam(), 1.0, (0.3, 1.0), 0.4), "tiles:4x4", 600),
    "auction raw": lambda: made(softer(auction(), 1.0, (0.5, 1.5), 0.3), "raw", 250),
    "auction few": lambda: made(softer(auction(), 1.0, (0.5, 1.0), 0.3), "raw", 50),
    "balloon raw": lambda: _cut(
        even(balloon(), [0.25, 0.4, 0.35], [0.55, 0.35, 0.1], 0.96), "raw", 400, 40
    ),
    "balloon poly:2": lambda: _cut(
        even(balloon(), [0.35, 0.4, 0.25], [0.45, 0.35, 0.2], 0.96), "poly:2", 400, 60
    ),
    "debt raw": lambda: _cut(
        even(debt(), [0.4, 0.4, 0.2], [0.2, 0.4, 0.4], 0.97), "raw", 300, 50
    ),
    "debt onehot": lambda: _cut(
        even(debt(), [0.4, 0.4, 0.2], [0.35, 0.4, 0.25], 0.97), "onehot", 500, 60
    ),
    "dam endless": lambda: replace(
        even(dam(), [0.3, 0.4, 0.3], [0.35, 0.45, 0.2], 0.95), features="raw", episodes=5_000,
        endless=True,
    ),
    "printer endless": lambda: made(
        endless(printer(), 0.95, (0.5, 1.2), 0.3), "poly:2", 8_000
    ),
}  # fmt: skip
