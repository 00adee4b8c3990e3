"""Emphatic TD(λ): TD whose updates are weighted by a follow-on trace of past ratios.

Background: Instead of changing the objective, change how much each state counts: by how often the
target policy would visit it if it were started where the data are. These weights make TD's matrix
positive definite for every pair of policies. One vector and one number; the number is a product of
ratios, so its variance can be infinite.

Update::

    F = γ ρₜ₋₁ F + i      (follow-on trace; i is the interest in the state)
    M = λ i + (1 - λ) F   (emphasis)
    z = ρ (γ λ z + M x)
    δ = r + γ' wᵀx' - wᵀx
    w ← w + α δ z

Fixed point: Φᵀ diag(m) (I - λ P_γ)⁻¹ (I - P_γ) Φ w = Φᵀ diag(m) (I - λ
P_γ)⁻¹ r_π with m = λ d i + (1 - λ) f, f = (I - P_γᵀ)⁻¹ (d i). The matrix is positive
definite for every pair of policies on the row space of the features, if the interest is positive,
so the *mean* update is stable. The price is variance: F is a product of ratios and its variance may
be infinite (it is on all three of the paper's tasks). Then single runs can go far from their
mean and may diverge; the certificate has both verdicts.

Parameters: alpha > 0, lam in [0, 1].

Example::

    steadytd run three_state etd:alpha=0.0001 --steps 100000 --seeds 10

Reference: Sutton, Mahmood & White (2016), "An emphatic approach to the problem of off-policy
temporal-difference learning".

Differs from the paper: nothing.

Reduces to: td with λ = 1, up to the interest.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadytd.engine.law import LAM, Role, law
from steadytd.mdp.moments import Expectation, Moments


def follow_on(gamma: float, rho_prev: float, F: float, interest: float) -> float:
    """F <- gamma rho_{t-1} F + i."""
    return gamma * rho_prev * F + interest


def emphatic_trace(
    rho: float, gamma: float, lam: float, F: float, interest: float
) -> tuple[float, float]:
    """z <- rho (gamma lam z + M x)."""
    M = lam * interest + (1 - lam) * F
    return rho * gamma * lam, rho * M


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """TD(lam)'s with the emphasis lam d i + (1 - lam) f in place of d."""
    lam = values["lam"]
    return m.emphatic(lam * m.d * m.interest + (1 - lam) * m.follow_on, lam)


@law(
    params={"lam": LAM},
    memory={"F": follow_on},
    traces={"z": emphatic_trace},
    writes={"w": "z"},
    idle_at_rho_zero=True,
    expectation=expectation,
    role=Role(4, "lsetd"),
)
def etd(reward: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float) -> float:
    """w += alpha delta z, where z carries the emphasis."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * delta
