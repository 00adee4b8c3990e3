"""Worlds to make a rule on, whose episodes never end by themselves: every log is cut off.

What comes after the cut is a large part of their values, and no log shows it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.worlds.control import _world
from benchmarks.worlds.world import Dynamics, Floats, World
from scipy.stats import poisson


def leaning(scores: Floats, strength: float) -> Floats:
    """A policy that prefers actions by their scores [S, A]: softmax(strength scores)."""
    weight = np.exp(strength * (scores - scores.max(axis=1, keepdims=True)))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _never(P: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.zeros(len(P), dtype=bool)


@cache
def inventory() -> Dynamics:
    """A shop with up to 20 goods that orders 0 to 3; two are asked for, on average."""
    S, A = 21, 4
    demand = poisson.pmf(np.arange(40), 2.0)
    P, r = np.zeros((S, A, S)), np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            have = min(s + a, S - 1)
            for d, p in enumerate(demand):
                P[s, a, max(have - d, 0)] += p
            sold = have - np.minimum(np.arange(S), have)
            r[s, a] = 3.0 * sold - 1.5 * a - 0.1 * have
    P /= P.sum(axis=2, keepdims=True)
    start = np.where(np.arange(S) < 10, 0.1, 0.0)
    return Dynamics(P, r, _never(P), start, np.arange(S)[:, None].astype(float))


@cache
def spring() -> Dynamics:
    """Place and speed of a mass that three forces push; costs grow with the square of the place."""
    axes = [np.linspace(-4.0, 4.0, 13), np.linspace(-4.0, 4.0, 13)]

    def step(x: Floats, a: int) -> Floats:
        return np.stack([0.95 * x[:, 0] + 0.2 * x[:, 1], 0.9 * x[:, 1] + 0.5 * (a - 1)], axis=1)

    obs, P = _world(axes, 3, step)
    r = np.broadcast_to(-(obs[:, 0] ** 2 + 0.1 * obs[:, 1] ** 2)[:, None, None], P.shape)
    start = (np.abs(obs) < 1.5).all(axis=1).astype(float)
    return Dynamics(P, r, _never(P), start / start.sum(), obs)


@cache
def swing() -> Dynamics:
    """A pendulum that turns freely: cos and sin of its angle, and its speed."""
    axes = [np.linspace(-np.pi, np.pi, 19), np.linspace(-8.0, 8.0, 13)]

    def step(x: Floats, a: int) -> Floats:
        speed = np.clip(x[:, 1] + 0.1 * (15.0 * np.sin(x[:, 0]) + 6.0 * (a - 1)), -8.0, 8.0)
        angle = x[:, 0] + 0.1 * speed
        return np.stack([(angle + np.pi) % (2.0 * np.pi) - np.pi, speed], axis=1)

    points, P = _world(axes, 3, step)
    r = np.broadcast_to(-(points[:, 0] ** 2 + 0.1 * points[:, 1] ** 2)[:, None, None], P.shape)
    start = (np.abs(points[:, 1]) < 1.0).astype(float)
    obs = np.stack([np.cos(points[:, 0]), np.sin(points[:, 0]), points[:, 1]], axis=1)
    return Dynamics(P, r, _never(P), start / start.sum(), obs)


def shop(features: str, strength: float, episodes: int) -> World:
    d = inventory()
    ordered = -np.abs(d.obs + np.arange(4) - 6.0)
    policies = leaning(ordered, 0.2), leaning(ordered, strength)
    return World(d, *policies, 0.97, features, episodes, length=50)


def mass(features: str, strength: float, episodes: int) -> World:
    d = spring()
    against = -d.obs.sum(axis=1)[:, None] * (np.arange(3) - 1.0)
    policies = leaning(against, 0.3), leaning(against, strength)
    return World(d, *policies, 0.95, features, episodes, length=60)


def turning(features: str, strength: float, episodes: int) -> World:
    d = swing()
    along = d.obs[:, 2:] * (np.arange(3) - 1.0)
    policies = leaning(along, 0.1), leaning(along, strength)
    return World(d, *policies, 0.98, features, episodes, length=100)
