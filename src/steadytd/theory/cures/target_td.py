"""A target network that follows slowly, with a ridge.

    w    += alpha (rho (r + gamma' wbar.x' - w.x) x - ridge w)
    wbar += ratio alpha (w - wbar)

With C = Phi' D P_gamma Phi the mean update of (w, wbar) has the matrix
[[G + ridge I, -C], [-ratio I, ratio I]], and the fixed point (A + ridge I) w = b. As ratio goes to
0, w is always where wbar leads it, and wbar follows the matrix
I - (G + ridge I)^-1 C = (G + ridge I)^-1 (A + ridge I): the slow time scale. That one is certainly
stable if ||C|| < lambda_min(G) + ridge.
"""

from __future__ import annotations

import numpy as np

from steadytd.learners import learner
from steadytd.mdp.moments import Expectation
from steadytd.theory.cures.cure import Cure, Setting

NAME = __name__.rpartition(".")[2]
RATIO = 0.1  # of the two step sizes, on one time scale


def cure(setting: Setting) -> Cure:
    """The ridge, with both step sizes of one order."""
    s = setting
    still, C = np.zeros(s.rank), s.G - s.A
    follow = RATIO * s.identity

    def system(ridge: float) -> Expectation:
        M = np.block([[s.G + ridge * s.identity, -C], [-follow, follow]])
        return Expectation(M=M, g=np.concatenate([s.b, still]))

    return Cure(
        name=NAME, amount="ridge", setting=s, system=system, settings={"ratio": RATIO},
        learner=lambda ridge: learner(NAME, alpha=1.0, ratio=RATIO, ridge=ridge),
    )  # fmt: skip


def slow(setting: Setting) -> Cure:
    """The ridge, with a target that moves infinitely slowly."""
    s = setting

    def system(ridge: float) -> Expectation:
        held = s.G + ridge * s.identity
        M = np.asarray(np.linalg.solve(held, s.A + ridge * s.identity))
        return Expectation(M=M.astype(np.float64), g=np.linalg.solve(held, s.b).astype(np.float64))

    certain = (np.linalg.norm(s.G - s.A, 2) - np.linalg.eigvalsh(s.G)[0]) / s.m.share
    return Cure(
        name=NAME, amount="ridge", setting=s, system=system, settings={"ratio": "slow"},
        certain=max(0.0, float(certain)), comparable=False,
    )  # fmt: skip
