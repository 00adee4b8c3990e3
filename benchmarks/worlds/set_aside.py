"""Worlds that were set aside before the rule of trust was graded, and that grade it.

Their dynamics are others than those of `development`: no world here is one of those with another
seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from benchmarks.worlds import bandits, chains, clinical, control, grids, queues, toy_text
from benchmarks.worlds.policies import mixed, powered, shifted, soft, swapped
from benchmarks.worlds.world import Floats, World


def lake(features: str, sharp: float, episodes: int) -> World:
    d = toy_text.frozen_lake(8)
    mu, pi = soft(d, 0.99, 1.0, 0.2), soft(d, 0.99, sharp, 0.1)
    return World(d, mu, pi, 0.99, features, episodes, length=200)


def taxi(features: str, sharp: float, episodes: int) -> World:
    d = toy_text.taxi()
    mu, pi = soft(d, 0.95, 2.0, 0.2), soft(d, 0.95, 2.0 * sharp, 0.15)
    return World(d, mu, pi, 0.95, features, episodes, length=100)


def blackjack(features: str, sharp: float, episodes: int) -> World:
    d = toy_text.blackjack()
    mu, pi = soft(d, 0.99, 0.5, 0.2), soft(d, 0.99, sharp)
    return World(d, mu, pi, 0.99, features, episodes)


def pole(features: str, sharp: float, episodes: int) -> World:
    d = control.pole()
    mu, pi = soft(d, 0.97, 1.5, 0.1), soft(d, 0.97, 1.5 * sharp, 0.05)
    return World(d, mu, pi, 0.97, features, episodes, length=200)


def pendulum(features: str, sharp: float, episodes: int) -> World:
    d = control.pendulum()
    mu, pi = soft(d, 0.95, 2.0, 0.2), soft(d, 0.95, 2.0 * sharp, 0.1)
    return World(d, mu, pi, 0.95, features, episodes, length=100)


def chemotherapy(features: str, sharp: float, episodes: int) -> World:
    d = clinical.chemotherapy()
    mu, pi = soft(d, 0.98, 1.0, 0.1), soft(d, 0.98, sharp, 0.1)
    return World(d, mu, pi, 0.98, features, episodes, length=80)


def shop(features: str, sharp: float, episodes: int) -> World:
    d = queues.closing(queues.inventory(), 0.06)
    mu, pi = soft(d, 0.97, 0.7, 0.2), soft(d, 0.97, 0.7 * sharp, 0.1)
    return World(d, mu, pi, 0.97, features, episodes)


def shop_endless(features: str, sharp: float, rows: int) -> World:
    d = queues.inventory()
    mu, pi = soft(d, 0.95, 0.7, 0.2), soft(d, 0.95, 0.7 * sharp, 0.1)
    return World(d, mu, pi, 0.95, features, rows, endless=True)


def machine(features: str, sharp: float, rows: int) -> World:
    d = queues.machine()
    mu, pi = soft(d, 0.97, 0.8, 0.2), soft(d, 0.97, 0.8 * sharp, 0.1)
    return World(d, mu, pi, 0.97, features, rows, endless=True)


def polling(features: str, sharp: float, rows: int) -> World:
    d = queues.two_queues()
    mu, pi = soft(d, 0.95, 0.5, 0.3), soft(d, 0.95, 0.5 + sharp, 0.2)
    return World(d, mu, pi, 0.95, features, rows, endless=True)


def polling_short(features: str, sharp: float, episodes: int) -> World:
    d = queues.closing(queues.two_queues(), 0.04)
    mu, pi = soft(d, 0.98, 0.5, 0.3), soft(d, 0.98, 0.5 + sharp, 0.2)
    return World(d, mu, pi, 0.98, features, episodes)


def contextual(features: str, sharp: float, episodes: int) -> World:
    d = bandits.contextual()
    mu, pi = soft(d, 0.9, 0.5, 0.1), soft(d, 0.9, sharp)
    return World(d, mu, pi, 0.9, features, episodes)


def session(features: str, sharp: float, episodes: int) -> World:
    d = bandits.session()
    mu, pi = soft(d, 0.95, 0.5, 0.3), soft(d, 0.95, sharp, 0.05)
    return World(d, mu, pi, 0.95, features, episodes)


def river(features: str, share: float, episodes: int) -> World:
    d = chains.river()
    mu = np.tile([0.5, 0.5], (7, 1))
    up = np.tile([0.05, 0.95], (7, 1))
    return World(d, mu, mixed(mu, up, share), 0.97, features, episodes, length=120)


def tree(features: str, sharp: float, episodes: int) -> World:
    d = chains.tree(7)
    mu, pi = soft(d, 0.99, 0.5, 0.5), soft(d, 0.99, sharp, 0.2)
    return World(d, mu, pi, 0.99, features, episodes)


def stopping(features: str, share: float, episodes: int) -> World:
    d = chains.stopping()
    mu = np.tile([0.85, 0.15], (23, 1))
    return World(d, mu, mixed(mu, soft(d, 0.98, 3.0), share), 0.98, features, episodes)


def windy(features: str, sharp: float, episodes: int) -> World:
    d = grids.windy()
    mu, pi = soft(d, 0.97, 4.0, 0.3), soft(d, 0.97, 4.0 * sharp, 0.2)
    return World(d, mu, pi, 0.97, features, episodes, length=150)


def hidden(world: World, shown: int) -> World:
    """Only the first numbers of each observation are seen."""
    d = world.dynamics
    return replace(world, dynamics=d._replace(obs=d.obs[:, :shown]))


def wrong(world: World, how: str) -> World:
    mu = world.mu
    A = mu.shape[1]
    ways: dict[str, Callable[[], Floats]] = {
        "sharper": lambda: powered(mu, 1.4),
        "flatter": lambda: powered(mu, 0.6),
        "even": lambda: np.full(mu.shape, 1.0 / A),
        "swapped": lambda: swapped(mu, A - 2, A - 1),
        "noisy": lambda: shifted(mu, 14, 0.4),
        "slightly": lambda: shifted(mu, 15, 0.15),
        "scaled": lambda: mu / np.linspace(1.4, 0.6, A),  # the mean ratio stays near 1
    }
    return replace(world, logged=ways[how]())


def estimated(world: World) -> World:
    return replace(world, estimated=True)


SET_ASIDE: dict[str, Callable[[], World]] = {
    "lake8 onehot": lambda: lake("onehot", 1.5, 500),
    "lake8 poly:3": lambda: lake("poly:3", 1.5, 1000),
    "taxi onehot": lambda: taxi("onehot", 1.2, 300),
    "taxi raw": lambda: taxi("raw", 1.2, 500),
    "blackjack onehot": lambda: blackjack("onehot", 2.0, 2000),
    "blackjack raw": lambda: blackjack("raw", 4.0, 1000),
    "pole rbf:60": lambda: pole("rbf:60", 1.5, 200),
    "pole raw": lambda: pole("raw", 1.5, 400),
    "pole far": lambda: pole("poly:2", 8.0, 300),
    "pendulum rbf:40": lambda: pendulum("rbf:40", 1.5, 300),
    "pendulum poly:2": lambda: pendulum("poly:2", 1.5, 200),
    "pendulum raw far": lambda: pendulum("raw", 4.0, 500),
    "chemotherapy onehot": lambda: chemotherapy("onehot", 2.0, 500),
    "chemotherapy raw": lambda: chemotherapy("raw", 2.0, 300),
    "chemotherapy far": lambda: chemotherapy("poly:2", 12.0, 500),
    "shop onehot": lambda: shop("onehot", 2.0, 300),
    "shop raw far": lambda: shop("raw", 5.0, 500),
    "contextual onehot": lambda: contextual("onehot", 2.0, 500),
    "contextual raw": lambda: contextual("raw", 2.0, 200),
    "contextual few": lambda: contextual("onehot", 1.0, 60),
    "session onehot": lambda: session("onehot", 1.0, 300),
    "session raw": lambda: session("raw", 2.0, 2000),
    "river onehot": lambda: river("onehot", 0.3, 300),
    "river raw far": lambda: river("raw", 1.0, 500),
    "tree onehot many": lambda: tree("onehot", 1.0, 200),
    "tree raw": lambda: tree("raw", 2.0, 500),
    "stopping rbf:10": lambda: stopping("rbf:10", 0.5, 200),
    "stopping raw": lambda: stopping("raw", 0.5, 500),
    "windy onehot": lambda: windy("onehot", 1.3, 200),
    "windy poly:2": lambda: windy("poly:2", 1.3, 400),
    "polling short poly:2": lambda: polling_short("poly:2", 0.5, 300),
    "polling short raw": lambda: polling_short("raw", 0.5, 100),
    "shop cut": lambda: replace(shop("onehot", 2.0, 300), length=12),
    "pole cut": lambda: replace(pole("poly:2", 1.5, 300), length=15),
    "polling cut": lambda: replace(polling_short("raw", 0.5, 300), length=15),
    "chemotherapy hidden": lambda: hidden(chemotherapy("onehot", 2.0, 500), 1),
    "pendulum hidden": lambda: hidden(pendulum("onehot", 1.5, 500), 1),
    "session hidden": lambda: hidden(session("onehot", 1.0, 1000), 1),
    "shop endless onehot": lambda: shop_endless("onehot", 2.0, 5_000),
    "shop endless raw": lambda: shop_endless("raw", 2.0, 10_000),
    "machine endless onehot": lambda: machine("onehot", 2.0, 5_000),
    "machine endless raw": lambda: machine("raw", 2.0, 20_000),
    "polling endless onehot": lambda: polling("onehot", 1.5, 20_000),
    "polling endless poly:2": lambda: polling("poly:2", 0.5, 10_000),
    "contextual scaled": lambda: wrong(contextual("onehot", 1.0, 500), "scaled"),
    "shop sharper": lambda: wrong(shop("onehot", 2.0, 300), "sharper"),
    "river slightly": lambda: wrong(river("onehot", 0.3, 300), "slightly"),
    "windy even": lambda: wrong(windy("onehot", 1.3, 200), "even"),
    "pendulum noisy": lambda: wrong(pendulum("rbf:40", 1.5, 300), "noisy"),
    "chemotherapy flatter": lambda: wrong(chemotherapy("onehot", 2.0, 500), "flatter"),
    "session swapped": lambda: wrong(session("onehot", 1.0, 300), "swapped"),
    "stopping slightly": lambda: wrong(stopping("rbf:10", 0.5, 200), "slightly"),
    "contextual estimated": lambda: estimated(contextual("onehot", 2.0, 500)),
    "shop estimated": lambda: estimated(shop("onehot", 2.0, 300)),
    "pendulum estimated": lambda: estimated(pendulum("rbf:40", 1.5, 300)),
    "river estimated": lambda: estimated(river("onehot", 0.3, 300)),
    "session estimated": lambda: estimated(session("onehot", 1.0, 300)),
}
