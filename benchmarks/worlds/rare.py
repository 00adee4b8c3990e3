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


@cache
def slots(kinds: int = 3, arms: int = 8) -> Dynamics:
    """One step: slot machines that pay 4 to 19.4 once in 8 to 36 pulls, and cost 0.3 a pull."""
    S = kinds + 1 + arms
    P, r = np.zeros((S, arms, S)), np.full((S, arms, S), -0.3)
    for k in range(arms):
        P[:kinds, k, kinds + 1 + k] = wins = 1.0 / (8 + 4 * k)
        P[:kinds, k, kinds] = 1.0 - wins
        r[:, :, kinds + 1 + k] = 4.0 + 2.2 * k
    P[np.arange(kinds, S), :, np.arange(kinds, S)] = 1.0
    start = np.append(np.full(kinds, 1.0 / kinds), np.zeros(arms + 1))
    return Dynamics(P, r, np.arange(S) >= kinds, start, np.arange(S, dtype=float)[:, None])


@cache
def mountain(camps: int = 8) -> Dynamics:
    """Camps on a mountain: the path (0), a ridge (1) or the wall (2), faster and seldom deadly."""
    S = camps + 2  # fallen, at the top
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3, S))
    for s in range(camps):
        for a, (step, fall) in enumerate(((1, 0.0), (2, 0.004), (3, 0.03))):
            to = s + step
            P[s, a, to if to < camps else S - 1] += 0.9 * (1.0 - fall)
            P[s, a, s] += 0.1 * (1.0 - fall)
            P[s, a, camps] += fall
            r[s, a] = -1.0
    r[:, :, camps] = -40.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    start[:2] = 0.5
    return Dynamics(P, r, np.arange(S) >= camps, start, np.arange(S, dtype=float)[:, None])


@cache
def visits(shops: int = 5, end: float = 0.15) -> Dynamics:
    """A seller visits shops in turn: talk (0), or a gift (1, costs 0.2) that may sell for 20."""
    S = shops + 2  # sold, over
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    for s in range(shops):
        sells = 0.01 + 0.006 * s
        P[s, 0, (s + 1) % shops], P[s, 0, -1] = 1.0 - end, end
        P[s, 1, (s + 1) % shops], P[s, 1, -2], P[s, 1, -1] = 1.0 - end - sells, sells, end
        r[s, 0], r[s, 1] = 0.1, -0.2
        r[s, 1, -2] = 20.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.append(np.full(shops, 1.0 / shops), [0.0, 0.0])
    return Dynamics(P, r, np.arange(S) >= shops, start, np.arange(S, dtype=float)[:, None])


@cache
def climb(steps: int = 8, end: float = 0.02) -> Dynamics:
    """A slope: climb (1) may slip to the foot; rest (0) slides back. 1 a step at the top.

    The foot pays 0.05, and most logs hardly see the top.
    """
    S = steps + 1
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    for s in range(steps):
        P[s, 0, max(s - 1, 0)] = 1.0 - end
        for to, p in ((min(s + 1, steps - 1), 0.6), (s, 0.3), (0, 0.1)):
            P[s, 1, to] += (1.0 - end) * p
        P[s, :, -1] = end
    P[-1, :, -1] = 1.0
    r[0], r[steps - 1] = 0.05, 1.0
    start = np.zeros(S)
    start[:3] = 1 / 3
    return Dynamics(P, r, np.arange(S) == steps, start, np.arange(S, dtype=float)[:, None])
