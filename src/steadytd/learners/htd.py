"""HTD(λ): hybrid TD, a gradient method that is exactly TD when the data are on-policy.

Background: Gradient methods pay for stability even when the data are on-policy. HTD keeps two
traces, one for each policy, and lets their difference switch the correction on: no difference, no
correction, plain TD.

Update (β = ratio α)::

    δ = r + γ' wᵀx' - wᵀx
    z = ρ (γ λ z + x)   (trace along the target policy)
    y = γ λ y + x       (trace along the behaviour policy)
    w ← w + α (δ z + (x - γ' x') ((z - y)ᵀh))
    h ← h + β (δ z - (x - γ' x') (yᵀh))

Fixed point: A_λ w = b_λ and h = 0, the same as TD's. On-policy z = y and the correction
vanishes. Off-policy h is driven by the behaviour policy's own matrix
A_μ = Φᵀ D (I - λ P_μ)⁻¹ (I - P_μ) Φ (with discounts), which is positive definite; no
general guarantee is known for one time scale.

Parameters: alpha > 0, ratio > 0 (beta/alpha, default 10), lam in [0, 1].

Example::

    steadytd run three_state htd:alpha=0.001,ratio=1 --steps 100000 --seeds 10

Reference: White & White (2016), "Investigating practical linear temporal difference learning",
Hackman (2012), hybrid TD.

Differs from the paper: 1. the trace y is called z^b there.

Reduces to: td when ρ = 1 throughout.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.engine.law import LAM, RATIO, accumulating_trace, law
from steadytd.mdp.moments import Expectation, Moments


def behaviour_trace(gamma: float, lam: float) -> tuple[float, float]:
    """y <- gamma lam y + x."""
    return gamma * lam, 1.0


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """M = [[A, A_mu' - A'], [ratio A, ratio A_mu']], g = (b, ratio b)."""
    lam, ratio = values["lam"], values["ratio"]
    A, b = m.A(lam), m.b(lam)
    behaviour = m.flow(m.mu)
    step = m.settled(lam * behaviour, m.Phi - behaviour @ m.Phi, "traces of mu")
    A_mu = (m.Phi * m.d[:, None]).T @ step
    M = np.block([[A, A_mu.T - A.T], [ratio * A, ratio * A_mu.T]])
    return Expectation(M=M, g=np.concatenate([b, ratio * b]))


@law(
    params={"ratio": RATIO, "lam": LAM},
    traces={"z": accumulating_trace, "y": behaviour_trace},
    writes={"w": ("z", "x", "x_next"), "h": ("z", "x", "x_next")},
    expectation=expectation,
)
def htd(
    reward: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    h_z: float,
    h_y: float,
    alpha: float,
    ratio: float,
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """The multiples of (z, x, x') to add to w and to h."""
    delta = reward + gamma_next * w_x_next - w_x
    beta = ratio * alpha
    correction = alpha * (h_z - h_y)
    w = alpha * delta, correction, -gamma_next * correction
    h = beta * delta, -beta * h_y, beta * gamma_next * h_y
    return w, h
