"""Continuous control on a grid: a step leads to the corners of the cell it ends in.

The corner's probability is its multilinear weight, so the grid is a finite world of its own that
moves like the continuous one, with some noise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
from benchmarks.worlds.world import Dynamics, Floats


def _grid(axes: list[Floats]) -> Floats:
    return np.array(list(product(*axes)))


def _corners(axes: list[Floats], x: Floats) -> Floats:
    """Multilinear weights [n, S] of the grid's points around each row of x."""
    weights = np.ones((len(x), 1))
    for k, axis in enumerate(axes):
        one = np.zeros((len(x), len(axis)))
        place = np.interp(x[:, k], axis, np.arange(len(axis)))
        low = np.minimum(place.astype(int), len(axis) - 2)
        rows = np.arange(len(x))
        one[rows, low], one[rows, low + 1] = 1.0 - (place - low), place - low
        weights = (weights[:, :, None] * one[:, None, :]).reshape(len(x), -1)
    return weights


Step = Callable[[Floats, int], Floats]


def _world(axes: list[Floats], actions: int, step: Step) -> tuple[Floats, Floats]:
    points = _grid(axes)
    P = np.stack([_corners(axes, step(points, a)) for a in range(actions)], axis=1)
    return points, P


@cache
def car() -> Dynamics:
    """Mountain car: position, velocity; three pushes; each step costs 1 until the top is reached.

    A push moves the velocity by 0.006 instead of 0.001: on a coarse grid that is as hard.
    """
    axes = [np.linspace(-1.2, 0.6, 16), np.linspace(-0.07, 0.07, 11)]

    def step(x: Floats, a: int) -> Floats:
        v = np.clip(x[:, 1] + 0.006 * (a - 1) - 0.0025 * np.cos(3 * x[:, 0]), -0.07, 0.07)
        place = np.clip(x[:, 0] + 2.0 * v, -1.2, 0.6)
        return np.stack([place, np.where(place <= -1.2, 0.0, v)], axis=1)

    obs, P = _world(axes, 3, step)
    start = ((np.abs(obs[:, 0] + 0.5) < 0.15) & (np.abs(obs[:, 1]) < 0.01)).astype(float)
    return Dynamics(P, np.full(P.shape, -1.0), obs[:, 0] >= 0.5, start / start.sum(), obs)


@cache
def pole() -> Dynamics:
    """Cart and pole: four numbers on a 5 x 5 x 7 x 5 grid; 1 per step until it falls or leaves."""
    axes = [np.linspace(-2.4, 2.4, 5), np.linspace(-2.0, 2.0, 5)]
    axes += [np.linspace(-0.21, 0.21, 7), np.linspace(-2.0, 2.0, 5)]

    def step(x: Floats, a: int) -> Floats:
        for _ in range(2):
            x = _pole(x, 10.0 if a else -10.0)
        return x

    obs, P = _world(axes, 2, step)
    ends = (np.abs(obs[:, 0]) > 2.3) | (np.abs(obs[:, 2]) > 0.2)
    start = (np.abs(obs) < [0.1, 0.1, 0.08, 0.1]).all(axis=1).astype(float)
    return Dynamics(P, np.ones(P.shape), ends, start / start.sum(), obs)


def _pole(x: Floats, force: float, dt: float = 0.02) -> Floats:
    place, speed, angle, turn = x.T
    push = (force + 0.05 * turn**2 * np.sin(angle)) / 1.1
    spin = 9.8 * np.sin(angle) - np.cos(angle) * push
    spin = spin / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
    pull = push - 0.05 * spin * np.cos(angle) / 1.1
    new = [place + dt * speed, speed + dt * pull, angle + dt * turn, turn + dt * spin]
    return np.stack(new, axis=1)


@cache
def pendulum() -> Dynamics:
    """A pendulum that is held up by three torques: (angle, speed), cost as in Gymnasium's, /10.

    It ends when the angle leaves +-1.5, at a cost of 5.
    """
    axes = [np.linspace(-1.6, 1.6, 17), np.linspace(-4.0, 4.0, 15)]

    def step(x: Floats, a: int) -> Floats:
        turn = np.clip(x[:, 1] + 0.1 * (7.5 * np.sin(x[:, 0]) + 8.0 * (a - 1)), -4.0, 4.0)
        return np.stack([np.clip(x[:, 0] + 0.1 * turn, -1.6, 1.6), turn], axis=1)

    obs, P = _world(axes, 3, step)
    cost = (obs[:, 0] ** 2 + 0.1 * obs[:, 1] ** 2) / 10.0
    ends = np.abs(obs[:, 0]) > 1.5
    r = np.broadcast_to(-cost[:, None, None], P.shape) - 5.0 * ends
    start = (np.abs(obs) < [0.5, 0.6]).all(axis=1).astype(float)
    return Dynamics(P, r, ends, start / start.sum(), obs)
