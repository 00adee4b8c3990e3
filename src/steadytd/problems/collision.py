"""Collision: drive on or turn off before the end; six random binary features for eight states.

A vehicle drives through states 0 to 7. Forward leads from s to s + 1, from 7 to the end with reward
1, the only reward. Retreat ends the episode. An episode begins evenly in one of the states 0 to 3,
in which the behaviour policy always drives on; from state 4 on it turns off half of the time. The
target policy always drives on. The end is a transition with discount 0 to the start of the next
episode, so that a restart takes no step.

A family: every seed draws its own features, for each state one of the 20 patterns of six bits with
three ones. Nothing else depends on the seed.

Named fact: v(s) = 0.9^(7-s), d = (2,4,6,8,8,4,2,1)/35 and the error of zero is 0.68908; the mean
over 50 feature maps is 0.071 for the best linear fit, 0.306 for TD(0)'s fixed point, 0.111 for
ETD(0)'s.

Source: Ghiassian & Sutton (2021), An empirical comparison of off-policy prediction learning
algorithms on the Collision task; the means over maps were computed with their 50 maps.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.numbers import one_seed
from steadytd.base.random import PROBLEM, uniforms
from steadytd.mdp.problem import Problem

FAMILY = True
STATES, STARTS, FEATURES, ONES = 8, 4, 6, 3
FORWARD, RETREAT = 0, 1


def make(seed: int = 0) -> Problem:
    """Instance `seed` of the family: the features are drawn from it."""
    P = np.zeros((STATES, 2, STATES))
    P[range(7), FORWARD, range(1, 8)] = 1.0
    P[7, FORWARD, :STARTS] = P[:, RETREAT, :STARTS] = 1.0 / STARTS
    gamma = np.zeros_like(P)
    gamma[range(7), FORWARD, range(1, 8)] = 0.9
    r = np.zeros_like(P)
    r[7, FORWARD] = 1.0
    mu = np.full((STATES, 2), 0.5)
    mu[:STARTS] = [1.0, 0.0]
    start = np.zeros(STATES)
    start[:STARTS] = 1.0 / STARTS
    return Problem(
        name="collision",
        doc=__doc__ or "",
        P=P,
        r=r,
        gamma=gamma,
        mu=mu,
        pi=np.tile([1.0, 0.0], (STATES, 1)),
        Phi=features(seed),
        w0=np.zeros(FEATURES),
        start=start,
    )


def features(seed: int) -> Floats:
    """State s takes pattern floor(20 u_s) of the 20 patterns in the order of their first ones."""
    patterns = list(combinations(range(FEATURES), ONES))
    numbers = uniforms(one_seed(seed), PROBLEM, STATES)
    Phi = np.zeros((STATES, FEATURES))
    for s, u in enumerate(numbers):
        Phi[s, list(patterns[int(u * len(patterns))])] = 1.0
    return Phi
