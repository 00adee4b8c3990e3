"""Two states on which the naive combination of perturbed TD with a trace diverges.

The target policy walks 0 -> 1 and stays. The behaviour policy goes to state 1 with probability 0.1
and to state 0 otherwise. One feature, 1 and -1, no rewards. Meant for lam = 0.9, the discount.

Named fact: TD(0.9) is stable. If the trace decays with gamma lam while the error delta has the
penalty (1 + eta), the mean update has A_lam + eta K with K = Phi' D (I - gamma lam P)^-1 Phi, which
is negative here: it diverges for every eta > 0.572. Both forms of the trace that `perturbed_td`
offers are stable.

Source: our own; `docs/theory.md`.
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.problem import Problem
from steadytd.problems._common import realise


def make() -> Problem:
    """The problem as in the theory."""
    chain = np.array([[0.0, 1.0], [0.0, 1.0]])
    P, mu, pi = realise(chain, np.array([0.9, 0.1]), share=0.1)
    return Problem(
        name="naive_trace",
        doc=__doc__ or "",
        P=P,
        r=np.zeros((2, 2, 2)),
        gamma=np.array(0.9),
        mu=mu,
        pi=pi,
        Phi=np.array([[1.0], [-1.0]]),
        w0=np.ones(1),
    )
