"""Worlds set aside before the skewness of units entered the rule of trust; they grade it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from benchmarks.worlds import fresh_dynamics as worlds
from benchmarks.worlds.policies import best_values, mixed, powered, shifted, soft, swapped
from benchmarks.worlds.queues import closing
from benchmarks.worlds.world import Dynamics, Floats, World


def greedy(d: Dynamics, discount: float, explore: float = 0.0) -> Floats:
    """The best action, mixed with `explore` of the uniform policy."""
    q = best_values(d, discount)
    best = np.eye(q.shape[1])[q.argmax(axis=1)]
    return mixed(best, np.full(q.shape, 1.0 / q.shape[1]), explore)


def softer(d: Dynamics, discount: float, sharp: tuple[float, float], explore: float) -> World:
    """Behaviour and target as softmax of Q*; one-hot features and 300 episodes, to be replaced."""
    mu, pi = soft(d, discount, sharp[0], explore), soft(d, discount, sharp[1], explore / 2)
    return World(d, mu, pi, discount, "onehot", 300)


def cliff() -> World:
    return replace(softer(worlds.icy_cliff(), 0.95, (3.0, 5.0), 0.3), length=100)


def taxi() -> World:
    return replace(softer(worlds.rainy_taxi(), 0.97, (2.5, 3.0), 0.2), length=150)


def lake() -> World:
    return softer(worlds.lake(), 0.98, (1.0, 2.0), 0.2)


def cards() -> World:
    d = worlds.hard_blackjack()
    return World(d, greedy(d, 1.0, 0.4), greedy(d, 1.0), 1.0, "onehot", 500)


def gambler() -> World:
    d = worlds.gambler()
    mu = np.tile([0.4, 0.3, 0.3], (len(d.P), 1))
    return World(d, mu, mixed(mu, np.tile([0.0, 0.1, 0.9], (len(d.P), 1)), 0.5), 1.0, "raw", 300)


def lottery() -> World:
    d = worlds.lottery()
    mu, pi = np.tile([0.7, 0.3], (len(d.P), 1)), np.tile([0.5, 0.5], (len(d.P), 1))
    return World(d, mu, pi, 0.95, "raw", 500)


def swamp() -> World:
    return softer(worlds.swamp(), 0.99, (2.0, 3.0), 0.3)


def bursts() -> World:
    return softer(closing(worlds.bursts(), 0.03), 0.99, (0.4, 1.0), 0.3)


def bursts_endless() -> World:
    d = worlds.bursts()
    mu, pi = soft(d, 0.95, 0.4, 0.3), soft(d, 0.95, 1.0, 0.2)
    return World(d, mu, pi, 0.95, "onehot", 10_000, endless=True)


def prizes() -> World:
    d = worlds.prizes()
    mu = np.full((len(d.P), 10), 0.1)
    return World(d, mu, mixed(mu, np.eye(10)[[9] * len(d.P)], 0.3), 0.9, "raw", 300)


def news() -> World:
    d = worlds.news()
    return World(d, greedy(d, 0.9, 0.6), greedy(d, 0.9), 0.9, "poly:2", 500)


def perishable() -> World:
    return softer(worlds.perishable(), 1.0, (0.5, 1.5), 0.3)


def turbine() -> World:
    return replace(softer(worlds.turbine(), 0.99, (0.7, 1.2), 0.3), length=200)


def valley() -> World:
    return replace(softer(worlds.valley(), 0.98, (1.5, 2.5), 0.3), length=150)


def ward() -> World:
    return softer(worlds.ward(), 1.0, (0.7, 1.5), 0.3)


def subscribers() -> World:
    return softer(worlds.subscribers(), 0.98, (0.3, 0.7), 0.4)


def changed(world: World, features: str, episodes: int) -> World:
    return replace(world, features=features, episodes=episodes)


def hidden(world: World, shown: int) -> World:
    """Only the first numbers of each observation are seen."""
    d = world.dynamics
    return replace(world, dynamics=d._replace(obs=d.obs[:, :shown]))


def stated(world: World, how: Callable[[Floats], Floats]) -> World:
    """The log states other probabilities."""
    return replace(world, logged=how(world.mu))


FRESH: dict[str, Callable[[], World]] = {
    "icy cliff onehot": lambda: changed(cliff(), "onehot", 200),
    "icy cliff poly:2": lambda: changed(cliff(), "poly:2", 300),
    "rainy taxi onehot": lambda: changed(taxi(), "onehot", 200),
    "rainy taxi raw": lambda: changed(taxi(), "raw", 500),
    "lake6 onehot": lambda: changed(lake(), "onehot", 300),
    "lake6 rbf:20": lambda: changed(lake(), "rbf:20", 500),
    "lake6 few": lambda: changed(lake(), "poly:1", 50),
    "cards onehot": cards,
    "cards raw few": lambda: changed(cards(), "raw", 100),
    "gambler raw": gambler,
    "gambler onehot few": lambda: changed(gambler(), "onehot", 50),
    "lottery raw": lottery,
    "swamp onehot": swamp,
    "swamp poly:2": lambda: changed(swamp(), "poly:2", 500),
    "swamp raw few": lambda: changed(swamp(), "raw", 80),
    "bursts onehot": bursts,
    "bursts raw": lambda: changed(bursts(), "raw", 300),
    "prizes": prizes,
    "prizes few": lambda: changed(prizes(), "raw", 100),
    "news poly:2": news,
    "news raw few": lambda: changed(news(), "raw", 200),
    "perishable onehot": lambda: changed(perishable(), "onehot", 150),
    "perishable raw": lambda: changed(perishable(), "raw", 400),
    "turbine onehot": turbine,
    "turbine poly:2": lambda: changed(turbine(), "poly:2", 500),
    "valley rbf:40": lambda: changed(valley(), "rbf:40", 200),
    "valley raw": lambda: changed(valley(), "raw", 400),
    "ward onehot": lambda: changed(ward(), "onehot", 400),
    "ward hidden": lambda: hidden(changed(ward(), "onehot", 400), 1),
    "subscribers onehot": lambda: changed(subscribers(), "onehot", 500),
    "subscribers raw": lambda: changed(subscribers(), "raw", 300),
    "subscribers few": lambda: changed(subscribers(), "raw", 50),
    "bursts endless onehot": bursts_endless,
    "bursts endless raw": lambda: changed(bursts_endless(), "raw", 20_000),
    "news noisy": lambda: stated(news(), lambda mu: shifted(mu, 24, 0.4)),
    "ward flatter": lambda: stated(ward(), lambda mu: powered(mu, 0.5)),
    "perishable swapped": lambda: stated(perishable(), lambda mu: swapped(mu, 0, 2)),
    "lake6 estimated": lambda: replace(lake(), estimated=True),
    "turbine estimated": lambda: replace(turbine(), estimated=True),
}
