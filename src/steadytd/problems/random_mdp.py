"""A random problem of any size, drawn from a seed: transitions, rewards, policies and features.

Every row of transition probabilities is drawn evenly from all distributions (a flat Dirichlet), as
the gaps between sorted uniform numbers. Rewards and features are uniform in [-1, 1). The target
policy is flat Dirichlet too; the behaviour policy is the mean of such a one and the uniform policy,
so that no importance ratio exceeds twice the number of actions. Everything comes from the seed, and
other sizes give other problems.

Named fact: seed 0 with 20 states, 3 actions and 5 features has the best linear error 0.5040.

Source: our own, in the place of the random problems of Dann, Neumann & Peters (2014).
"""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.numbers import one_seed, require_room, whole
from steadytd.base.random import PROBLEM, uniforms
from steadytd.mdp.problem import Problem
from steadytd.problems._common import number


def make(
    seed: int = 0, states: int = 20, actions: int = 3, features: int = 5, gamma: float = 0.9
) -> Problem:
    """The problem of a seed and of these sizes."""
    S, A = whole("states", states, 1), whole("actions", actions, 1)
    require_room(f"random_mdp with {S:,} states and {A:,} actions", 40.0 * A * S * S, "use fewer")
    d = whole("features", features, 1)
    discount = number("gamma", gamma, 0.0, 1.0, open_at="high")
    draw = _Draw(one_seed(seed))
    P = draw.distributions(S * A, S).reshape(S, A, S)
    r = draw.signed(S * A).reshape(S, A)
    mu = (draw.distributions(S, A) + 1.0 / A) / 2.0
    pi = draw.distributions(S, A)
    return Problem(
        name="random_mdp",
        doc=__doc__ or "",
        P=P,
        r=r,
        gamma=np.array(discount),
        mu=mu,
        pi=pi,
        Phi=draw.signed(S * d).reshape(S, d),
    )


class _Draw:
    """The numbers of a seed, one after the other."""

    def __init__(self, seed: int) -> None:
        self.seed, self.used = seed, 0

    def numbers(self, count: int) -> Floats:
        """The next numbers, each in [0, 1)."""
        found = uniforms(self.seed, PROBLEM, count, self.used)
        self.used += count
        return found

    def signed(self, count: int) -> Floats:
        """Uniform in [-1, 1)."""
        return 2.0 * self.numbers(count) - 1.0

    def distributions(self, count: int, n: int) -> Floats:
        """`count` distributions over n things: the n gaps that n - 1 sorted numbers leave."""
        cuts = np.sort(self.numbers(count * (n - 1)).reshape(count, n - 1), axis=1)
        edges = np.concatenate([np.zeros((count, 1)), cuts, np.ones((count, 1))], axis=1)
        return np.diff(edges, axis=1)
