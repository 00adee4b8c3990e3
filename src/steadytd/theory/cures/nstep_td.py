"""n-step TD with a ratio per step: the bootstrap comes n steps later.

    A_n = Phi' D (I - P_gamma^n) Phi,    b_n = Phi' D sum_{k<n} P_gamma^k r_pi.

n = 1 is TD; as n grows, A_n goes to G and the fixed point to the best linear fit. From some n on
all are stable. With s_n the largest row sum of P_gamma^n and c_n = max_j (d'P_gamma^n)_j/d_j,
||P_gamma^n||^2 <= q_n = s_n c_n in the d_mu norm, and A_n is positive definite if q_n < 1. As
q_{m+n} <= q_m q_n, it is enough that q_n < 1 for all n from N to 2N - 1: then so for all n >= N.
"""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.mdp.moments import Expectation, Moments
from steadytd.theory.cures.cure import Cure, Setting

NAME = __name__.rpartition(".")[2]
MOST = 2000  # steps looked at


def cure(setting: Setting) -> Cure:
    """The number of steps."""
    systems = Systems(setting)
    certain = certain_from(setting.m)
    return Cure(
        name=NAME, amount="n", setting=setting, system=systems, low=1.0, whole=True,
        high=MOST if certain is None else float("inf"), certain=certain, noise=systems.noise,
    )  # fmt: skip


class Systems:
    """A_n and b_n on the row space, each from the one before."""

    def __init__(self, setting: Setting) -> None:
        self.s = setting
        self.ahead: Floats = setting.m.Phi @ setting.Q  # P_gamma^n Phi
        self.reward: Floats = setting.m.r_pi  # P_gamma^n r_pi
        self.back: Floats = (setting.m.Phi @ setting.Q * setting.m.d[:, None]).T
        self.weights = [0.0 * setting.m.d]
        self.found = [Expectation(M=0.0 * setting.G, g=0.0 * setting.b)]

    def __call__(self, n: float) -> Expectation:
        """The mean update of n steps."""
        while len(self.found) <= n:
            g = self.found[-1].g + self.back @ self.reward
            self.ahead = self.s.m.P_gamma @ self.ahead
            self.reward = self.s.m.P_gamma @ self.reward
            self.found.append(Expectation(M=self.s.G - self.back @ self.ahead, g=g))
        return self.found[int(n)]

    def noise(self, n: float) -> float:
        """The root of the mean sum of squares of the n products: V_n = E rho^2 + K V_{n-1}."""
        now, ahead = self.s.squares
        with np.errstate(over="ignore", invalid="ignore"):
            while len(self.weights) <= n:
                self.weights.append(now + ahead @ self.weights[-1])
        return float(np.sqrt(self.s.m.d @ self.weights[int(n)] / self.s.m.d.sum()))


def certain_from(m: Moments) -> float | None:
    """The smallest N with q_n < 1 from N to 2N - 1; None if that is not seen."""
    inner = m.P_gamma[np.ix_(m.visited, m.visited)]
    d = m.d[m.visited]
    rows, columns, since = np.ones(len(d)), d, 1
    for n in range(1, 2 * MOST):
        rows, columns = inner @ rows, columns @ inner
        if rows.max() * (columns / d).max() >= 1.0 - 1e-12:
            since = n + 1
        elif n >= 2 * since - 1:
            return float(since)
    return None
