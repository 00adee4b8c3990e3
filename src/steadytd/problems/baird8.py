"""Baird's counterexample with seven corners and a centre: nine features for eight states.

The 8-state version that is used in software for comparisons. Solid leads to the centre, dotted
evenly to a corner. The behaviour policy takes dotted with probability 7/8, the target policy always
solid. No rewards. Corner i has the features 2 e_i + e_8, the centre e_7 + 2 e_8.

Named fact: the mean update of perturbed TD is stable from eta = 0.176 on.

Source: Baird (1995); Dann, Neumann & Peters (2014), policy evaluation with temporal differences,
and their program tdlearn.
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.problem import Problem

CORNERS = 7


def make() -> Problem:
    """The problem with the published values."""
    S = CORNERS + 1
    P = np.zeros((S, 2, S))
    P[:, 0, CORNERS] = 1.0
    P[:, 1, :CORNERS] = 1.0 / CORNERS
    Phi = np.zeros((S, S + 1))
    Phi[range(CORNERS), range(CORNERS)] = 2.0
    Phi[:CORNERS, S] = 1.0
    Phi[CORNERS, CORNERS], Phi[CORNERS, S] = 1.0, 2.0
    return Problem(
        name="baird8",
        doc=__doc__ or "",
        P=P,
        r=np.zeros((S, 2, S)),
        gamma=np.array(0.99),
        mu=np.tile([1.0 / S, CORNERS / S], (S, 1)),
        pi=np.tile([1.0, 0.0], (S, 1)),
        Phi=Phi,
        w0=np.array([1.0] * CORNERS + [10.0, 1.0]),
    )
