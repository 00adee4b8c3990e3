"""Worlds with known values, and logs of them: what an evaluation has to get right or warn about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from steadytd import Problem
from steadytd.base.arrays import Floats
from tests.support.log_helpers import fixed_lists, log_table


@dataclass(frozen=True)
class World:
    """How to make a log from a seed, the value that the log should show, and features for it."""

    name: str
    log: Callable[[int], Any]
    truth: float
    features: str


def episodic(states: int, strength: float, Phi: Floats, seed: int = 5) -> Problem:
    """A random chain of episodes of about ten steps; `strength` is how far pi is from mu."""
    rng = np.random.default_rng(seed)
    S, A = states, 3
    P = rng.dirichlet(np.full(S, 0.5), size=(S, A))
    mu = rng.dirichlet(np.full(A, 3.0), size=S)
    pi = mu ** (1.0 + strength)
    pi /= pi.sum(axis=1, keepdims=True)
    gamma = np.where(rng.random((S, A, S)) < 0.15, 0.0, 0.95)
    r = rng.normal(size=(S, A, S)) + np.linspace(-1.0, 2.0, S)[:, None, None]
    start = rng.dirichlet(np.ones(S))
    return Problem(name="episodic", P=P, r=r, gamma=gamma, mu=mu, pi=pi, Phi=Phi, start=start)


def finite(name: str, strength: float, Phi: Floats, seed: int = 5, episodes: int = 400) -> World:
    """Logs of a random chain."""
    problem = episodic(6, strength, Phi, seed)
    truth = float(problem.start @ problem.v_pi)

    def log(seed: int) -> Any:
        return log_table(problem, episodes=episodes, length=200, seed=seed, obs="phi")

    return World(f"{name} {strength:g}", log, truth, "raw")


def tabular(strength: float, episodes: int = 400) -> World:
    """Features that can represent every value: one per state."""
    return finite("tabular", strength, np.eye(6), episodes=episodes)


def aggregated(strength: float) -> World:
    """One feature that says nearly nothing about the value."""
    return finite("aggregated", strength, np.array([[1.0, 0.0, 0.9, 0.1, 1.0, 0.0]]).T, seed=11)


STAY, DISCOUNT = 0.9, 0.97


def rollout(slope: float, episodes: int, seed: int) -> dict[str, Floats]:
    """A point on a line that is pushed left or right, until an episode ends by chance.

    x' = 0.9 x + 0.4 a + 0.2 noise, a = +-1 with P(a = 1) = 1/(1 + exp(-slope x)), reward
    1 - x^2 + 0.3 a, and an episode ends with probability 0.1 after each step.
    """
    rng = np.random.default_rng([seed, 77])
    x = rng.normal(size=episodes)
    alive = np.arange(episodes)
    steps = []
    for t in range(200):
        up = 1.0 / (1.0 + np.exp(-slope * x))
        a = np.where(rng.random(len(x)) < up, 1.0, -1.0)
        ends = (rng.random(len(x)) > STAY) | (t == 199)
        after = 0.9 * x + 0.4 * a + 0.2 * rng.normal(size=len(x))
        steps.append((alive, np.full(len(x), t), x, a, 1.0 - x**2 + 0.3 * a, ends))
        alive, x = alive[~ends], after[~ends]
        if not len(alive):
            break
    columns = [np.concatenate(c) for c in zip(*steps, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    names = ("episode_id", "t", "x", "action", "reward", "terminated")
    return {name: c[order] for name, c in zip(names, columns, strict=True)}


def probability(slope: float, x: Floats, a: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-slope * x * a)))


def line(slope: float, features: str = "poly:2", episodes: int = 400) -> World:
    """The line's log under slope -0.5, evaluated for another slope; truth by many rollouts."""
    own = rollout(slope, 200_000, seed=987)
    weights = DISCOUNT ** own["t"]
    truth = float((weights * own["reward"]).sum() / 200_000)

    def log(seed: int) -> Any:
        c = rollout(-0.5, episodes, seed)
        x, a = c["x"], c["action"]
        return pa.table(
            {
                "episode_id": c["episode_id"],
                "t": c["t"],
                "obs": fixed_lists(x[:, None]),
                "action": a.astype(np.int64),
                "reward": c["reward"],
                "terminated": c["terminated"],
                "truncated": np.zeros(len(x), dtype=bool),
                "behavior_prob": probability(-0.5, x, a),
                "target_prob_pi": probability(slope, x, a),
            }
        )

    return World(f"line {slope:g} {features}", log, truth, features)


WORLDS: dict[str, Callable[[], World]] = {
    "tabular near": lambda: tabular(0.5),
    "tabular far": lambda: tabular(4.0),
    "aggregated near": lambda: aggregated(0.5),
    "aggregated far": lambda: aggregated(4.0),
    "line near": lambda: line(-1.0, "poly:2"),
    "line far": lambda: line(3.0, "poly:2"),
    "line near, poor features": lambda: line(-1.0, "raw"),
}
