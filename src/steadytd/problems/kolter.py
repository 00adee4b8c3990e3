"""Kolter's two states: nearly the right feature, yet TD's fixed point can be arbitrarily bad.

Left leads to state 0, right to state 1, from both. The target policy takes them evenly, the
behaviour policy goes left with probability `left`. The rewards are such that v = (1, 1.05); the one
feature is 1 and 1.05 + epsilon, so that the best error is at most epsilon.

Named fact: A is zero if `left` is p = (2961 + 45240 e + 40400 e^2) / (4141 + 84840 e + 40400 e^2),
0.7114 for e = epsilon = 0.001. Below, TD converges, to a fixed point whose error grows without
bound as `left` approaches p (2.717 at 0.71, where the best error is 0.00045); above, it diverges.

Source: Kolter (2011), The fixed points of off-policy TD; the closed form of p is that of Zhang, Yao
& Whiteson (2021).
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.problem import Problem
from steadytd.problems._common import number

DISCOUNT = 0.99


def make(left: float = 0.71, epsilon: float = 0.001) -> Problem:
    """The problem for a behaviour policy and a flaw of the feature."""
    share = number("left", left, 0.0, 1.0, open_at="both")
    flaw = number("epsilon", epsilon, 0.0, 1.0)
    P = np.zeros((2, 2, 2))
    P[:, 0, 0] = P[:, 1, 1] = 1.0
    v = np.array([1.0, 1.05])
    r = v - DISCOUNT * v.mean()
    return Problem(
        name="kolter",
        doc=__doc__ or "",
        P=P,
        r=np.repeat(r[:, None], 2, axis=1),
        gamma=np.array(DISCOUNT),
        mu=np.tile([share, 1.0 - share], (2, 1)),
        pi=np.full((2, 2), 0.5),
        Phi=np.array([[1.0], [1.05 + flaw]]),
    )
