"""Learners followed along a log without the compiler, and a user's law with much to remember."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.engine.law import LAM, Param, accumulating_trace, law
from steadytd.engine.learner import Learner
from steadytd.engine.reference import ReferenceLearner
from tests.support.evaluate_helpers import Step


def followed(
    episodes: Sequence[Sequence[Step]],
    learner: Learner,
    target: int,
    peaks: tuple[float, float] = (1.0, 1.0),
) -> list[Floats]:
    """The weights that the learner reports after every step of a log, from weights 0."""
    slow = ReferenceLearner(learner, np.zeros(len(episodes[0][0].x)), traced=True)
    history = []
    for episode in episodes:
        slow.cut()
        for p in episode:
            facts = {
                "reward": p.reward, "gamma_next": p.discount, "gamma_carried": p.discount,
                "rho": float(p.rho[target]), "pi": float(p.pi[target]), "mu": p.mu,
                "interest": 1.0, "peak_min": peaks[0], "peak_max": peaks[1],
            }  # fmt: skip
            slow.update(p.x, p.x_next, facts)
            history.append(slow.reported)
    return history


def faded(gamma: float, rho_prev: float, faded: float, reward: float) -> float:
    """A memory that an episode's end clears, as a user would write it."""
    return 0.5 * gamma * rho_prev * faded + reward


def count(count: float) -> float:
    """A memory that nothing clears: it counts steps."""
    return count + 1.0


@law(
    writes={"w": ("z", "x_next"), "h": "x"},
    params={"kappa": Param("a weight", default=0.3), "lam": LAM},
    traces={"z": accumulating_trace},
    memory={"faded": faded, "count": count},
)
def remembering(
    reward: float, gamma_next: float, w_x: float, w_x_next: float, h_x: float, alpha: float,
    kappa: float, faded: float, count: float,
) -> tuple[tuple[float, float], float]:  # fmt: skip
    """A user's own law, with traces, two vectors and two memories."""
    delta = reward + gamma_next * w_x_next - w_x
    step = alpha * (delta + kappa * h_x)
    return (step, -alpha * kappa * faded / count), alpha * (delta - h_x)
