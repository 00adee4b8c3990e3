"""A tabular world of three layers, and the log of all its trajectories: exact expectations."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from steadytd.base.arrays import Floats
from tests.support.log_helpers import fixed_lists

# Three layers, two states each but the first; every action leads to either state with chance 1/2.
STATES = 5
PI = np.array([0.8, 0.1, 0.6, 0.3, 0.95])  # probability of action 1 under the target policy
GAMMA = 0.9


def reward(s: int, a: int, up: int) -> float:
    return 1.0 + 0.5 * s - a + 2.0 * up * (s % 2)


def state_after(layer: int, up: int) -> int:
    return 1 + 2 * layer + up


def every_trajectory(features: Floats, times: int = 1) -> Any:
    """A log of all 64 equally likely trajectories: its averages are exact expectations."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("episode_id", "t", "s", "action", "reward", "terminated", "pi")
    }
    for episode, draws in enumerate(list(product((0, 1), repeat=6)) * times):
        s = 0
        for t in range(3):
            a, up = draws[2 * t], draws[2 * t + 1]
            pi = PI[s] if a else 1.0 - PI[s]
            for name, value in zip(
                columns, (episode, t, s, a, reward(s, a, up), t == 2, pi), strict=True
            ):
                columns[name].append(value)
            s = state_after(t, up)
    obs = features[np.array(columns.pop("s"))]
    return pa.table(
        {
            "obs": fixed_lists(obs),
            "target_prob_pi": columns.pop("pi"),
            "behavior_prob": np.full(len(obs), 0.5),
            "truncated": np.zeros(len(obs), dtype=bool),
            **columns,
        }
    )


def chain() -> tuple[Floats, Floats, Floats]:
    """P and r of the target policy, and how often an episode of the behaviour visits each state."""
    P, r, visits = np.zeros((STATES, STATES)), np.zeros(STATES), np.array([1, 0.5, 0.5, 0.5, 0.5])
    for layer in (0, 1, 2):
        for s in [0] if layer == 0 else [2 * layer - 1, 2 * layer]:
            for a, up in product((0, 1), repeat=2):
                chance = (PI[s] if a else 1.0 - PI[s]) / 2.0
                r[s] += chance * reward(s, a, up)
                if layer < 2:
                    P[s, state_after(layer, up)] += chance
    return P, r, visits


def exact_value() -> float:
    """The target policy's value of the first state."""
    P, r, _ = chain()
    return float(np.linalg.solve(np.eye(STATES) - GAMMA * P, r)[0])
