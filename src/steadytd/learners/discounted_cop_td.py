"""Discounted COP-TD: TD weighted by a learned ratio of state distributions.

Background: COP-TD with a forgetting factor: the ratio of a target policy that is restarted from the
data from time to time. With features that cannot represent the ratio it may be unstable: on all
three of the paper's tasks its mean update is, at g = 0.9, as the certificate shows.

Update (a = ratio α; c(s) = cᵀx is the learned ratio)::

    c ← c + a (g ρ c(s) + 1 - g - c(s')) x'
    δ = r + γ' wᵀx' - wᵀx
    w ← w + α c(s) ρ δ x

Fixed point: (G - g Φᵀ P_πᵀ D Φ) c = (1 - g) Φᵀ d, then
Φᵀ D diag(c(s)) (I - P_γ) Φ w = Φᵀ D diag(c(s)) r_π. With a table for c, c d is
(1 - g) (I - g P_πᵀ)⁻¹ d: the emphasis of ETD(0, β = g), learned instead of sampled, hence with
much less variance. With features, c is an approximation. At g = 1 the right-hand side is 0, c would
be 0 and w would never move: g = 1 is refused.

Parameters: alpha > 0, ratio > 0 (step size of c / alpha, default 10), g in [0, 0.999]
(default 0.9).

Example::

    steadytd run three_state discounted_cop_td:alpha=0.001 --steps 100000 --seeds 10

Reference: Gelada & Bellemare (2019), "Off-policy deep reinforcement learning by bootstrapping the
covariate shift".

Differs from the paper: 1. linear c without the soft normalisation, which the discount g < 1 makes
unnecessary; c starts at 0.

Reduces to: td at g = 0 if the features contain a constant and c has settled at 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.linalg

from steadytd.engine.law import RATIO, Param, law
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """c's own linear system; w's with c at its fixed point."""
    m.require_everywhere("discounted_cop_td")
    ratio, g = values["ratio"], values["g"]
    M_c = m.G - g * m.Phi.T @ m.P_pi.T @ (m.d[:, None] * m.Phi)
    g_c = (1 - g) * m.Phi.T @ m.d
    c = m.Phi @ m.least_squares(M_c, g_c)
    e = m.emphatic(m.d * c, lam=0.0)
    M = scipy.linalg.block_diag(e.M, ratio * M_c)
    return Expectation(M=M, g=np.concatenate([e.g, ratio * g_c]))


@law(
    params={"ratio": RATIO, "g": Param("discount of the ratio", default=0.9, low=0.0, high=0.999)},
    writes={"w": "x", "c": "x_next"},
    expectation=expectation,
    settled=("c",),
)
def discounted_cop_td(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    c_x: float,
    c_x_next: float,
    alpha: float,
    ratio: float,
    g: float,
) -> tuple[float, float]:
    """The multiples of x to add to w and of x' to add to c."""
    delta = reward + gamma_next * w_x_next - w_x
    w = alpha * c_x * rho * delta
    c = ratio * alpha * (g * rho * c_x + 1 - g - c_x_next)
    return w, c
