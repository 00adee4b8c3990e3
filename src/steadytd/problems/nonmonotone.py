"""A chain on which more penalty is not safer: TD is stable, some perturbed TDs diverge.

The target policy walks 0 -> 1 -> 2 and stays there. The behaviour policy follows it one time in
thirty and otherwise jumps, such that it is in the three states with shares 0.54, 0.02 and 0.44. Two
features, no rewards, so the value is 0.

Named fact: the mean update is stable at eta = 0, unstable for eta between 0.0346 and 0.3337, stable
above, and A(eta) is positive definite from 0.5756 on. So the stable penalties are a set, not all
those above one number.

Source: our own, found by search; `docs/theory.md`. That a regulariser can make a stable TD diverge
is the warning of Manek & Kolter (2022).
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.problem import Problem
from steadytd.problems._common import realise


def make() -> Problem:
    """The problem as in the theory."""
    chain = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    P, mu, pi = realise(chain, np.array([0.54, 0.02, 0.44]), share=1.0 / 30.0)
    return Problem(
        name="nonmonotone",
        doc=__doc__ or "",
        P=P,
        r=np.zeros((3, 2, 3)),
        gamma=np.array(0.95),
        mu=mu,
        pi=pi,
        Phi=np.array([[0.0, 2.0], [-2.0, 2.0], [-3.0, -2.0]]),
        w0=np.ones(2),
    )
