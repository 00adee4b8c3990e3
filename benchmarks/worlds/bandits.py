"""Episodes of one or few steps: bandits, contexts, sessions."""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.worlds.world import Dynamics


def _one_step(mean: np.ndarray[tuple[int, ...], np.dtype[np.float64]], noise: float) -> Dynamics:
    """Contexts [C, A] of mean rewards; every step ends the episode."""
    C, A = mean.shape
    P, r = np.zeros((C + 1, A, C + 1)), np.zeros((C + 1, A, C + 1))
    P[:, :, -1] = 1.0
    r[:C, :, -1] = mean
    start = np.append(np.full(C, 1.0 / C), 0.0)
    obs = np.linspace(0.0, 1.0, C + 1)[:, None]
    return Dynamics(P, r, np.arange(C + 1) == C, start, obs, noise)


@cache
def bandit(arms: int = 5) -> Dynamics:
    """One state (two are observed, alike in all they do), arms of mean 0 to 1."""
    return _one_step(np.tile(np.linspace(0.0, 1.0, arms), (2, 1)), 0.5)


@cache
def contextual(contexts: int = 20, arms: int = 4) -> Dynamics:
    """Contexts on a line; each arm is best somewhere."""
    x = np.linspace(0.0, 1.0, contexts)[:, None]
    best = np.linspace(0.0, 1.0, arms)
    return _one_step(np.exp(-8.0 * (x - best) ** 2) - 0.3 * x, 0.3)


@cache
def ratios() -> Dynamics:
    """Three arms of mean 0, 1, 2 (EVALUATION.md): where a wrong ratio moves the mean by half."""
    return _one_step(np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]), 0.1)


@cache
def session(moods: int = 6, items: int = 5) -> Dynamics:
    """A visitor of some mood is shown an item: pays 1 by chance, changes mood, or leaves."""
    rng = np.random.default_rng(53)
    S = 2 * moods + 1  # mood x just paid, left
    liking = rng.beta(1.0, 3.0, size=(moods, items))
    drift = rng.dirichlet(np.full(moods, 0.4), size=(moods, items))
    P, r = np.zeros((S, items, S)), np.zeros((S, items, S))
    for s in range(2 * moods):
        mood = s % moods
        stay = 0.6 + 0.35 * liking[mood]
        for a in range(items):
            P[s, a, :moods] = stay[a] * (1 - liking[mood, a]) * drift[mood, a]
            P[s, a, moods : 2 * moods] = stay[a] * liking[mood, a] * drift[mood, a]
            P[s, a, -1] = 1.0 - stay[a]
    r[:, :, moods : 2 * moods] = 1.0
    P[-1, :, -1] = 1.0
    start = np.append(np.full(moods, 1.0 / moods), np.zeros(moods + 1))
    moods_of = np.append(np.tile(np.arange(moods), 2), 0).astype(float)
    paid = np.append(np.repeat([0.0, 1.0], moods), 2.0)
    return Dynamics(P, r, np.arange(S) == S - 1, start, np.stack([moods_of, paid], axis=1))


def kinds(number: int, change: float, seed: int, actions: int = 4) -> Dynamics:
    """A customer of some kind is served in one of several ways: pays, and stays or leaves.

    The better served, the longer they stay, and the kind hardly changes: a number of the kind, seen
    as it is, says little of the value, and the episodes that decide it are rare in a log.
    """
    rng = np.random.default_rng(seed)
    S = number + 1
    fit = rng.beta(1.0, 2.0, size=(number, actions))
    stay = 0.65 + 0.32 * fit
    P, r = np.zeros((S, actions, S)), np.zeros((S, actions, S))
    for k in range(number):
        to = np.full(number, change / number)
        to[k] += 1.0 - change
        P[k, :, :number], P[k, :, -1] = stay[k][:, None] * to, 1.0 - stay[k]
        r[k] = fit[k][:, None]
    P[-1, :, -1] = 1.0
    start = np.append(np.full(number, 1.0 / number), 0.0)
    return Dynamics(P, r, np.arange(S) == S - 1, start, np.arange(S, dtype=float)[:, None], 0.3)
