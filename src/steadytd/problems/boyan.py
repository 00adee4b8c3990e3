"""Boyan's chain: thirteen states, four features that represent the value exactly; on-policy.

An episode begins in state 12. From s >= 2 it goes to s - 1 or s - 2, evenly, with reward -3, and
from 1 to 0 with reward -2. No discount. The features of the states 12, 8, 4 and 0 are the unit
vectors; in between they are interpolated. There is one action, so behaviour and target agree.

State 0 is the last one of an episode and has features of its own, as in the publication. Here it
is a state like the others: one more step, with reward 0 and discount 0, leads to state 12 and the
next episode. So v(0) = 0 is learned like the other values, and v = -2 s holds in all 13 states.

Named fact: v(s) = -2 s, represented by the weights (-24, -16, -8, 0).

Source: Boyan (2002), Technical update: least-squares temporal difference learning.
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.problem import Problem

STATES, ANCHORS = 13, (12, 8, 4, 0)


def make() -> Problem:
    """The problem with the published values."""
    P = np.zeros((STATES, 1, STATES))
    P[0, 0, 12] = P[1, 0, 0] = 1.0
    gamma = np.ones_like(P)
    gamma[0] = 0.0
    r = np.full((STATES, 1), -3.0)
    r[:2, 0] = 0.0, -2.0
    for s in range(2, STATES):
        P[s, 0, [s - 1, s - 2]] = 0.5
    away = np.abs(np.subtract.outer(np.arange(STATES), ANCHORS)) / 4.0
    start = np.zeros(STATES)
    start[12] = 1.0
    one = np.ones((STATES, 1))
    return Problem(
        name="boyan",
        doc=__doc__ or "",
        P=P,
        r=r,
        gamma=gamma,
        mu=one,
        pi=one,
        Phi=np.maximum(0.0, 1.0 - away),
        w0=np.zeros(len(ANCHORS)),
        start=start,
    )
