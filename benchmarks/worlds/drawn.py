"""Worlds that are drawn, not written: every log has another world, of a family and with features.

Of a family the dynamics, the discount, both policies, the length of the log, and whether the stated
probabilities are wrong (one of ten) are drawn anew for each seed. Features are of five kinds:

    exact      one-hot of the state
    poor       the family's own numbers of a state, as they are or with their squares
    projected  normal numbers, fewer than there are states
    grouped    one-hot of groups of states
    many       more than needed: half as many normal numbers again as states, tiles, monomials

Half of the families are for development, half were set aside before any rule was graded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from benchmarks.worlds.world import (
    Dynamics,
    Floats,
    World,
    best_values,
    closing,
    mixed,
    powered,
    shifted,
    soft,
    swapped,
)
from numpy.random import Generator
from scipy.stats import poisson

FEATURES = ("exact", "poor", "projected", "grouped", "many")
DISCOUNTS = (0.9, 0.95, 0.99, 1.0)  # the last one where episodes end
LONGEST, ROWS = 150.0, 12_000.0  # mean steps of an episode, and of a log
EPISODES, ENDLESS = (50, 2000), (2000, 12_000)
WRONG = 0.1  # of worlds: stated probabilities are wrong
Family = Callable[[Generator], Dynamics]
Worlds = dict[str, Callable[[int], World]]


def families(found: dict[tuple[str, int], Family]) -> Worlds:
    """By name of family and features: a world of a seed."""
    return {
        f"{name} {kind}": partial(draw, dynamics, number, kind)
        for ((name, number), dynamics), kind in product(found.items(), FEATURES)
    }


def draw(dynamics: Family, number: int, kind: str, seed: int) -> World:
    """The first drawn world whose episodes end soon enough."""
    rng = np.random.default_rng([seed, number, FEATURES.index(kind)])
    while True:
        d = dynamics(rng)
        endless = not d.ends.any()
        discount = float(rng.choice(DISCOUNTS[:-1] if endless else DISCOUNTS))
        mu, pi = policies(rng, d, min(discount, 0.99))
        mean = 0.0 if endless else max(steps(d, mu), steps(d, pi) / 2.0)
        if not mean <= LONGEST:
            continue
        obs, features = shown(rng, d, kind)
        world = World(d._replace(obs=obs), mu, pi, discount, features, 0, endless=endless)
        return _logged(rng, world, mean)


def _logged(rng: Generator, world: World, mean: float) -> World:
    """With the size of the log, cuts in one of three, and wrong probabilities in some."""
    low, high = ENDLESS if world.endless else EPISODES
    size = int(np.exp(rng.uniform(np.log(low), np.log(high))))
    size = size if world.endless else max(min(size, int(ROWS / mean)), low)
    cut = not world.endless and rng.random() < 1 / 3
    length = int(np.ceil(2.0 * mean)) + 1 if cut else 10_000
    mu, logged = world.mu, None
    if rng.random() < WRONG:
        how = int(rng.integers(3))
        if how == 0:
            logged = shifted(mu, int(rng.integers(1 << 30)), rng.uniform(0.2, 1.0))
        else:
            logged = powered(mu, rng.uniform(1.3, 2.0)) if how == 1 else swapped(mu, 0, 1)
    return World(
        world.dynamics, mu, world.pi, world.discount, world.features, size, length, world.endless,
        logged,
    )  # fmt: skip


def steps(d: Dynamics, policy: Floats) -> float:
    """The mean length of an episode; infinite where some never end."""
    P = np.einsum("sa,sat->st", policy, d.P) * ~d.ends
    try:
        found = float(d.start @ np.linalg.solve(np.eye(len(P)) - P, np.ones(len(P))))
    except np.linalg.LinAlgError:
        return np.inf
    return found if found >= 1.0 else np.inf


def policies(rng: Generator, d: Dynamics, discount: float) -> tuple[Floats, Floats]:
    """Behaviour and target: softmax of Q*, nearly greedy, at random, or a step from mu to Q*."""
    S, A = d.P.shape[:2]
    how = int(rng.integers(5))
    if how == 0:
        sharp = rng.uniform(0.3, 1.5)
        explore = rng.uniform(0.1, 0.5)
        pi = soft(d, discount, sharp * rng.uniform(1.0, 3.0), explore / 2.0)
        return soft(d, discount, sharp, explore), pi
    if how == 1:
        best = np.eye(A)[best_values(d, discount).argmax(axis=1)]
        one, other = rng.uniform(0.3, 0.7), rng.uniform(0.02, 0.3)
        even = np.full((S, A), 1.0 / A)
        return mixed(best, even, one), mixed(best, even, other)
    if how == 2:
        mu = rng.dirichlet(np.full(A, rng.uniform(1.0, 5.0)), size=S)
        return mu, mixed(mu, rng.dirichlet(np.ones(A), size=S), rng.uniform(0.2, 1.0))
    if how == 3:
        mu, pi = (np.tile(rng.dirichlet(np.full(A, 2.0)), (S, 1)) for _ in range(2))
        return mu, mixed(mu, pi, rng.uniform(0.3, 1.0))
    mu = mixed(np.full((S, A), 1.0 / A), rng.dirichlet(np.ones(A), size=S), rng.uniform(0.0, 0.8))
    return mu, mixed(mu, soft(d, discount, 5.0), rng.uniform(0.1, 0.9))


def shown(rng: Generator, d: Dynamics, kind: str) -> tuple[Floats, str]:
    """Observations and features of a kind."""
    S = len(d.P)
    index = np.arange(S, dtype=float)[:, None]
    if kind == "exact":
        return index, "onehot"
    if kind == "poor":
        return d.obs, str(rng.choice(["raw", "poly:2"]))
    if kind == "projected":
        size = int(rng.integers(2, max(S // 2, 3) + 1))
        return rng.standard_normal((S, size)), "raw"
    if kind == "grouped":
        groups = max(int(S / rng.uniform(1.5, 5.0)), 2)
        near = np.floor(np.arange(S) * groups / S)
        return (near if rng.random() < 0.5 else rng.permutation(near))[:, None], "onehot"
    how = int(rng.integers(3))
    if how == 0:
        return rng.standard_normal((S, S + S // 2)), "raw"
    tiles = "tiles:8x6" if d.obs.shape[1] < 3 else "tiles:4x4"
    return d.obs, tiles if how == 1 else "poly:5"


def _ended(P: Floats, r: Floats, first: list[int], obs: Floats, ends: int = 1) -> Dynamics:
    """The last states end an episode; it starts in one of `first`."""
    S = len(P)
    P[np.arange(S - ends, S), :, np.arange(S - ends, S)] = 1.0
    start = np.zeros(S)
    start[first] = 1.0 / len(first)
    shown = np.vstack([obs, np.full((ends, obs.shape[1]), -1.0)])
    return Dynamics(P, r, np.arange(S) >= S - ends, start, shown)


def garnet(rng: Generator, ends: bool = True) -> Dynamics:
    """Random transitions to a few states, rewards of a part of all pairs, some noise."""
    S, A, b = (int(rng.integers(*x)) for x in ((5, 50), (2, 6), (2, 6)))
    P = np.zeros((S, A, S))
    for s, a in product(range(S), range(A)):
        P[s, a, rng.choice(S, min(b, S), replace=False)] = rng.dirichlet(np.ones(min(b, S)))
    r = rng.standard_normal((S, A)) * (rng.random((S, A)) < rng.choice([0.1, 0.3, 1.0]))
    first = rng.random(S) * (rng.random(S) < 0.5) + 1e-3
    d = Dynamics(
        P, np.repeat(r[:, :, None], S, axis=2), np.zeros(S, dtype=bool), first / first.sum(),
        rng.standard_normal((S, 3)), float(rng.choice([0.0, 0.3])),
    )  # fmt: skip
    return closing(d, rng.uniform(0.02, 0.3)) if ends else d


def queue(rng: Generator, ends: bool = True) -> Dynamics:
    """Births and deaths: arrivals, a server of two to four speeds; waiting costs, service pays."""
    room, A = int(rng.integers(5, 25)), int(rng.integers(2, 5))
    come, serve = rng.uniform(0.2, 0.6), np.sort(rng.uniform(0.1, 0.9, A))
    cost = np.sort(rng.uniform(0.0, 1.0, A))
    waits, pays, lost = rng.uniform(0.02, 0.3), rng.uniform(0.0, 1.0), rng.uniform(0.0, 5.0)
    P, r = np.zeros((room + 1, A, room + 1)), np.zeros((room + 1, A, room + 1))
    for s, a in product(range(room + 1), range(A)):
        go = serve[a] if s else 0.0
        P[s, a, min(s + 1, room)] += come * (1.0 - go)
        P[s, a, max(s - 1, 0)] += go * (1.0 - come)
        P[s, a, s] += come * go + (1.0 - come) * (1.0 - go)
        r[s, a] = pays * go - waits * s - cost[a] - (lost * come if s == room else 0.0)
    start = np.zeros(room + 1)
    start[: int(rng.integers(1, room))] = 1.0
    obs = np.arange(room + 1, dtype=float)[:, None]
    d = Dynamics(P, r, np.zeros(room + 1, dtype=bool), start / start.sum(), obs)
    return closing(d, rng.uniform(0.01, 0.2)) if ends else d


def bandit(rng: Generator) -> Dynamics:
    """One step: contexts, arms; wins or not, normal rewards, or outcomes of several sizes."""
    contexts, A = int(rng.integers(1, 20)), int(rng.integers(2, 7))
    how = int(rng.integers(3))
    sizes = [np.array([0.0, 1.0]), np.zeros(1), np.array([0.0, 1.0, 4.0, 15.0])][how]
    K = len(sizes)
    S = contexts + K
    P, r = np.zeros((S, A, S)), np.zeros((S, A, S))
    for s, a in product(range(contexts), range(A)):
        P[s, a, contexts:] = rng.dirichlet(np.array([8.0, 2.0, 0.7, 0.25])[:K])
        r[s, a, contexts:] = sizes + (rng.standard_normal() if how == 1 else 0.0)
    obs = np.column_stack([np.arange(contexts), rng.standard_normal(contexts)])
    d = _ended(P, r, list(range(contexts)), obs, K)
    return d._replace(noise=1.0 if how == 1 else 0.0)


def prizes(rng: Generator) -> Dynamics:
    """Places where one can pass, try, or try hard; up to four prizes, the larger the rarer."""
    n, kinds = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    size = rng.uniform(0.5, 2.0) * rng.uniform(2.0, 8.0) ** np.arange(kinds)
    luck = rng.uniform(0.03, 0.2) / rng.uniform(2.0, 8.0) ** np.arange(kinds)
    size = size * rng.choice([1.0, -1.0], p=[0.7, 0.3])
    hard, over = rng.uniform(1.5, 3.0), rng.uniform(0.03, 0.5)
    S = n + kinds + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    cost = rng.uniform(0.0, 0.3)
    for s, (a, tries) in product(range(n), enumerate((0.0, 1.0, hard))):
        wins = np.minimum(tries * luck * rng.uniform(0.5, 1.5), 0.2)
        P[s, a, n : n + kinds] = wins
        left = 1.0 - wins.sum()
        P[s, a, -1] = over * left
        P[s, a, (s + 1) % n] += (1.0 - over) * left
        r[s, a] = -cost * tries * np.sign(size[0])
        r[s, a, n : n + kinds] = size
    first = list(range(int(rng.integers(1, n + 1))))
    return _ended(P, r, first, np.arange(n, dtype=float)[:, None], kinds + 1)


def stock(rng: Generator, ends: bool = True) -> Dynamics:
    """A shelf: order none, some or many; a drawn demand; what is missing costs."""
    room = int(rng.integers(5, 25))
    orders = np.unique(
        np.rint(np.array([0.0, rng.uniform(0.1, 0.4), rng.uniform(0.5, 1.0)]) * room)
    )
    A, mean = len(orders), rng.uniform(0.1, 0.5) * room
    price, keeps, missed = rng.uniform(0.5, 2.0), rng.uniform(0.01, 0.2), rng.uniform(0.0, 2.0)
    fixed = rng.uniform(0.0, 2.0)
    S = room + 1
    want = poisson.pmf(np.arange(4 * S), mean)
    want[-1] += 1.0 - want.sum()
    P, r = np.zeros((S, A, S)), np.zeros((S, A, S))
    for s, a in product(range(S), range(A)):
        have = min(s + int(orders[a]), room)
        total = 0.0
        for n, p in enumerate(want):
            sold = min(n, have)
            P[s, a, have - sold] += p
            total += p * (price * sold - missed * (n - sold))
        r[s, a] = total - keeps * have - fixed * (orders[a] > 0) - 0.3 * (have - s)
    start = np.ones(S)
    d = Dynamics(P, r, np.zeros(S, dtype=bool), start / S, np.arange(S, dtype=float)[:, None])
    return closing(d, rng.uniform(0.02, 0.3)) if ends else d


def session(rng: Generator) -> Dynamics:
    """A visitor who tires is shown items: clicks pay, a sale pays more and ends it."""
    kinds, tired, A = (int(rng.integers(*x)) for x in ((1, 6), (2, 7), (2, 6)))
    likes = rng.beta(1.0, 4.0, size=(kinds, A))
    tires, sale = rng.uniform(0.1, 0.9, size=A), rng.uniform(2.0, 30.0)
    sells = likes * rng.uniform(0.005, 0.1)
    leaves = rng.uniform(0.02, 0.15) + rng.uniform(0.05, 0.4) * np.arange(tired) / tired
    n = kinds * tired
    S = n + 2  # sold, gone
    P, r = np.zeros((S, A, S)), np.zeros((S, A, S))
    for k, t, a in product(range(kinds), range(tired), range(A)):
        s = k * tired + t
        P[s, a, -2] = sells[k, a]
        stays = (1.0 - sells[k, a]) * (1.0 - leaves[t])
        P[s, a, -1] = (1.0 - sells[k, a]) * leaves[t]
        P[s, a, k * tired + min(t + 1, tired - 1)] += stays * tires[a]
        P[s, a, k * tired + max(t - 1, 0)] += stays * (1.0 - tires[a])
        r[s, a], r[s, a, -2] = likes[k, a], sale
    obs = np.array(list(product(range(kinds), range(tired))), dtype=float)
    d = _ended(P, r, [k * tired for k in range(kinds)], obs, 2)
    return d._replace(noise=float(rng.choice([0.0, 0.4])))


def hazards(rng: Generator) -> Dynamics:
    """A way of several stages: careful, usual or fast; a rare loss, as large as the stage says."""
    n = int(rng.integers(2, 13))
    lost = rng.uniform(1.0, 3.0) * np.exp(rng.normal(0.0, rng.uniform(0.3, 1.5), size=n))
    chance = rng.uniform(0.003, 0.05) * np.array(
        [rng.uniform(0.0, 0.5), 1.0, rng.uniform(1.5, 4.0)]
    )
    gains = np.sort(rng.uniform(0.0, 0.5, 3))
    S = n + 2  # lost, arrived
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    goes_on = bool(rng.random() < 0.5)  # after a loss
    for s, a in product(range(n), range(3)):
        to = s + 1 if s + 1 < n else S - 1
        P[s, a, -2] = 0.0 if goes_on else chance[a]
        moves = rng.uniform(0.5, 1.0)
        P[s, a, to] += (1.0 - P[s, a, -2]) * moves
        P[s, a, s] += (1.0 - P[s, a, -2]) * (1.0 - moves)
        r[s, a] = gains[a]
        if goes_on:  # back to the first stage
            P[s, a] *= 1.0 - chance[a]
            r[s, a, 0] = (r[s, a, 0] * P[s, a, 0] - lost[s] * chance[a]) / (P[s, a, 0] + chance[a])
            P[s, a, 0] += chance[a]
        r[s, a, -2] = -lost[s]
    first = [0] if rng.random() < 0.5 else list(range(n))
    return _ended(P, r, first, np.arange(n, dtype=float)[:, None], 2)


def season(rng: Generator) -> Dynamics:
    """Endless: a season that turns, and a level that moves up and down; three actions."""
    long, n = int(rng.integers(2, 9)), int(rng.integers(3, 9))
    S = long * n
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    turn, push = rng.uniform(0.1, 0.9), rng.uniform(0.2, 0.8)
    best, scale = rng.integers(0, n, size=long), rng.uniform(0.1, 1.0)
    for t, x, a in product(range(long), range(n), range(3)):
        s = t * n + x
        for later, p in ((1, turn), (0, 1.0 - turn)):
            for move, q in ((a - 1, push), (0, (1.0 - push) / 2), (1, (1.0 - push) / 2)):
                to = (t + later) % long * n + min(max(x + move, 0), n - 1)
                P[s, a, to] += p * q
        r[s, a] = -scale * abs(x - best[t]) - 0.1 * abs(a - 1)
    obs = np.array(list(product(range(long), range(n))), dtype=float)
    return Dynamics(
        P, r, np.zeros(S, dtype=bool), np.full(S, 1.0 / S), obs, float(rng.choice([0.0, 0.5]))
    )


# the numbers are part of the seeds
DEVELOPMENT: Worlds = families({
    ("garnet", 100): garnet, ("queue", 102): queue, ("bandit", 103): bandit,
    ("prizes", 106): prizes, ("endless-garnet", 107): partial(garnet, ends=False),
    ("endless-queue", 108): partial(queue, ends=False),
})  # fmt: skip
SET_ASIDE: Worlds = families({
    ("stock", 202): stock, ("session", 203): session,
    ("hazards", 206): hazards,
    ("endless-stock", 207): partial(stock, ends=False), ("endless-season", 208): season,
})  # fmt: skip
