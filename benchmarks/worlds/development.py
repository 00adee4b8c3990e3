"""Worlds on which the rule of trust was made. Nothing here is proof of anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from benchmarks.worlds import (
    bandits,
    beyond,
    chains,
    clinical,
    control,
    grids,
    jackpots,
    lasting,
    queues,
    rare,
    toy_text,
)
from benchmarks.worlds.cuts import mass, shop, turning
from benchmarks.worlds.policies import drawn, mixed, powered, shifted, soft, swapped
from benchmarks.worlds.world import Floats, World


def garnet(features: str, far: float, episodes: int) -> World:
    d = chains.drawn(15, 3, 4, 0.08, 1)
    mu = drawn((len(d.P), 3), 3.0, 2)
    return World(d, mu, powered(mu, 1.0 + far), 0.95, features, episodes)


def garnet_long(features: str, far: float, episodes: int) -> World:
    d = chains.drawn(30, 4, 3, 0.01, 3)
    mu = soft(d, 0.98, 1.0, 0.2)
    return World(d, mu, soft(d, 0.98, 1.0 + far, 0.1), 0.98, features, episodes, length=100)


def lake(features: str, sharp: float, episodes: int) -> World:
    d = toy_text.frozen_lake(4)
    return World(d, soft(d, 0.95, 1.0), soft(d, 0.95, sharp), 0.95, features, episodes)


def cliff(features: str, sharp: float, episodes: int) -> World:
    d = toy_text.cliff()
    mu, pi = soft(d, 0.95, 30.0, 0.3), soft(d, 0.95, 30.0 * sharp, 0.1)
    return World(d, mu, pi, 0.95, features, episodes, length=100)


def walk(features: str, share: float, episodes: int) -> World:
    d = chains.walk(19)
    even = np.full((21, 2), 0.5)
    right = np.tile([0.1, 0.9], (21, 1))
    return World(d, even, mixed(even, right, share), 0.99, features, episodes)


def bandit(share: float, episodes: int) -> World:
    d = bandits.bandit(5)
    mu = np.tile([0.4, 0.25, 0.2, 0.1, 0.05], (3, 1))
    return World(d, mu, mixed(mu, mu[:, ::-1], share), 0.9, "raw", episodes)


def car(features: str, sharp: float, episodes: int) -> World:
    d = control.car()
    mu, pi = soft(d, 0.97, 2.0, 0.2), soft(d, 0.97, 2.0 * sharp, 0.1)
    return World(d, mu, pi, 0.97, features, episodes, length=150)


def sepsis(features: str, sharp: float, episodes: int) -> World:
    d = clinical.sepsis()
    mu, pi = soft(d, 0.99, 1.0, 0.1), soft(d, 0.99, sharp, 0.05)
    return World(d, mu, pi, 0.99, features, episodes, length=60)


def hidden(world: World, shown: int) -> World:
    """Only the first numbers of each observation are seen."""
    d = world.dynamics
    return replace(world, dynamics=d._replace(obs=d.obs[:, :shown]))


def rooms(features: str, sharp: float, episodes: int) -> World:
    d = grids.rooms()
    mu, pi = soft(d, 0.97, 4.0, 0.3), soft(d, 0.97, 4.0 * sharp, 0.2)
    return World(d, mu, pi, 0.97, features, episodes, length=200)


def short_queue(features: str, sharp: float, episodes: int) -> World:
    d = queues.closing(queues.queue(), 0.05)
    mu, pi = soft(d, 0.97, 0.5, 0.2), soft(d, 0.97, 0.5 + sharp, 0.1)
    return World(d, mu, pi, 0.97, features, episodes)


def queue(features: str, sharp: float, rows: int) -> World:
    d = queues.queue()
    mu, pi = soft(d, 0.95, 0.5, 0.2), soft(d, 0.95, 0.5 + sharp, 0.1)
    return World(d, mu, pi, 0.95, features, rows, endless=True)


def line(features: str, share: float, rows: int) -> World:
    d = chains.line()
    home = soft(d, 0.9, 3.0, 0.1)
    even = np.full(home.shape, 1 / 3)
    return World(d, even, mixed(even, home, share), 0.9, features, rows, endless=True)


def endless_garnet(features: str, far: float, rows: int) -> World:
    d = chains.drawn(12, 3, 3, 0.0, 8)
    mu = drawn((12, 3), 3.0, 9)
    return World(d, mu, powered(mu, 1.0 + far), 0.97, features, rows, endless=True)


def ratios() -> World:
    """The log of EVALUATION.md: all ratios are 1, the log says 1.5, 1 and 0.5."""
    d = bandits.ratios()
    even = np.full((3, 3), 1 / 3)
    stated = even / np.array([1.5, 1.0, 0.5])
    return World(d, even, even, 0.9, "raw", 2000, logged=stated)


def kinds(change: float, seed: int, episodes: int) -> World:
    d = bandits.kinds(8, change, seed)
    mu, pi = soft(d, 0.95, 0.5, 0.3), soft(d, 0.95, 2.0, 0.05)
    return World(d, mu, pi, 0.95, "raw", episodes, length=300)


def doubling(features: str, go_on: float, episodes: int) -> World:
    d = rare.doubling()
    mu, pi = np.tile([0.4, 0.6], (len(d.P), 1)), np.tile([1.0 - go_on, go_on], (len(d.P), 1))
    return World(d, mu, pi, 0.99, features, episodes)


def claims(features: str, episodes: int) -> World:
    d = rare.claims()
    mu, pi = soft(d, 0.9, 0.3, 0.4), soft(d, 0.9, 2.0, 0.2)
    return World(d, mu, pi, 0.9, features, episodes)


def lock(features: str, share: float, episodes: int) -> World:
    d = rare.lock()
    even = np.full((len(d.P), 3), 1 / 3)
    right = np.eye(3)[np.arange(len(d.P)) % 3]
    return World(d, even, mixed(even, right, share), 0.97, features, episodes)


def trap(features: str, fast: float, episodes: int) -> World:
    d = rare.trap()
    mu, pi = np.tile([0.5, 0.5], (len(d.P), 1)), np.tile([1.0 - fast, fast], (len(d.P), 1))
    return World(d, mu, pi, 0.99, features, episodes)


def visitors(features: str, seed: int, episodes: int) -> World:
    d = rare.visitors(seed=seed)
    mu, pi = soft(d, 0.98, 0.5, 0.3), soft(d, 0.98, 1.0, 0.2)
    return World(d, mu, pi, 0.98, features, episodes)


def depot(features: str, sharp: float, episodes: int) -> World:
    d = lasting.depot()
    mu, pi = soft(d, 0.96, 2.0, 0.2), soft(d, 0.96, 2.0 * sharp, 0.15)
    return World(d, mu, pi, 0.96, features, episodes, length=150)


def wide_depot(features: str, episodes: int, sharp: float = 2.0) -> World:
    d = lasting.depot(30)
    mu, pi = soft(d, 0.95, 1.5, 0.2), soft(d, 0.95, sharp, 0.15)
    return World(d, mu, pi, 0.95, features, episodes, length=100)


def blind_depot(episodes: int) -> World:
    d = lasting.depot()
    mu, pi = soft(d, 0.97, 1.5, 0.3), soft(d, 0.97, 2.0, 0.2)
    return hidden(World(d, mu, pi, 0.97, "onehot", episodes, length=120), 1)


def star(features: str, sharp: float, episodes: int) -> World:
    d = lasting.star()
    mu, pi = soft(d, 0.97, 1.5, 0.3), soft(d, 0.97, 1.5 * sharp, 0.2)
    return World(d, mu, pi, 0.97, features, episodes, length=200)


def patients(shown: int, features: str, episodes: int, sharp: float = 1.0) -> World:
    d = lasting.patients()
    mu, pi = soft(d, 1.0, 0.4, 0.4), soft(d, 1.0, sharp, 0.2)
    return hidden(World(d, mu, pi, 1.0, features, episodes), shown)


def tide(shown: int, features: str, episodes: int, sharp: float = 1.2) -> World:
    d = lasting.tide()
    mu, pi = soft(d, 0.98, 0.7, 0.3), soft(d, 0.98, sharp, 0.2)
    return hidden(World(d, mu, pi, 0.98, features, episodes, length=200), shown)


def slots(features: str, share: float, episodes: int) -> World:
    d = rare.slots()
    mu = np.tile([0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04], (len(d.P), 1))
    return World(d, mu, mixed(mu, mu[:, ::-1], share), 0.9, features, episodes)


def even_slots(episodes: int) -> World:
    d = rare.slots()
    mu = np.full((len(d.P), 8), 1 / 8)
    return World(d, mu, mixed(mu, np.eye(8)[[7] * len(d.P)], 0.4), 0.9, "raw", episodes)


def mountain(features: str, seldom: float, episodes: int) -> World:
    d = rare.mountain()
    mu = np.tile([0.6, 0.4 - seldom, seldom], (len(d.P), 1))
    pi = np.tile([0.3, 0.4, 0.3], (len(d.P), 1))
    return World(d, mu, pi, 0.99, features, episodes)


def climb(features: str, up: float, episodes: int) -> World:
    d = rare.climb()
    mu, pi = np.full((len(d.P), 2), 0.5), np.tile([1.0 - up, up], (len(d.P), 1))
    return World(d, mu, pi, 0.97, features, episodes, length=120)


def visits(features: str, seldom: float, episodes: int) -> World:
    d = rare.visits()
    mu, pi = np.tile([1.0 - seldom, seldom], (len(d.P), 1)), np.tile([0.6, 0.4], (len(d.P), 1))
    return World(d, mu, pi, 0.98, features, episodes)


def wrong(world: World, how: str) -> World:
    mu = world.mu
    ways: dict[str, Callable[[], Floats]] = {
        "sharper": lambda: powered(mu, 1.5),
        "flatter": lambda: powered(mu, 0.5),
        "swapped": lambda: swapped(mu, 0, 1),
        "noisy": lambda: shifted(mu, 4, 0.3),
        "slightly": lambda: shifted(mu, 5, 0.1),
    }
    return replace(world, logged=ways[how]())


def estimated(world: World) -> World:
    return replace(world, estimated=True)


DEVELOPMENT: dict[str, Callable[[], World]] = {
    "garnet onehot near": lambda: garnet("onehot", 0.5, 200),
    "garnet onehot far": lambda: garnet("onehot", 6.0, 500),
    "garnet raw near": lambda: garnet("raw", 0.5, 500),
    "garnet raw far": lambda: garnet("raw", 2.0, 1000),
    "garnet tiles many": lambda: garnet("tiles:8x8", 1.0, 60),
    "garnet long onehot": lambda: garnet_long("onehot", 1.0, 200),
    "garnet long raw": lambda: garnet_long("raw", 1.0, 300),
    "garnet long far": lambda: garnet_long("onehot", 8.0, 300),
    "lake4 onehot near": lambda: lake("onehot", 2.0, 500),
    "lake4 onehot far": lambda: lake("onehot", 15.0, 500),
    "lake4 poly:1": lambda: lake("poly:1", 2.0, 500),
    "lake4 poly:2 far": lambda: lake("poly:2", 4.0, 1500),
    "lake4 small": lambda: lake("onehot", 2.0, 50),
    "cliff onehot": lambda: cliff("onehot", 1.5, 200),
    "cliff poly:2": lambda: cliff("poly:2", 1.5, 300),
    "walk onehot": lambda: walk("onehot", 0.5, 300),
    "walk raw": lambda: walk("raw", 0.5, 300),
    "walk rbf:3 far": lambda: walk("rbf:3", 1.0, 500),
    "bandit": lambda: bandit(0.3, 200),
    "bandit far": lambda: bandit(1.0, 500),
    "car rbf:60": lambda: car("rbf:60", 2.0, 200),
    "car poly:2": lambda: car("poly:2", 2.0, 200),
    "car raw far": lambda: car("raw", 10.0, 300),
    "sepsis onehot": lambda: sepsis("onehot", 2.0, 500),
    "sepsis raw": lambda: sepsis("raw", 2.0, 1000),
    "sepsis poly:2 far": lambda: sepsis("poly:2", 12.0, 500),
    "sepsis hidden": lambda: hidden(sepsis("onehot", 3.0, 500), 3),
    "sepsis mostly hidden": lambda: hidden(sepsis("onehot", 3.0, 500), 1),
    "rooms hidden": lambda: hidden(rooms("onehot", 1.5, 300), 1),
    "garnet cut": lambda: replace(garnet("onehot", 1.0, 300), length=6),
    "garnet raw cut": lambda: replace(garnet("raw", 1.0, 300), length=6),
    "short queue cut": lambda: replace(short_queue("raw", 0.5, 500), length=10),
    "rooms onehot": lambda: rooms("onehot", 1.5, 300),
    "rooms poly:2": lambda: rooms("poly:2", 1.5, 300),
    "short queue onehot": lambda: short_queue("onehot", 0.5, 300),
    "short queue raw": lambda: short_queue("raw", 3.0, 500),
    "kinds raw": lambda: kinds(0.0, 71, 1000),
    "kinds raw many": lambda: kinds(0.0, 71, 3000),
    "kinds raw other": lambda: kinds(0.0, 72, 1500),
    "kinds slowly raw": lambda: kinds(0.1, 72, 1500),
    "kinds often raw": lambda: kinds(0.3, 73, 2000),
    "kinds raw some": lambda: kinds(0.05, 74, 500),
    "kinds third raw": lambda: kinds(0.02, 75, 1000),
    "doubling onehot": lambda: doubling("onehot", 0.7, 300),
    "doubling raw": lambda: doubling("raw", 0.75, 1000),
    "doubling few": lambda: doubling("raw", 0.6, 60),
    "claims raw": lambda: claims("raw", 500),
    "claims few": lambda: claims("onehot", 100),
    "lock onehot": lambda: lock("onehot", 0.2, 300),
    "lock raw": lambda: lock("raw", 0.3, 500),
    "lock few": lambda: lock("onehot", 0.1, 60),
    "trap onehot": lambda: trap("onehot", 0.7, 300),
    "trap raw": lambda: trap("raw", 0.8, 500),
    "trap few": lambda: trap("raw", 0.6, 80),
    "visitors onehot": lambda: visitors("onehot", 5, 300),
    "visitors raw": lambda: visitors("raw", 5, 500),
    "visitors other raw": lambda: visitors("raw", 6, 1000),
    "visitors third raw": lambda: visitors("raw", 8, 1500),
    "visitors fourth raw": lambda: visitors("raw", 9, 200),
    "visitors few": lambda: visitors("raw", 7, 80),
    "depot onehot": lambda: depot("onehot", 1.2, 300),
    "depot raw": lambda: depot("raw", 1.2, 500),
    "depot raw far": lambda: depot("raw", 2.0, 1000),
    "depot poly:2": lambda: depot("poly:2", 1.3, 300),
    "depot wide raw": lambda: wide_depot("raw", 500),
    "depot wide many": lambda: wide_depot("raw", 1500),
    "depot wide poly:2": lambda: wide_depot("poly:2", 500),
    "depot wide near": lambda: wide_depot("raw", 800, 1.7),
    "depot wide cut": lambda: replace(wide_depot("raw", 800), length=50),
    "depot blind": lambda: blind_depot(800),
    "star raw": lambda: star("raw", 1.3, 300),
    "star raw many": lambda: star("raw", 1.2, 1500),
    "star poly:2": lambda: star("poly:2", 2.0, 500),
    "patients hidden": lambda: patients(1, "onehot", 500),
    "patients raw": lambda: patients(2, "raw", 1000),
    "patients raw far": lambda: patients(2, "raw", 1500, 1.5),
    "tide far": lambda: tide(2, "poly:2", 300, 2.5),
    "tide hidden": lambda: tide(1, "onehot", 300),
    "tide raw": lambda: tide(2, "raw", 1000),
    "slots raw": lambda: slots("raw", 0.4, 300),
    "slots onehot": lambda: slots("onehot", 1.0, 800),
    "slots even": lambda: even_slots(200),
    "slots even many": lambda: even_slots(1000),
    "slots few": lambda: slots("raw", 0.3, 100),
    "mountain onehot": lambda: mountain("onehot", 0.04, 400),
    "mountain raw": lambda: mountain("raw", 0.1, 200),
    "climb onehot": lambda: climb("onehot", 0.7, 300),
    "climb raw": lambda: climb("raw", 0.8, 300),
    "climb raw far": lambda: climb("raw", 0.95, 500),
    "visits raw": lambda: visits("raw", 0.05, 500),
    "visits onehot": lambda: visits("onehot", 0.1, 1500),
    "visits few": lambda: visits("raw", 0.15, 100),
    "shop onehot": lambda: shop("onehot", 0.5, 600),
    "shop onehot flat": lambda: shop("onehot", 0.0, 100),
    "shop poly:2": lambda: shop("poly:2", 0.5, 600),
    "shop poly:2 far": lambda: shop("poly:2", 1.2, 300),
    "mass poly:2": lambda: mass("poly:2", 0.8, 600),
    "mass raw": lambda: mass("raw", 0.8, 600),
    "mass raw far": lambda: mass("raw", 1.5, 600),
    "mass raw loose": lambda: mass("raw", 0.0, 600),
    "turning rbf": lambda: turning("rbf:80", 0.4, 600),
    "turning poly:2": lambda: turning("poly:2", -0.2, 600),
    "turning poly:2 near": lambda: turning("poly:2", 0.2, 600),
    "turning raw": lambda: turning("raw", -0.1, 600),
    "shop early": lambda: replace(shop("onehot", 0.5, 1000), length=10),
    "shop poly:2 early": lambda: replace(shop("poly:2", 1.0, 500), length=20),
    "mass raw early": lambda: replace(mass("raw", 0.8, 1000), length=12),
    "mass poly:2 early": lambda: replace(mass("poly:2", 0.6, 500), length=6),
    "turning raw early": lambda: replace(turning("raw", -0.1, 1000), length=30),
    "turning rbf early": lambda: replace(turning("rbf:80", 0.3, 1000), length=40),
    **beyond.WORLDS,
    **jackpots.WORLDS,
    "queue endless onehot": lambda: queue("onehot", 0.5, 10_000),
    "queue endless raw": lambda: queue("raw", 1.5, 20_000),
    "line endless poly:2": lambda: line("poly:2", 0.5, 5_000),
    "line endless raw": lambda: line("raw", 0.3, 20_000),
    "garnet endless onehot": lambda: endless_garnet("onehot", 1.0, 5_000),
    "garnet endless raw": lambda: endless_garnet("raw", 1.0, 10_000),
    "ratios wrong": ratios,
    "garnet sharper": lambda: wrong(garnet("onehot", 0.5, 500), "sharper"),
    "lake4 swapped": lambda: wrong(lake("onehot", 2.0, 500), "swapped"),
    "sepsis flatter": lambda: wrong(sepsis("onehot", 2.0, 500), "flatter"),
    "short queue sharper": lambda: wrong(short_queue("onehot", 0.5, 300), "sharper"),
    "rooms noisy": lambda: wrong(rooms("onehot", 1.5, 300), "noisy"),
    "walk noisy": lambda: wrong(walk("onehot", 0.5, 300), "noisy"),
    "car slightly": lambda: wrong(car("rbf:60", 2.0, 200), "slightly"),
    "lake4 estimated": lambda: estimated(lake("onehot", 2.0, 500)),
    "walk estimated": lambda: estimated(walk("onehot", 0.5, 300)),
    "sepsis estimated": lambda: estimated(sepsis("onehot", 2.0, 500)),
    "bandit estimated": lambda: estimated(bandit(0.3, 200)),
    "car estimated": lambda: estimated(car("rbf:60", 2.0, 200)),
}
