"""Baird's 7-star without discount: off-policy differential TD diverges if its rate is slow.

States, actions, policies and features are those of `baird`. There is no discount, so what is
learned is the mean reward per step and the differential values; without rewards both are 0. The
features span all functions of the state, constants too.

Named fact: the mean update of differential TD is unstable where the step size of the rate is less
than 2/7 of alpha, and stable where it is more.

Source: ours, after Baird (1995); that off-policy differential TD can diverge is in Zhang, Wan,
Sutton & Whiteson (2021), "Average-reward off-policy policy evaluation with function approximation".
"""

from __future__ import annotations

from steadytd.mdp.problem import Problem
from steadytd.problems.baird import make as discounted


def make() -> Problem:
    """The discounted problem's arrays without its discount."""
    p = discounted()
    return Problem(
        name="average_baird", doc=__doc__ or "", P=p.P, r=p.r, gamma=1.0, mu=p.mu, pi=p.pi,
        Phi=p.Phi, w0=p.w0, average_reward=True,
    )  # fmt: skip
