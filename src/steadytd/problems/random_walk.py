"""A random walk over five states, with three sets of features: tabular, inverted, dependent.

An episode begins in the middle and ends on leaving the row: to the left with reward -1, to the
right with reward 1. No discount. The behaviour policy goes both ways evenly, the target policy left
with probability 0.4. The end is a transition with discount 0 to the middle, so that a restart takes
no step.

Tabular features are the unit vectors; inverted ones are 1/2 everywhere but in the own place;
dependent ones are the three-bit patterns 100, 110, 111, 011, 001, scaled to length 1.

Named fact: d = (1, 2, 3, 2, 1)/9, and with odds 2 : 3 of left to right the walk leaves from state s
on the right with probability (1 - (2/3)^(s+1)) / (1 - (2/3)^6).

Source: Sutton, Maei et al. (2009); the policies are those of Ghiassian, Patterson et al. (2020),
Gradient temporal-difference learning with regularized corrections, Figure 1.
"""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.mdp.problem import Problem
from steadytd.problems._common import one_of

STATES, LEFT, RIGHT = 5, 0, 1
MIDDLE = STATES // 2
KINDS = ("tabular", "inverted", "dependent")


def make(features: str = "tabular") -> Problem:
    """The walk with one of the three sets of features."""
    P = np.zeros((STATES, 2, STATES))
    P[range(1, 5), LEFT, range(4)] = P[range(4), RIGHT, range(1, 5)] = 1.0
    P[0, LEFT, MIDDLE] = P[4, RIGHT, MIDDLE] = 1.0
    gamma = np.ones_like(P)
    gamma[0, LEFT] = gamma[4, RIGHT] = 0.0
    r = np.zeros((STATES, 2))
    r[0, LEFT], r[4, RIGHT] = -1.0, 1.0
    start = np.zeros(STATES)
    start[MIDDLE] = 1.0
    return Problem(
        name="random_walk",
        doc=__doc__ or "",
        P=P,
        r=r,
        gamma=gamma,
        mu=np.full((STATES, 2), 0.5),
        pi=np.tile([0.4, 0.6], (STATES, 1)),
        Phi=_features(one_of("features", features, KINDS)),
        start=start,
    )


def _features(kind: str) -> Floats:
    if kind == "tabular":
        return np.eye(STATES)
    if kind == "inverted":
        return (1.0 - np.eye(STATES)) / 2.0
    patterns = np.array([[1.0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]])
    return np.asarray(patterns / np.linalg.norm(patterns, axis=1, keepdims=True))
