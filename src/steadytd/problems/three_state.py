"""The paper's three-state chain: reward 1 everywhere, value 10; two features cannot represent it.

Left leads 0 -> 0, 1 -> 0, 2 -> 1; right leads 0 -> 1, 1 -> 2, 2 -> 2. The behaviour policy clings
to the ends, the target policy leaves them at once.

Named fact: A(eta) is positive definite from eta = 29/70 on, and the best error in the span of the
features, 2.5482, is attained by perturbed TD at eta = 18/35.

Source: Section VI and Figures 3 and 4 of the paper.
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.problem import Problem


def make() -> Problem:
    """The problem with the paper's values."""
    P = np.zeros((3, 2, 3))
    for state, (left, right) in enumerate([(0, 1), (0, 2), (1, 2)]):
        P[state, 0, left] = P[state, 1, right] = 1.0
    return Problem(
        name="three_state",
        doc=__doc__ or "",
        P=P,
        r=np.ones((3, 2, 3)),
        gamma=np.array(0.9),
        mu=np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]),
        pi=np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]),
        Phi=np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]),
        w0=np.zeros(2),
    )
