"""CTDC: TDC on centred TD errors; what all errors have in common is learned as one number.

Background: A discounted value is a constant plus what makes states differ. CTDC learns the mean of
the TD error as a number ω beside the weights and takes it from every error. So w learns only what
makes states differ, and rewards may be shifted by a constant without changing w's fixed point.

Update (ρ = π(s, a) / μ(s, a), β = ratio α)::

    δ = r + γ' wᵀx' - wᵀx
    e = ρ δ - ω
    w ← w + α (e x - γ' ρ (hᵀx) x')
    h ← h + β (e - hᵀx) x
    ω ← ω + center α e

Fixed point: C w = c and h = 0, with C = A - (Φᵀd) (Φᵀ(I - γP)ᵀd)ᵀ / Σd, the covariance of x with
ρ (x - γ' x'), and c that of x with ρ r; ω is the mean of ρ δ there. Values are meant up to a
constant; the error that is shown is that of wᵀx alone. On two time scales w moves by
Aᵀ G⁻¹ (c - C w): the correction is not centred, so this is no gradient. Where det A and det C have
opposite signs, the mean update is unstable whatever the step sizes, and so it is on theta2theta and
three_state. Where the features span constants and γ is constant, as on Baird's problem, C is
singular, and one direction of w stays as it is.

Parameters: alpha > 0, ratio > 0 (step size of h / alpha, default 10), center > 0 (step size of
ω / alpha, default 1).

Example::

    steadytd run nonmonotone ctdc:alpha=0.001,ratio=10,center=1 --steps 100000 --seeds 10

Reference: Chen, Gong, Yang & Wang (2025), "Bellman error centering", arXiv:2502.03104; the update
was read in its authors' public code and in an earlier paper of theirs, where it is called VMTDC.

Differs from the paper: 1. all three step sizes are multiples of one.

Reduces to: tdc as center goes to 0 with ω = 0, but for the trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from steadytd.engine.law import RATIO, law
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """M = [[A, B, e], ratio [A, G, e], center [f, 0, Σd]] with B = G - A', e = Φ'd."""
    A, b, ratio, center = m.A(), m.b(), values["ratio"], values["center"]
    mean = (m.Phi.T @ m.d)[:, None]
    errors = m.d @ (m.Phi - m.P_gamma @ m.Phi)
    M = np.block([
        [A, m.B(), mean],
        [ratio * A, ratio * m.G, ratio * mean],
        [center * errors, np.zeros(len(b)), np.array([center * m.d.sum()])],
    ])  # fmt: skip
    return Expectation(M=M, g=np.concatenate([b, ratio * b, [center * (m.d @ m.r_pi)]]))


@law(
    params={
        "ratio": RATIO,
        "center": replace(RATIO, doc="step size of the mean error / alpha", default=1.0),
    },
    writes={"w": ("x", "x_next"), "h": "x", "omega": "1"},
    expectation=expectation,
)
def ctdc(
    reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, h_x: float,
    omega: float, alpha: float, ratio: float, center: float,
) -> tuple[tuple[float, float], float, float]:  # fmt: skip
    """The multiples of (x, x') to add to w and of x to add to h, and what to add to ω."""
    error = rho * (reward + gamma_next * w_x_next - w_x) - omega
    w = alpha * error, -alpha * gamma_next * rho * h_x
    return w, ratio * alpha * (error - h_x), center * alpha * error
