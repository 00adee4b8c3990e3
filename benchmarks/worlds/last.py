"""Worlds set aside before stated ranges of rewards entered the rule of trust; they grade it.

About half of them have outcomes that a log shows seldom or never; the others are ordinary, so that
the price of caution is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from benchmarks.worlds import last_dynamics as worlds
from benchmarks.worlds.policies import mixed, shifted, soft
from benchmarks.worlds.world import Dynamics, World


def even(d: Dynamics, mu: list[float], pi: list[float], discount: float) -> World:
    """The same probabilities in every state; raw features and 300 episodes, to be replaced."""
    return World(
        d, np.tile(mu, (len(d.P), 1)), np.tile(pi, (len(d.P), 1)), discount, "raw", 300, length=300
    )


def softer(d: Dynamics, discount: float, sharp: tuple[float, float], explore: float) -> World:
    """Behaviour and target as softmax of Q*; one-hot features and 300 episodes, to be replaced."""
    mu, pi = soft(d, discount, sharp[0], explore), soft(d, discount, sharp[1], explore / 2)
    return World(d, mu, pi, discount, "onehot", 300, length=300)


def endless(d: Dynamics, discount: float, sharp: tuple[float, float], explore: float) -> World:
    return replace(softer(d, discount, sharp, explore), endless=True)


def warranty() -> World:
    return even(worlds.warranty(), [0.5, 0.4, 0.1], [0.3, 0.4, 0.3], 0.95)


def booster() -> World:
    return even(worlds.booster(), [0.4, 0.4, 0.2], [0.2, 0.4, 0.4], 1.0)


def seedlings() -> World:
    return even(worlds.seedlings(), [0.5, 0.3, 0.2], [0.2, 0.4, 0.4], 0.98)


def payments() -> World:
    return even(worlds.payments(), [0.25, 0.6, 0.15], [0.5, 0.4, 0.1], 0.98)


def gate() -> World:
    return even(worlds.gate(), [0.2, 0.25, 0.2, 0.25, 0.1], [0.15, 0.3, 0.15, 0.25, 0.15], 0.98)


def sailing() -> World:
    found = even(worlds.sailing(), [0.4, 0.45, 0.15], [0.2, 0.5, 0.3], 0.95)
    return replace(found, endless=True)


def bicycles() -> World:
    return softer(worlds.bicycles(), 0.98, (0.5, 1.5), 0.3)


def dialog() -> World:
    return softer(worlds.dialog(), 0.97, (1.0, 2.0), 0.3)


def tennis() -> World:
    return even(worlds.tennis(), [0.4, 0.3, 0.3], [0.15, 0.7, 0.15], 1.0)


def pig() -> World:
    d = worlds.pig()
    found = even(d, [0.6, 0.4], [0.6, 0.4], 1.0)
    return replace(found, pi=mixed(found.mu, soft(d, 1.0, 5.0), 0.4))


def vault() -> World:
    return softer(worlds.vault(), 0.97, (1.5, 2.5), 0.3)


def hidden(world: World, shown: int) -> World:
    """Only the first numbers of each observation are seen."""
    d = world.dynamics
    return replace(world, dynamics=d._replace(obs=d.obs[:, :shown]))


def made(world: World, features: str, episodes: int) -> World:
    return replace(world, features=features, episodes=episodes)


LAST: dict[str, Callable[[], World]] = {
    "warranty onehot": lambda: made(warranty(), "onehot", 250),
    "warranty raw": lambda: made(warranty(), "raw", 1000),
    "booster onehot": lambda: made(booster(), "onehot", 300),
    "booster raw": lambda: made(booster(), "raw", 1000),
    "seedlings few": lambda: made(seedlings(), "raw", 60),
    "seedlings onehot": lambda: made(seedlings(), "onehot", 300),
    "payments raw": lambda: made(payments(), "raw", 150),
    "payments onehot": lambda: made(payments(), "onehot", 600),
    "gate poly:2": lambda: made(gate(), "poly:2", 200),
    "gate tiles": lambda: made(gate(), "tiles:4x8", 600),
    "sailing endless": lambda: made(sailing(), "onehot", 4_000),
    "sailing endless raw": lambda: made(sailing(), "raw", 12_000),
    "bicycles onehot": lambda: made(bicycles(), "onehot", 150),
    "bicycles raw": lambda: made(bicycles(), "raw", 400),
    "dialog onehot": lambda: made(dialog(), "onehot", 300),
    "dialog raw": lambda: made(dialog(), "raw", 150),
    "tennis onehot": lambda: made(tennis(), "onehot", 500),
    "tennis raw": lambda: made(tennis(), "raw", 1500),
    "pig onehot": lambda: made(pig(), "onehot", 400),
    "pig raw": lambda: made(pig(), "raw", 150),
    "vault onehot": lambda: made(vault(), "onehot", 200),
    "vault hidden": lambda: hidden(made(vault(), "onehot", 400), 2),
    "battery endless": lambda: made(
        endless(worlds.battery(), 0.95, (0.5, 1.2), 0.3), "onehot", 8_000
    ),
    "crossing endless poly:2": lambda: made(
        endless(worlds.crossing(), 0.95, (0.5, 1.5), 0.3), "poly:2", 10_000
    ),
    "dialog noisy": lambda: replace(
        made(dialog(), "onehot", 500), logged=shifted(dialog().mu, 37, 0.4)
    ),
}
