"""Behaviour and target policies, and ways to state probabilities wrongly."""

from __future__ import annotations

import numpy as np
from benchmarks.worlds.world import Dynamics, Floats


def best_values(d: Dynamics, discount: float) -> Floats:
    """Q* [S, A] by value iteration."""
    mean = np.einsum("sat,sat->sa", d.P, d.r)
    goes_on = discount * d.P * ~d.ends
    q = np.zeros(mean.shape)
    for _ in range(5000):
        new = mean + goes_on @ q.max(axis=1)
        if np.abs(new - q).max() < 1e-9 * (1.0 + np.abs(new).max()):
            break
        q = new
    return np.asarray(q)


def soft(d: Dynamics, discount: float, sharp: float, explore: float = 0.0) -> Floats:
    """softmax(sharp Q* / spread of Q*), mixed with `explore` of the uniform policy."""
    q = best_values(d, discount)
    q = q - q.max(axis=1, keepdims=True)
    spread = q[~d.ends].min(axis=1)
    weight = np.exp(sharp * q / max(float(-spread.mean()), 1e-12))
    policy = weight / weight.sum(axis=1, keepdims=True)
    return np.asarray((1.0 - explore) * policy + explore / q.shape[1])


def drawn(shape: tuple[int, int], concentration: float, seed: int) -> Floats:
    """A random policy."""
    return np.random.default_rng(seed).dirichlet(np.full(shape[1], concentration), size=shape[0])


def mixed(one: Floats, other: Floats, share: float) -> Floats:
    """(1 - share) one + share other."""
    return (1.0 - share) * one + share * other


def powered(policy: Floats, power: float) -> Floats:
    """policy^power, normalised: sharper (> 1) or flatter (< 1)."""
    found = policy**power
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def swapped(policy: Floats, one: int, other: int) -> Floats:
    """Two actions' probabilities exchanged."""
    found = policy.copy()
    found[:, [one, other]] = policy[:, [other, one]]
    return found


def shifted(policy: Floats, seed: int, size: float) -> Floats:
    """Each probability times exp(size x normal), normalised."""
    rng = np.random.default_rng(seed)
    found = policy * np.exp(size * rng.standard_normal(policy.shape))
    return np.asarray(found / found.sum(axis=1, keepdims=True))
