"""The "theta to 2 theta" example: two states, one feature, value 0; off-policy TD diverges.

Both actions are possible in both states: left leads to state 0, right to state 1. The behaviour
policy takes them evenly, the target policy always goes right. Features 1 and 2, no rewards.

Named fact: the smallest eta that makes A(eta) positive definite is 0.08.

Source: Tsitsiklis & Van Roy (1996); Sutton, Mahmood & White (2016), Section 3; Figure 1 of the
paper.
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.problem import Problem


def make() -> Problem:
    """The problem with the paper's values."""
    P = np.zeros((2, 2, 2))
    P[:, 0, 0] = P[:, 1, 1] = 1.0
    return Problem(
        name="theta2theta",
        doc=__doc__ or "",
        P=P,
        r=np.zeros((2, 2, 2)),
        gamma=np.array(0.9),
        mu=np.full((2, 2), 0.5),
        pi=np.array([[0.0, 1.0], [0.0, 1.0]]),
        Phi=np.array([[1.0], [2.0]]),
        w0=np.array([1.0]),
    )
