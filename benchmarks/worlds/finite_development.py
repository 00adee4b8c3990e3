"""Finite worlds on which the rule of trust was made. Nothing here is proof of anything."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import product

import numpy as np
from benchmarks.worlds.world import (
    Dynamics,
    Moves,
    Policies,
    World,
    closing,
    even,
    mixed,
    powered,
    shifted,
    soft,
    softer,
    swapped,
    table,
    worlds,
)
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv


@cache
def garnet(states: int = 15, actions: int = 3, branch: int = 4, end: float = 0.08) -> Dynamics:
    """A table of random transitions; each step ends the episode with probability `end`."""
    rng = np.random.default_rng([1, 19])
    S = states + 1
    P = np.zeros((S, actions, S))
    for s, a in product(range(states), range(actions)):
        after = rng.choice(states, size=branch, replace=False)
        P[s, a, after] = (1.0 - end) * rng.dirichlet(np.ones(branch))
    P[:states, :, -1] = end
    P[-1, :, -1] = 1.0
    r = rng.normal(size=(S, actions, 1)) + np.linspace(-1.0, 1.0, S)[:, None, None]
    start = np.append(rng.dirichlet(np.ones(states)), 0.0)
    angle = rng.permutation(S) / S
    obs = np.stack([angle, np.cos(7 * angle)], axis=1)
    return Dynamics(P, np.broadcast_to(r, P.shape).copy(), np.arange(S) == states, start, obs, 0.5)


ICE = [divmod(s, 4) for s in range(16) if s not in (5, 7, 11, 12, 15)]  # neither hole nor goal


@table(ICE, actions=4, first=[(0, 0)])
def lake(s: tuple[int, int], a: int) -> Moves:
    """FrozenLake, slippery, by Gymnasium's table."""
    moves = FrozenLakeEnv(map_name="4x4", is_slippery=True).P[4 * s[0] + s[1]][a]
    return [(p, None if end else divmod(to, 4), reward) for p, to, reward, end in moves]


@table(np.linspace(-1.0, 1.0, 21)[1:-1], actions=2, first=np.linspace(-1.0, 1.0, 21)[9:12])
def walk(s: float, a: int) -> Moves:
    """A random walk whose ends pay -1 and 1; actions push left or right, each fails with 0.2."""
    place = np.linspace(-1.0, 1.0, 21)
    for step, p in ((-1, 0.8 - 0.6 * a), (1, 0.2 + 0.6 * a)):
        to = int(np.abs(place - s).argmin()) + step
        yield (p, None, float(step)) if to in (0, 20) else (p, place[to], 0.0)


@table((0.0, 0.5), actions=5, first=(0.0, 0.5), noise=0.5)
def bandit(s: float, a: int) -> Moves:
    """One step: one state (two are observed, alike in all they do), arms of mean 0 to 1."""
    return [(1.0, None, a / 4.0)]


@table((0.0, 0.5), actions=3, first=(0.0, 0.5), noise=0.1)
def ratios(s: float, a: int) -> Moves:
    """One step: three arms of mean 0, 1, 2, where a wrong ratio moves the mean by half."""
    return [(1.0, None, float(a))]


def _move(level: int, levels: int, up: float, down: float) -> list[tuple[float, int]]:
    return [(up, min(level + 1, levels - 1)), (down, max(level - 1, 0)), (1.0 - up - down, level)]


@table(
    list(product(range(3), range(4), range(2), range(2))),
    actions=4,
    first=list(product((1,), (2,), (1,), range(2))) + list(product((0,), (3,), (1,), range(2))),
)
def sepsis(s: tuple[int, int, int, int], a: int) -> Moves:
    """Pressure, infection, oxygen, frailty (fixed); antibiotics (a & 1), vasopressors (a & 2).

    Death (-1) comes with bad signs, discharge (1) with good ones.
    """
    pressure, germs, oxygen, frail = s
    bad = (2 - pressure) + germs + 2 * (1 - oxygen) + frail
    die = 0.002 + 0.012 * max(bad - 1, 0) ** 1.5
    well = 0.25 if germs == 0 and oxygen and pressure else 0.0
    cure, press = a & 1, a >> 1
    for (p, x), (q, y), (o, z) in product(
        _move(pressure, 3, 0.35 if press else 0.1, 0.05 + 0.1 * (germs > 1)),
        _move(germs, 4, 0.05 if cure else 0.2, 0.4 - 0.1 * frail if cure else 0.08),
        _move(oxygen, 2, 0.3, 0.05 + 0.08 * cure + 0.05 * (germs > 2)),
    ):
        yield (1.0 - die - well) * p * q * o, (x, y, z, frail), 0.0
    yield die, None, -1.0
    yield well, None, 1.0


@table(range(21), actions=2, first=range(4))
def queue(s: int, a: int) -> Moves:
    """One server, slow (0) or fast (1): arrivals 0.45; service 0.4 or 0.65; fast costs 0.7."""
    come, go, reward = 0.45, (0.65 if a else 0.4) if s else 0.0, -0.1 * s - 0.7 * a
    yield come * (1 - go), min(s + 1, 20), reward
    yield go * (1 - come), max(s - 1, 0), reward
    yield come * go + (1 - come) * (1 - go), s, reward


@table(np.linspace(-2.0, 2.0, 41), actions=3, first=np.linspace(-2.0, 2.0, 41))
def line(x: float, a: int) -> Moves:
    """Endless: x' = 0.9 x + 0.3 push + noise on a grid, reward 1 - x^2 - 0.1 |push|."""
    points, push = np.linspace(-2.0, 2.0, 41), a - 1.0
    weight = np.exp(-0.5 * ((points - 0.9 * x - 0.3 * push) / 0.25) ** 2)
    reward = 1.0 - x**2 - 0.1 * abs(push)
    return [(p, to, reward) for p, to in zip(weight / weight.sum(), points, strict=True)]


@table(range(9), actions=2, first=[0])
def doubling(s: int, a: int) -> Moves:
    """A prize of 1 is doubled with 0.55, or all is lost; take it (0) or go on (1)."""
    return [(0.55, min(s + 1, 8), 0.0), (0.45, None, 0.0)] if a else [(1.0, None, 2.0**s)]


@table(range(12), actions=2, first=range(12))
def claims(s: int, a: int) -> Moves:
    """One step: take a client of some risk (1), who pays 1 and may claim 60, or decline (0)."""
    claim = np.linspace(0.002, 0.03, 12)[s]
    return [(claim, None, -60.0), (1.0 - claim, None, 1.0)] if a else [(1.0, None, 0.0)]


@table(range(11), actions=2, first=[0])
def trap(s: int, a: int) -> Moves:
    """A way of ten places: fast (1) may fall into a pit (10), left with 0.03 a step of cost 1."""
    if s == 10:
        return [(0.97, 10, -1.0), (0.03, None, -1.0)]
    step, fall = (2, 0.01) if a else (1, 0.001)
    return [(1.0 - fall, s + step if s + step < 10 else None, -1.0), (fall, 10, -1.0)]


STOPS = (0, 7, 3, 10)  # their numbers are in no order
DEPOT = list(product(range(12), range(5), range(4)))


@table(DEPOT, actions=4, first=[s for s in DEPOT if s[1] < 4 and s[1] != s[2]])
def depot(s: tuple[int, int, int], a: int) -> Moves:
    """A ring: fetch a parcel at one numbered stop, bring it to another; left, right, load, drop."""
    place, parcel, goal = s
    if a < 2:
        return [(1.0, ((place + 2 * a - 1) % 12, parcel, goal), -1.0)]
    if a == 2 and parcel < 4 and STOPS[parcel] == place:
        return [(1.0, (place, 4, goal), -1.0)]
    if a == 3 and parcel == 4 and STOPS[goal] == place:
        return [(1.0, None, 25.0)]
    return [(1.0, s, -5.0)]


@table(range(3), actions=8, first=range(3))
def slots(s: int, a: int) -> Moves:
    """One step: slot machines that pay 4 to 19.4 once in 8 to 36 pulls, and cost 0.3 a pull."""
    wins = 1.0 / (8 + 4 * a)
    return [(wins, None, 4.0 + 2.2 * a), (1.0 - wins, None, -0.3)]


@table(range(8), actions=2, first=range(3))
def climb(s: int, a: int) -> Moves:
    """A slope: climb (1) may slip to the foot; rest (0) slides back. 1 a step at the top."""
    pays = {0: 0.05, 7: 1.0}.get(s, 0.0)
    moves = ((min(s + 1, 7), 0.6), (s, 0.3), (0, 0.1)) if a else ((max(s - 1, 0), 1.0),)
    return [*((0.98 * p, to, pays) for to, p in moves), (0.02, None, pays)]


@table(range(90), actions=3, first=range(6, 11), scale=0.2)
def oven(s: int, a: int, end: float = 0.0, steep: float = 0.0) -> Moves:
    """Heat up, hold or cool: bread bakes best at 30, above it burns, more and more."""
    moves = (
        ((2, 0.5), (1, 0.3), (0, 0.2)),
        ((1, 0.2), (-1, 0.3), (0, 0.5)),
        ((-2, 0.5), (-1, 0.5)),
    )
    reward = 0.15 * min(s, 30) - 0.12 * max(s - 30, 0) - steep * max(s - 20, 0) ** 2
    for move, p in moves[a]:
        yield (1.0 - end) * p, min(max(s + move, 0), 89), reward
    yield end, None, reward


@table(list(product(range(40), range(4))), actions=3, first=[(4, 0), (5, 0), (6, 0)])
def training(s: tuple[int, int], a: int, steep: float = 0.004) -> Moves:
    """A load and how tired (0 to 3) one is: more, same or less. Beyond 10 it tears, when tired."""
    load, tired = s
    to, tires = min(max(load + 1 - a, 0), 39), (0.45, 0.25, 0.1)[a]
    reward = 0.1 * load - steep * max(load - 10, 0) ** 2 * tired
    yield 0.98 * tires, (to, min(tired + 1, 3)), reward
    yield 0.98 * (1.0 - tires), (to, max(tired - 1, 0)), reward
    yield 0.02, None, reward


@table(range(10), actions=3, first=range(10))
def chests(s: int, a: int) -> Moves:
    """A ring of rooms: go on, look, or open. One chest (in room 6) holds 30, once in thirty."""
    found, reward = 1.0 / 30.0 if a == 2 and s == 6 else 0.0, (0.0, 0.05, -0.1)[a]
    to = (s + 1) % 10 if a == 0 else s
    return [(found, None, 30.0), (0.06, None, reward), (0.94 - found, to, reward)]


@table(range(5), actions=3, first=[0], noise=0.1)
def readers(s: int, a: int) -> Moves:
    """Readers of a paper, from guests to friends: nothing, a letter or a gift; friends stay."""
    leaves = (0.35, 0.3, 0.22)[a] * 0.45**s + 0.003
    rises, reward = (0.06, 0.1, 0.14)[a], 0.3 * (1.0 + s) - (0.0, 0.1, 0.4)[a]
    yield leaves, None, reward
    yield (1.0 - leaves) * rises, min(s + 1, 4), reward
    yield (1.0 - leaves) * (1.0 - rises), s, reward


@table(range(7), actions=3, first=(0, 1))
def fishing(s: int, a: int) -> Moves:
    """Out to sea, cast, or drift back: a cast may end the day with a fish of 2.2^zone."""
    if a == 0:
        return [(0.24, s, -0.05), (0.06, None, -0.05), (0.7, min(s + 1, 6), -0.05)]
    if a == 1:
        return [(0.94, s, -0.1), (0.03, None, 2.2**s), (0.03, None, -0.1)]
    return [(0.8, max(s - 1, 0), 0.1), (0.2, None, 0.1)]


def _drawn(far: float) -> Policies:
    """A drawn behaviour, and the same with every probability to the power 1 + far."""

    def policies(d: Dynamics, _: float) -> tuple[np.ndarray, np.ndarray]:
        mu = np.random.default_rng(2).dirichlet(np.full(3, 3.0), size=len(d.P))
        return mu, powered(mu, 1.0 + far)

    return policies


def _reversed(mu: list[float], share: float) -> Policies:
    """The target goes a part of the way to the behaviour with its actions reversed."""
    return even(mu, list(mixed(np.array(mu), np.array(mu[::-1]), share)))


def _home(share: float) -> Policies:
    def policies(d: Dynamics, discount: float) -> tuple[np.ndarray, np.ndarray]:
        uniform = np.full((len(d.P), 3), 1 / 3)
        return uniform, mixed(uniform, soft(d, discount, 3.0, 0.1), share)

    return policies


noisy = partial(shifted, seed=4, size=0.3)


def short_queue() -> Dynamics:
    """The queue of a shop that closes once in twenty steps."""
    return closing(queue(), 0.05)


EVEN, ARMS = [0.5, 0.5], [0.4, 0.25, 0.2, 0.1, 0.05]
MACHINES, TO_LAST = [0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04], [0.075] * 7 + [0.475]
LAKE, SEPSIS = softer(1.0, 2.0, 0.0), partial(softer, 1.0, explore=0.1)
OVEN, TRAIN = [0.25, 0.4, 0.35], [0.3, 0.4, 0.3]
READERS = [0.4, 0.4, 0.2]

FINITE: dict[str, Callable[[], World]] = {
    **worlds("garnet", garnet, 0.95, _drawn(0.5), "onehot near: onehot 200", "raw near: raw 500"),
    **worlds("garnet", garnet, 0.95, _drawn(6.0), "onehot far: onehot 500"),
    **worlds("garnet", garnet, 0.95, _drawn(2.0), "raw far: raw 1000"),
    **worlds("garnet", garnet, 0.95, _drawn(1.0), "raw cut: raw 300", length=6),
    **worlds("lake4", lake, 0.95, LAKE, "onehot near: onehot 500", "small: onehot 50"),
    **worlds("lake4 swapped", lake, 0.95, LAKE, ": onehot 500", stated=swapped),
    **worlds("lake4 estimated", lake, 0.95, LAKE, ": onehot 500", estimated=True),
    **worlds("walk", walk, 0.99, even(EVEN, [0.3, 0.7]), "onehot 300", "raw 300"),
    **worlds("walk", walk, 0.99, even(EVEN, [0.1, 0.9]), "rbf:3 far: rbf:3 500"),
    **worlds("walk noisy", walk, 0.99, even(EVEN, [0.3, 0.7]), ": onehot 300", stated=noisy),
    **worlds("bandit", bandit, 0.9, _reversed(ARMS, 0.3), ": raw 200"),
    **worlds("bandit far", bandit, 0.9, _reversed(ARMS, 1.0), ": raw 500"),
    **worlds("bandit estimated", bandit, 0.9, _reversed(ARMS, 0.3), ": raw 200", estimated=True),
    **worlds("ratios wrong", ratios, 0.9, even([1 / 3] * 3, [1 / 3] * 3), ": raw 2000",
             stated=lambda mu: mu / np.array([1.5, 1.0, 0.5])),
    **worlds("sepsis", sepsis, 0.99, SEPSIS(target=2.0), "onehot 500", length=60),
    **worlds("sepsis", sepsis, 0.99, SEPSIS(target=12.0), "poly:2 far: poly:2 500", length=60),
    **worlds("sepsis hidden", sepsis, 0.99, SEPSIS(target=3.0), ": onehot 500", seen=3, length=60),
    **worlds("short queue", short_queue, 0.97, softer(0.5, 1.0, 0.2), "onehot 300"),
    **worlds("short queue", short_queue, 0.97, softer(0.5, 1.0, 0.2), "cut: raw 500", length=10),
    **worlds("queue endless", queue, 0.95, softer(0.5, 1.0, 0.2), "onehot 10000", endless=True),
    **worlds("queue endless", queue, 0.95, softer(0.5, 2.0, 0.2), "raw 20000", endless=True),
    **worlds("line endless", line, 0.9, _home(0.5), "poly:2 5000", endless=True),
    **worlds("line endless", line, 0.9, _home(0.3), "raw 20000", endless=True),
    **worlds("doubling", doubling, 0.99, even([0.4, 0.6], [0.25, 0.75]), "raw 1000"),
    **worlds("doubling", doubling, 0.99, even([0.4, 0.6], [0.4, 0.6]), "few: raw 60"),
    **worlds("claims", claims, 0.9, softer(0.3, 2.0, 0.4), "raw 500", "few: onehot 100"),
    **worlds("trap", trap, 0.99, even(EVEN, [0.4, 0.6]), "few: raw 80"),
    **worlds("depot", depot, 0.96, softer(2.0, 2.4, 0.2, 0.15), "onehot 300", "raw 500",
             length=150),
    **worlds("depot blind", depot, 0.97, softer(1.5, 2.0, 0.3, 0.2), ": onehot 800", seen=1,
             length=120),
    **worlds("slots", slots, 0.9, _reversed(MACHINES, 0.4), "raw 300"),
    **worlds("slots even", slots, 0.9, even([1 / 8] * 8, TO_LAST), ": raw 200"),
    **worlds("climb", climb, 0.97, even(EVEN, [0.2, 0.8]), "raw 300", length=120),
    **worlds("climb", climb, 0.97, even(EVEN, [0.05, 0.95]), "raw far: raw 500", length=120),
    **worlds("oven", oven, 0.97, even(OVEN, [0.5, 0.4, 0.1]), "raw 400", length=60),
    **worlds("oven", oven, 0.97, even(OVEN, [0.3, 0.4, 0.3]), "raw near: raw 300", length=60),
    **worlds("oven ends", partial(oven, end=0.03), 0.97, even(OVEN, [0.5, 0.4, 0.1]), "raw 400",
             length=1000),
    **worlds("oven steep", partial(oven, steep=0.01), 0.97, even(OVEN, [0.45, 0.4, 0.15]),
             ": raw 400", length=60),
    **worlds("training", training, 0.97, even(TRAIN, [0.5, 0.35, 0.15]), "raw 300", length=60),
    **worlds("training steep", partial(training, steep=0.02), 0.97, even(TRAIN, [0.5, 0.35, 0.15]),
             ": raw 400", length=60),
    **worlds("chests", chests, 0.97, even([0.6, 0.35, 0.05], [0.5, 0.2, 0.3]), "onehot 200",
             "raw 300", length=60),
    **worlds("readers", readers, 0.99, even(READERS, [0.3, 0.4, 0.3]), "few: raw 50"),
    **worlds("fishing", fishing, 0.98, even([0.4, 0.2, 0.4], [0.45, 0.4, 0.15]), "onehot 400",
             "raw 1500", length=200),
}  # fmt: skip
