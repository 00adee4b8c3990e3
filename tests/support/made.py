"""Problems made for one finding each: rewards where there were none, states that are left."""

from __future__ import annotations

import numpy as np

import steadytd as st
from tests.support.realised import realised


def with_rewards() -> st.Problem:
    """theta2theta with rewards (-0.8, 0.2): V = (1, 2), which is representable, with w = 1."""
    p = st.problem("theta2theta")
    return st.Problem(
        name="rewarded", P=p.P, r=[[-0.8, -0.8], [0.2, 0.2]], gamma=0.9, mu=p.mu, pi=p.pi, Phi=p.Phi
    )


def absorbing(Phi: list[list[float]]) -> st.Problem:
    """0 -> 1 or 2, 1 -> 2, and 2 for ever."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1, :, 2] = P[2, :, 2] = 1.0
    return st.Problem(
        name="absorbing", P=P, r=1.0, gamma=0.9, mu=np.full((3, 2), 0.5),
        pi=np.tile([1.0, 0.0], (3, 1)), Phi=Phi, start=[1.0, 0.0, 0.0],
    )  # fmt: skip


def two_modes() -> st.Problem:
    """TD is unstable, eta in (0.119, 0.338) is stable, and there both signs are right: V = Phi 1.

    The chain is 0 -> 0, 1 -> 2, 2 -> 0.
    """
    P = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    Phi = np.array([[3.0, -2.0], [-1.0, 1.0], [0.0, 3.0]])
    V = Phi.sum(axis=1)
    r = np.repeat((V - 0.95 * P @ V)[:, None], 2, axis=1)
    return realised(P, [0.16, 0.83, 0.01], Phi, 0.95, r)
