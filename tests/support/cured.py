"""A few drawn problems with all their cures, computed once, and the cures' formulas again."""

from __future__ import annotations

from functools import cache

import numpy as np

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.theory.certificate import Certificate
from steadytd.theory.cure import Cure
from tests.support.helpers import random_problem
from tests.support.realised import drawn

CURED = {
    "three_state": lambda: st.problem("three_state"),
    "chain": lambda: drawn("chain", 10),
    "off_policy": lambda: drawn("off_policy", 15),
    "wide": lambda: drawn("off_policy_wide", 137),
    "interest": lambda: random_problem(3, states=4, features=2, sparse=True, interest=True),
    "second_policy": lambda: random_problem(5, states=4, features=2, policies=2),
}


@cache
def certificate(name: str) -> Certificate:
    """The certificate of one of `CURED`, of its last target policy."""
    p = CURED[name]()
    return Certificate(p, p.n_policies - 1)


class Formulas:
    """Every cure's matrix from the problem's arrays, on an orthonormal basis of the row space."""

    def __init__(self, c: Certificate) -> None:
        m = c.problem.moments(c.policy)
        self.m, self.d, self.P, self.r = m, m.d, m.P_gamma, m.r_pi
        _, s, right = np.linalg.svd(m.Phi[m.d > 0.0])
        self.Q = right[: int((s > 1e-10 * s[0]).sum())].T
        self.X = m.Phi @ self.Q
        self.G = self.X.T * self.d @ self.X
        self.C = self.X.T * self.d @ self.P @ self.X
        self.A, self.b = self.G - self.C, self.X.T * self.d @ self.r
        self.k = len(self.b)

    def weighted(self, emphasis: Floats, lam: float, scale: float = 1.0) -> tuple[Floats, Floats]:
        """TD(lam)'s system with other weights of the states and discounts times `scale`."""
        N = np.eye(len(self.d)) - lam * scale * self.P
        back = self.X.T * emphasis @ np.linalg.inv(N)
        return back @ (np.eye(len(self.d)) / scale - self.P) @ self.X, back @ self.r

    def system(self, t: Cure, a: float) -> tuple[Floats, Floats]:  # noqa: PLR0911, PLR0912
        """M and g at amount a: w <- w + alpha (g - M w); an iteration: w <- w + g - M w."""
        eye, fixed = np.eye(self.k), t.settings
        A, G, C, b = self.A, self.G, self.C, self.b
        match t.name, fixed.get("penalty", fixed.get("ratio")):
            case "perturbed_td", None:
                return A + a * G, b
            case "perturbed_td", "outside":
                M, g = self.weighted(self.d, 0.5)
                return M + a * G, g
            case "perturbed_td", "scaled":
                return self.weighted(self.d, 0.5, 1.0 / (1.0 + a))
            case "td", _:
                return self.weighted(self.d, a)
            case "etd_beta", _:
                go = a * np.einsum("sa,sat,sat->st", self.m.pi, self.m.P, self.m.gamma > 0.0)
                f = np.linalg.solve(np.eye(len(self.d)) - go.T, self.d * self.m.interest)
                return self.weighted(f, 0.0)
            case "nstep_td", _:
                powers = [np.linalg.matrix_power(self.P, k) for k in range(int(a) + 1)]
                back = self.X.T * self.d
                return G - back @ powers[-1] @ self.X, back @ sum(powers[:-1]) @ self.r
            case "truncated_etd", _:
                start = self.d * self.m.interest
                flows = [np.linalg.matrix_power(self.P.T, k) @ start for k in range(int(a) + 1)]
                return self.weighted(np.sum(flows, axis=0), 0.0)
            case "ridge_td", _:
                return A + a * eye, b
            case "target_td", "slow":
                inverse = np.linalg.inv(G + a * eye)
                return eye - inverse @ C, inverse @ b
            case "target_td", _:
                ratio = float(fixed["ratio"])
                M = np.block([[G + a * eye, -C], [-ratio * eye, ratio * eye]])
                return M, np.concatenate([b, 0.0 * b])
            case "partially_fitted", _:
                alpha = float(fixed["alpha"])
                powers = [np.linalg.matrix_power(eye - alpha * G, i) for i in range(int(a))]
                M = alpha * np.sum(powers, axis=0)
                return M @ A, M @ b
            case "tdc", _:
                return np.block([[A, C.T], [a * A, a * G]]), np.concatenate([b, a * b])
            case "gtd2", _:
                M = np.block([[0.0 * A, -A.T], [10.0 * A, 10.0 * G]])
                M[self.k :] *= a / 10.0
                return M, np.concatenate([0.0 * b, a * b])
            case "tdrc", _:
                return np.block([[A, C.T], [A, G + a * eye]]), np.concatenate([b, b])
        raise AssertionError(t.title)

    def slowest(self, t: Cure, a: float) -> float:
        """Positive exactly if the mean update or iteration leads to its fixed point."""
        modes = np.linalg.eigvals(self.system(t, a)[0])
        if t.name == "partially_fitted":
            return float(1.0 - np.abs(1.0 - modes).max())
        return float(modes.real.min())

    def error(self, c: Certificate, t: Cure, a: float) -> float:
        w = np.linalg.solve(*self.system(t, a))[: self.k]
        weights = c.problem.error_weights(c.policy)
        return float(np.sqrt(weights @ (self.X @ w - self.m.v_pi) ** 2))
