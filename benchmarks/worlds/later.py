"""Worlds set aside before the rule of trust was changed for lasting misses and unseen outcomes.

Half of them have features that miss something lasting, or outcomes that a log shows seldom or
never; the others are ordinary, so that the price of caution is seen. They grade the rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from benchmarks.worlds import later_dynamics as worlds
from benchmarks.worlds.policies import mixed, powered, shifted, soft
from benchmarks.worlds.queues import closing
from benchmarks.worlds.world import Dynamics, Floats, World


def world(
    d: Dynamics, policies: tuple[Floats, Floats], discount: float, features: str, episodes: int
) -> World:
    return World(d, *policies, discount, features, episodes, length=200)


def softer(d: Dynamics, discount: float, sharp: tuple[float, float], explore: float) -> World:
    """Behaviour and target as softmax of Q*; one-hot features and 300 episodes, to be replaced."""
    mu, pi = soft(d, discount, sharp[0], explore), soft(d, discount, sharp[1], explore / 2)
    return world(d, (mu, pi), discount, "onehot", 300)


def courier(features: str, episodes: int, sharp: float = 4.0) -> World:
    found = softer(worlds.courier(), 0.96, (3.0, sharp), 0.3)
    return replace(found, features=features, episodes=episodes, length=120)


def warehouse(features: str, episodes: int) -> World:
    found = softer(worlds.warehouse(), 0.98, (1.0, 1.5), 0.3)
    return replace(found, features=features, episodes=episodes)


def guests(shown: int, episodes: int) -> World:
    found = hidden(softer(worlds.guests(), 0.99, (0.5, 1.0), 0.4), shown)
    return replace(found, episodes=episodes)


def tutor(shown: int, features: str, episodes: int) -> World:
    found = hidden(softer(worlds.tutor(), 0.99, (0.5, 1.2), 0.4), shown)
    return replace(found, features=features, episodes=episodes)


def season(shown: int, features: str, episodes: int) -> World:
    found = hidden(softer(closing(worlds.field(), 0.02), 0.99, (0.8, 1.5), 0.3), shown)
    return replace(found, features=features, episodes=episodes)


def season_endless(shown: int, features: str, rows: int) -> World:
    d = worlds.field()
    mu, pi = soft(d, 0.95, 0.8, 0.3), soft(d, 0.95, 1.5, 0.2)
    return hidden(World(d, mu, pi, 0.95, features, rows, endless=True), shown)


def pump(features: str, episodes: int, seldom: float = 0.05) -> World:
    d = worlds.pump()
    mu = np.tile([0.45, 0.55 - seldom, seldom], (len(d.P), 1))
    pi = np.tile([0.2, 0.5, 0.3], (len(d.P), 1))
    return world(d, (mu, pi), 0.97, features, episodes)


def trials(features: str, episodes: int, share: float = 0.4) -> World:
    d = worlds.trials()
    mu = np.tile([0.4, 0.3, 0.2, 0.06, 0.04], (len(d.P), 1))
    new = np.tile([0.1, 0.1, 0.2, 0.2, 0.4], (len(d.P), 1))
    return world(d, (mu, mixed(mu, new, share)), 0.9, features, episodes)


def treasure(features: str, episodes: int) -> World:
    d = worlds.treasure()
    mu, pi = np.tile([0.6, 0.15, 0.25], (len(d.P), 1)), np.tile([0.6, 0.3, 0.1], (len(d.P), 1))
    return world(d, (mu, pi), 0.98, features, episodes)


def lift(features: str, episodes: int) -> World:
    found = softer(worlds.lift(), 0.97, (1.0, 2.0), 0.3)
    return replace(found, features=features, episodes=episodes)


def fishery(features: str, episodes: int) -> World:
    found = softer(worlds.fishery(), 0.95, (0.5, 1.0), 0.3)
    return replace(found, features=features, episodes=episodes, length=100)


def ladders(features: str, episodes: int) -> World:
    found = softer(worlds.ladders(), 1.0, (0.3, 1.5), 0.2)
    return replace(found, features=features, episodes=episodes)


def parking(features: str, episodes: int) -> World:
    found = softer(worlds.parking(), 1.0, (0.7, 2.0), 0.2)
    return replace(found, features=features, episodes=episodes)


def heating(features: str, rows: int) -> World:
    d = worlds.heating()
    mu, pi = soft(d, 0.95, 0.5, 0.3), soft(d, 0.95, 1.2, 0.2)
    return World(d, mu, pi, 0.95, features, rows, endless=True)


def hidden(world: World, shown: int) -> World:
    """Only the first numbers of each observation are seen."""
    d = world.dynamics
    return replace(world, dynamics=d._replace(obs=d.obs[:, :shown]))


LATER: dict[str, Callable[[], World]] = {
    "courier onehot": lambda: courier("onehot", 300),
    "courier raw": lambda: courier("raw", 500),
    "courier raw near": lambda: courier("raw", 300, 3.3),
    "courier poly:2": lambda: courier("poly:2", 1000, 6.0),
    "warehouse raw": lambda: warehouse("raw", 300),
    "warehouse poly:2": lambda: warehouse("poly:2", 1000),
    "guests hidden": lambda: guests(1, 500),
    "guests shown": lambda: guests(2, 300),
    "tutor hidden": lambda: tutor(1, "onehot", 500),
    "tutor raw": lambda: tutor(2, "raw", 300),
    "season hidden": lambda: season(1, "onehot", 300),
    "season raw": lambda: season(2, "raw", 200),
    "pump onehot": lambda: pump("onehot", 500),
    "pump raw": lambda: pump("raw", 1500, 0.1),
    "pump few": lambda: pump("raw", 100, 0.1),
    "trials raw": lambda: trials("raw", 400),
    "trials onehot": lambda: trials("onehot", 1500),
    "trials few": lambda: trials("raw", 150, 0.2),
    "treasure onehot": lambda: treasure("onehot", 400),
    "treasure raw": lambda: treasure("raw", 1500),
    "lift onehot": lambda: lift("onehot", 200),
    "lift raw": lambda: lift("raw", 400),
    "fishery onehot": lambda: fishery("onehot", 150),
    "fishery raw": lambda: fishery("raw", 300),
    "ladders onehot": lambda: ladders("onehot", 200),
    "ladders raw": lambda: ladders("raw", 100),
    "parking onehot": lambda: parking("onehot", 300),
    "parking raw": lambda: parking("raw", 150),
    "heating endless onehot": lambda: heating("onehot", 5_000),
    "heating endless raw": lambda: heating("raw", 10_000),
    "season endless hidden": lambda: season_endless(1, "onehot", 20_000),
    "lift sharper": lambda: replace(
        lift("onehot", 300), logged=powered(lift("onehot", 300).mu, 1.5)
    ),
    "parking noisy": lambda: replace(
        parking("onehot", 500), logged=shifted(parking("onehot", 500).mu, 34, 0.4)
    ),
}
