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
from benchmarks.worlds.finite import best_values, mixed, powered, shifted, soft, swapped
from benchmarks.worlds.world import Dynamics, Floats, World
from numpy.random import Generator

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
