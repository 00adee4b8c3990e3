"""Perturbed emphatic TD(λ, β): the paper's penalty on top of a calmer emphasis. Our addition.

Background: Two small changes together: a follow-on trace that forgets fast enough to have finite
variance, and a penalty that gives back the stability which is lost by that.

Update::

    F = β ρₜ₋₁ F + i   (β counts as 0 on an episode's first step)
    M = λ i + (1 - λ) F
    z = ρ (γ λ / (1 + η) z + M x)
    δ = r + γ' wᵀx' - (1 + η) wᵀx
    w ← w + α δ z

Fixed point: with m = λ d i + (1 - λ) f, f = (I - β Pᵀ)⁻¹ (d i) and s = 1/(1 + η),
Φᵀ diag(m) (I - λ s P_γ)⁻¹ (I - s P_γ) Φ w / s = Φᵀ diag(m) (I - λ s
P_γ)⁻¹ r_π. A small β keeps the variance of F finite but may leave the update unstable; a
small η then stabilises it: at λ = 0 it is enough that
1 + η > γ √((1 - min d/f) / β). The bias is that of both.

Parameters: alpha > 0, eta >= 0, beta in [0, 1] (1 only where episodes end, as in etd_beta), lam in
[0, 1].

Example::

    steadytd run three_state perturbed_etd:alpha=0.001,eta=0.1,beta=0.3 --steps 100000 --seeds 10

Reference: ours; it combines Diddigi, Kamanchi & Bhatnagar (the penalty) with Hallak et al. (2016).

Differs from the paper: 1. neither paper has it.

Reduces to: etd_beta at η = 0; perturbed_td at β = 0 and interest 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadytd.engine.law import LAM, Param, law
from steadytd.learners.etd_beta import BETA, decaying_follow_on
from steadytd.mdp.moments import Expectation, Moments


def perturbed_emphatic_trace(
    rho: float, gamma: float, lam: float, eta: float, F: float, interest: float
) -> tuple[float, float]:
    """z <- rho (gamma lam / (1 + eta) z + M x)."""
    M = lam * interest + (1 - lam) * F
    return rho * (gamma * lam / (1 + eta)), rho * M


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """The emphatic mean update with the discount that the penalty leaves."""
    lam, scale = values["lam"], 1 / (1 + values["eta"])
    emphasis = lam * m.d * m.interest + (1 - lam) * m.follow_on_at(values["beta"])
    return m.emphatic(emphasis, lam, scale)


@law(
    params={"eta": Param("penalty", low=0.0), "beta": BETA, "lam": LAM},
    memory={"F": decaying_follow_on},
    traces={"z": perturbed_emphatic_trace},
    writes={"w": "z"},
    idle_at_rho_zero=True,
    expectation=expectation,
)
def perturbed_etd(
    reward: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float, eta: float
) -> float:
    """w += alpha delta z, where z carries rho and the emphasis."""
    delta = reward + gamma_next * w_x_next - (1 + eta) * w_x
    return alpha * delta
