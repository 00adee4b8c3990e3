"""TDC as the paper's authors ran it: without an importance ratio, or with π in its place.

Background: This is not an algorithm to use. The paper compares against TDC, and the code
behind its figures leaves the importance ratio out (`weight=none`); its last notebooks weight every
term by the target policy's probability (`weight=pi`). To reproduce the figures one needs that
code's arithmetic; to judge the comparison one needs to know what it converges to.

Update (ω = 1 with weight none, π(s, a) with weight pi; β = ratio α)::

    δ = r + γ' wᵀx' - wᵀx
    z = ω (γ λ z + x)
    w ← w + α (δ z - γ' (1 - λ) (hᵀz) x')
    h ← h + β (δ z - ω (hᵀx) x)

w starts at w₀ and h at h₀ w₀. The figures have h₀ = 0; the last notebook on Baird has h₀ = 1.

Fixed point: with c(s) = Σ_a μ ω and Q[s, s'] = Σ_a μ ω p γ in the place of 1 and
P_γ, Φᵀ D (I - λ Q)⁻¹ (diag(c) - Q) Φ w = Φᵀ D (I - λ Q)⁻¹ r_c and h = 0. Without a
weight this is on-policy TDC of the *behaviour* policy: c = 1, Q is the behaviour policy's own
P_γ, and the weights say what μ is worth, not what π is worth. With weight pi they belong to
neither policy. It is here so that the paper's Figures 1 to 3 and its supplement can be reproduced
and explained, and for nothing else; use `tdc`.

Parameters: alpha > 0, ratio > 0 (beta/alpha; the notebooks use 10), lam in [0, 1], h0 (h starts at
h0 times w0), weight none or pi.

Example::

    steadytd run three_state tdc_as_published:alpha=0.0001,ratio=10 --steps 1000000 --seeds 10

Reference: the notebooks published with Diddigi, Kamanchi & Bhatnagar, "A convergent off-policy
temporal difference algorithm", in their first (none) and their last (pi) version.

Differs from the paper: 1. the paper cites TDC, which has ρ; the figures were made without it.
2. traces are ours, so that all learners have the same parameters.

Reduces to: with weight none, tdc on policy, where π = μ; with weight pi, tdc if μ(s, a) = 1 for
the actions taken.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.engine.law import LAM, RATIO, Param, Role, law
from steadytd.mdp.moments import Expectation, Moments

PARAMS = {"ratio": RATIO, "lam": LAM, "h0": Param("h starts at h0 times w0", default=0.0)}
Multiples = tuple[tuple[float, float], tuple[float, float]]


def unweighted_trace(gamma: float, lam: float) -> tuple[float, float]:
    """z <- gamma lam z + x."""
    return gamma * lam, 1.0


def pi_trace(pi: float, gamma: float, lam: float) -> tuple[float, float]:
    """z <- pi (gamma lam z + x)."""
    return pi * gamma * lam, pi


def weighted(m: Moments, values: Mapping[str, float], weight: Floats) -> Expectation:
    """TDC's matrices with the weights mu omega [s, a] in the place of pi."""
    lam, ratio = values["lam"], values["ratio"]
    m.require_array("tdc_as_published")
    c, Q = weight.sum(axis=1), m.flow(weight)
    r_c = np.einsum("sa,sat,sat->s", weight, m.P, m.r)
    collected = (m.Phi * m.d[:, None]).T @ np.linalg.inv(np.eye(len(c)) - lam * Q)
    A = collected @ (c[:, None] * m.Phi - Q @ m.Phi)
    B = (1 - lam) * (collected @ Q @ m.Phi).T
    G = m.weighted(np.diag(c))
    b = collected @ r_c
    M = np.block([[A, B], [ratio * A, ratio * G]])
    return Expectation(M=M, g=np.concatenate([b, ratio * b]))


@law(
    name="tdc_as_published",
    params=PARAMS,
    traces={"z": pi_trace},
    writes={"w": ("z", "x_next"), "h": ("z", "x")},
    starts={"h": "h0"},
    idle_at_rho_zero=True,
    expectation=lambda m, values: weighted(m, values, m.mu * m.pi),
)
def with_pi(
    reward: float, pi: float, gamma_next: float, w_x: float, w_x_next: float, h_x: float,
    h_z: float, alpha: float, ratio: float, lam: float,
) -> Multiples:  # fmt: skip
    """The multiples of (z, x') to add to w and of (z, x) to add to h, weighted by pi."""
    delta = reward + gamma_next * w_x_next - w_x
    beta = ratio * alpha
    w = alpha * delta, -alpha * gamma_next * (1 - lam) * h_z
    return w, (beta * delta, -beta * pi * h_x)


@law(
    params=PARAMS,
    traces={"z": unweighted_trace},
    writes={"w": ("z", "x_next"), "h": ("z", "x")},
    starts={"h": "h0"},
    expectation=lambda m, values: weighted(m, values, m.mu),
    variant_param="weight",
    variants={"none": None, "pi": with_pi},
    role=Role(exhibit=True),
)
def tdc_as_published(
    reward: float, gamma_next: float, w_x: float, w_x_next: float, h_x: float,
    h_z: float, alpha: float, ratio: float, lam: float,
) -> Multiples:  # fmt: skip
    """The multiples of (z, x') to add to w and of (z, x) to add to h, without a weight."""
    delta = reward + gamma_next * w_x_next - w_x
    beta = ratio * alpha
    w = alpha * delta, -alpha * gamma_next * (1 - lam) * h_z
    return w, (beta * delta, -beta * h_x)
