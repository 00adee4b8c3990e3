"""Worlds set aside before the balance of other functions and few tries were looked at; they grade.

Made as a stranger would who grades the rule: ordinary ones, targets near and far, features that
miss what counts where the target goes, rare outcomes, episodes of very different length, endless
logs and wrong probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.worlds import sealed_dynamics as worlds
from benchmarks.worlds.last import endless, even, made, softer
from benchmarks.worlds.policies import powered, swapped
from benchmarks.worlds.world import World


def _cut(world: World, features: str, episodes: int, length: int) -> World:
    return replace(made(world, features, episodes), length=length)


def _maze() -> World:
    return softer(worlds.maze(), 0.97, (1.5, 2.5), 0.3)


def _outbreak() -> World:
    return softer(worlds.outbreak(), 1.0, (0.5, 1.3), 0.3)


def _tangle(sharp: float) -> World:
    return softer(worlds.tangle(), 0.95, (0.5, sharp), 0.3)


def _cooler() -> World:
    return endless(worlds.cooler(), 0.95, (0.5, 1.0), 0.3)


SEALED: dict[str, Callable[[], World]] = {
    "maze onehot": lambda: made(_maze(), "onehot", 200),
    "maze raw": lambda: made(_maze(), "raw", 300),
    "chase poly:2": lambda: made(softer(worlds.chase(), 0.98, (1.0, 2.0), 0.3), "poly:2", 250),
    "chase tiles": lambda: made(softer(worlds.chase(), 0.98, (1.0, 1.6), 0.3), "tiles:4x4", 400),
    "grocer poly:2": lambda: _cut(
        softer(worlds.grocer(), 0.95, (0.5, 1.5), 0.3), "poly:2", 200, 60
    ),
    "grocer raw": lambda: _cut(softer(worlds.grocer(), 0.95, (0.5, 1.0), 0.4), "raw", 100, 50),
    "counter raw": lambda: made(softer(worlds.counter(), 0.98, (0.5, 1.5), 0.3), "raw", 200),
    "counter few": lambda: made(softer(worlds.counter(), 0.98, (0.5, 1.0), 0.3), "rbf:5", 40),
    "stairs onehot": lambda: made(
        even(worlds.stairs(), [0.3, 0.3, 0.4], [0.4, 0.4, 0.2], 0.98), "onehot", 150
    ),
    "stairs far": lambda: made(
        even(worlds.stairs(), [0.3, 0.3, 0.4], [0.7, 0.25, 0.05], 0.98), "raw", 300
    ),
    "belt raw": lambda: made(
        even(worlds.belt(), [0.4, 0.35, 0.25], [0.2, 0.55, 0.25], 0.97), "raw", 300
    ),
    "belt onehot": lambda: made(softer(worlds.belt(), 0.97, (0.5, 1.5), 0.3), "onehot", 100),
    "dozen onehot": lambda: made(softer(worlds.dozen(), 1.0, (1.0, 3.0), 0.3), "onehot", 500),
    "dozen raw": lambda: made(softer(worlds.dozen(), 1.0, (1.0, 2.0), 0.3), "raw", 150),
    "streak raw": lambda: made(softer(worlds.streak(), 1.0, (0.5, 1.2), 0.4), "raw", 300),
    "streak few": lambda: made(softer(worlds.streak(), 1.0, (0.5, 1.0), 0.4), "raw", 50),
    "adverts raw": lambda: made(softer(worlds.adverts(), 0.9, (0.5, 2.0), 0.3), "raw", 500),
    "adverts onehot": lambda: made(softer(worlds.adverts(), 0.9, (0.5, 1.5), 0.3), "onehot", 500),
    "outbreak raw": lambda: made(_outbreak(), "raw", 200),
    "outbreak poly:2": lambda: made(_outbreak(), "poly:2", 400),
    "dip tiles": lambda: _cut(softer(worlds.dip(), 0.98, (1.0, 2.0), 0.3), "tiles:4x6", 150, 150),
    "dip raw": lambda: _cut(softer(worlds.dip(), 0.98, (1.0, 2.0), 0.3), "raw", 300, 150),
    "crane rbf": lambda: _cut(softer(worlds.crane(), 0.95, (0.3, 1.0), 0.3), "rbf:40", 150, 70),
    "crane raw": lambda: _cut(softer(worlds.crane(), 0.95, (0.3, 1.0), 0.3), "raw", 300, 70),
    "tangle onehot": lambda: made(_tangle(1.5), "onehot", 200),
    "tangle raw": lambda: made(_tangle(1.0), "raw", 500),
    "tangle far": lambda: made(_tangle(6.0), "poly:2", 300),
    "kite raw": lambda: _cut(
        even(worlds.kite(), [0.25, 0.4, 0.35], [0.6, 0.3, 0.1], 0.96), "raw", 400, 50
    ),
    "kite poly:2": lambda: _cut(
        even(worlds.kite(), [0.25, 0.4, 0.35], [0.35, 0.4, 0.25], 0.96), "poly:2", 200, 50
    ),
    "savings raw": lambda: _cut(
        even(worlds.savings(), [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 0.97), "raw", 300, 60
    ),
    "savings rbf": lambda: _cut(
        even(worlds.savings(), [0.4, 0.3, 0.3], [0.3, 0.35, 0.35], 0.97), "rbf:12", 150, 60
    ),
    "mine raw": lambda: made(
        even(worlds.mine(), [0.55, 0.35, 0.1], [0.4, 0.25, 0.35], 0.99), "raw", 200
    ),
    "mine onehot": lambda: made(
        even(worlds.mine(), [0.5, 0.3, 0.2], [0.4, 0.3, 0.3], 0.99), "onehot", 500
    ),
    "wells onehot": lambda: made(
        even(worlds.wells(), [0.6, 0.3, 0.1], [0.35, 0.3, 0.35], 0.99), "onehot", 200
    ),
    "wells raw": lambda: made(
        even(worlds.wells(), [0.5, 0.35, 0.15], [0.4, 0.3, 0.3], 0.99), "raw", 500
    ),
    "clients few": lambda: made(
        even(worlds.clients(), [0.4, 0.3, 0.3], [0.25, 0.5, 0.25], 0.99), "raw", 50
    ),
    "clients onehot": lambda: made(
        even(worlds.clients(), [0.4, 0.3, 0.3], [0.3, 0.4, 0.3], 0.99), "onehot", 300
    ),
    "support raw": lambda: made(softer(worlds.support(), 0.99, (0.5, 1.2), 0.3), "raw", 200),
    "support few": lambda: made(softer(worlds.support(), 1.0, (0.5, 1.0), 0.3), "onehot", 30),
    "ferry endless": lambda: made(endless(worlds.ferry(), 0.9, (0.5, 1.2), 0.3), "poly:2", 6_000),
    "cooler endless": lambda: made(_cooler(), "raw", 10_000),
    "maze wrong": lambda: replace(
        made(_maze(), "onehot", 200), logged=swapped(_maze().mu, 0, 1)
    ),
    "outbreak wrong": lambda: replace(
        made(_outbreak(), "raw", 300), logged=powered(_outbreak().mu, 1.8)
    ),
}  # fmt: skip
