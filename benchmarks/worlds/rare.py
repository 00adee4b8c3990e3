"""Worlds of `development` in which something rare decides the value."""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.worlds.world import Dynamics


@cache
def doubling(steps: int = 9) -> Dynamics:
    """A prize of 1 is doubled with 0.55, or all is lost; take it (0) or go on (1)."""
    S = steps + 2  # lost, taken
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    for s in range(steps):
        P[s, 0, -1], r[s, 0] = 1.0, 2.0**s
        P[s, 1, min(s + 1, steps - 1)], P[s, 1, -2] = 0.55, 0.45
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[0] = 1.0
    return Dynamics(P, r, np.arange(S) >= steps, start, np.arange(S, dtype=float)[:, None])


@cache
def claims(risks: int = 12) -> Dynamics:
    """One step: take a client of some risk (1), who pays 1 and may claim 60, or decline (0)."""
    S = risks + 2
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    claim = np.linspace(0.002, 0.03, risks)
    P[:risks, 0, -2] = 1.0
    P[:risks, 1, -1], P[:risks, 1, -2] = claim, 1.0 - claim
    r[:risks, 1] = 1.0
    r[:risks, 1, -1] = -60.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.append(np.full(risks, 1.0 / risks), [0.0, 0.0])
    return Dynamics(P, r, np.arange(S) >= risks, start, np.arange(S, dtype=float)[:, None])


@cache
def lock(length: int = 5, actions: int = 3) -> Dynamics:
    """The right action of each place leads on, any other one back; 10 at the end, 0.1 on the way.

    The reward that matters is seldom seen. An episode ends with 0.05 a step.
    """
    S = length + 2  # opened, over
    P, r = np.zeros((S, actions, S)), np.zeros((S, actions, S))
    for s in range(length):
        for a in range(actions):
            right = a == s % actions
            P[s, a, s + 1 if right else 0] = 0.95
            P[s, a, -1] = 0.05
            r[s, a] = 0.0 if right else 0.1
    r[:, :, length] = 10.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[:2] = 0.5
    return Dynamics(P, r, np.arange(S) >= length, start, np.arange(S, dtype=float)[:, None])


@cache
def trap(length: int = 10) -> Dynamics:
    """A way of ten places: fast (1) may fall into a pit, left with 0.03 a step; each costs 1."""
    S = length + 2  # pit, over
    pit, over = length, length + 1
    P = np.zeros((S, 2, S))
    for s in range(length):
        for a, (step, fall) in enumerate(((1, 0.001), (2, 0.01))):
            P[s, a, min(s + step, length) if s + step < length else over] += 1.0 - fall
            P[s, a, pit] += fall
    P[pit, :, pit], P[pit, :, over], P[over, :, over] = 0.97, 0.03, 1.0
    start = np.zeros(S)
    start[0] = 1.0
    obs = np.arange(S, dtype=float)[:, None]
    return Dynamics(P, np.full(P.shape, -1.0), np.arange(S) == over, start, obs)


@cache
def visitors(pages: int = 9, seed: int = 5) -> Dynamics:
    """Pages that hold a visitor for drawn times, some for long; 1 for each page seen."""
    rng = np.random.default_rng([seed, 23])
    S = pages + 1
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    stay = 1.0 - 0.5 * rng.random((pages, 3)) ** 3 - 0.01
    for s in range(pages):
        for a in range(3):
            to = rng.dirichlet(np.full(pages, 0.2))
            P[s, a, :pages], P[s, a, -1] = stay[s, a] * to, 1.0 - stay[s, a]
        r[s] = rng.random((3, 1))
    P[-1, :, -1] = 1.0
    start = np.append(np.full(pages, 1.0 / pages), 0.0)
    return Dynamics(P, r, np.arange(S) == pages, start, np.arange(S, dtype=float)[:, None])
