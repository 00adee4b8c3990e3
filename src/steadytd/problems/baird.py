"""Baird's counterexample, the 7-star: eight features for seven states; off-policy TD diverges.

The solid action leads to state 6, the dashed one evenly to states 0 to 5. The behaviour policy
takes solid with probability 1/7, the target policy always. No rewards, so the value is 0 and
representable. The features have rank 7 of 8.

Named fact: on the row space of Phi the smallest eta that makes A(eta) positive definite is
0.80465, although the mean update is stable from 0.122 on.

Source: Baird (1995); Sutton & Barto (2018), Figure 11.1; Figure 2 of the paper. gamma, eta and w0
are those of the authors' notebooks, since the text gives none.
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.problem import Problem


def make() -> Problem:
    """The problem with the paper's values."""
    P = np.zeros((7, 2, 7))
    P[:, 0, 6] = 1.0
    P[:, 1, :6] = 1.0 / 6.0
    Phi = np.zeros((7, 8))
    Phi[range(6), range(6)] = 2.0
    Phi[:6, 7] = 1.0
    Phi[6, 6], Phi[6, 7] = 1.0, 2.0
    return Problem(
        name="baird",
        doc=__doc__ or "",
        P=P,
        r=np.zeros((7, 2, 7)),
        gamma=np.array(0.99),
        mu=np.tile([1.0 / 7.0, 6.0 / 7.0], (7, 1)),
        pi=np.tile([1.0, 0.0], (7, 1)),
        Phi=Phi,
        w0=np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 10.0, 1.0]),
    )
