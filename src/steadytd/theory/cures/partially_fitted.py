"""Partially fitted iteration: a target copied every t steps.

t steps of w += alpha (b + C wbar - G w), then wbar = w. With M_t = alpha sum_{i<t} (I - alpha G)^i
= G^-1 (I - (I - alpha G)^t) a copy is w <- w + M_t (b - A w). It converges exactly if the spectral
radius of I - M_t A is below 1. t = 1 is TD at step size alpha; as t grows it becomes fitted
iteration, G^-1 C. Here alpha = 1/lambda_max(G), so every inner step contracts. The fixed point is
TD's.
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.moments import Expectation
from steadytd.theory.cures.cure import Cure, Iteration, Setting

NAME = __name__.rpartition(".")[2]
FITTED = 1e-13  # of the slowest direction is left when the inner steps have gone to their end
MOST = 10**12  # inner steps


def cure(setting: Setting) -> Cure:
    """The number of inner steps."""
    s = setting
    sizes, U = np.linalg.eigh(s.G)
    alpha = s.m.share / float(sizes[-1])  # per step in which the learner updates
    left = np.maximum(1.0 - sizes / sizes[-1], 0.0)
    inner = U.T @ s.A, U.T @ s.b

    def system(t: float) -> Expectation:
        done = U * ((1.0 - left**t) / sizes)
        return Expectation(M=done @ inner[0], g=done @ inner[1])

    last = 1.0 if left[0] <= 0.0 else MOST
    if 0.0 < left[0] < 1.0:
        last = np.log(FITTED) / np.log(left[0])
    return Iteration(
        name=NAME, amount="t", setting=s, system=system, low=1.0, whole=True,
        high=float(np.ceil(min(max(last, 1.0), MOST))), settings={"alpha": alpha},
    )  # fmt: skip
