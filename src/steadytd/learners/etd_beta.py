"""Emphatic TD(λ, β): ETD whose follow-on trace decays with its own β.

Background: ETD's variance comes from a follow-on trace that forgets as slowly as the discount
allows. Here it forgets faster; in return the weights of the states are not quite right.

Update::

    F = β ρₜ₋₁ F + i   (β counts as 0 on an episode's first step)
    M = λ i + (1 - λ) F
    z = ρ (γ λ z + M x)
    δ = r + γ' wᵀx' - wᵀx
    w ← w + α δ z

Fixed point: ETD's with f = (I - β Pᵀ)⁻¹ (d i). β trades bias for variance: at β = 0 it is
TD, at β = γ ETD. For λ = 0 the projected operator contracts with modulus
γ √((1 - min d/f) / β), so it is stable where that is below 1. β = 1 needs episodes
that end: where they do not, F has no finite mean and there is no fixed point, and the certificate
says so instead of a number.

Parameters: alpha > 0, beta in [0, 1] (1 only where episodes end), lam in [0, 1].

Example::

    steadytd run three_state etd_beta:alpha=0.001,beta=0.3 --steps 100000 --seeds 10

Reference: Hallak et al. (2016), "Generalized emphatic temporal difference learning: bias-variance
analysis".

Differs from the paper: 1. episodes: F starts again where the discount is 0.

Reduces to: etd at β = γ (a constant discount); td at β = 0 and interest 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from steadytd.engine.law import LAM, Param, law
from steadytd.learners.etd import emphatic_trace
from steadytd.mdp.moments import Expectation, Moments

BETA = Param("decay of the follow-on trace", low=0.0, high=1.0)


def decaying_follow_on(
    gamma: float, rho_prev: float, F: float, beta: float, interest: float
) -> float:
    """F <- beta rho_{t-1} F + i; a new episode (gamma = 0) forgets F."""
    return (beta * rho_prev * F if gamma > 0.0 else 0.0) + interest


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """TD(lam)'s with the emphasis lam d i + (1 - lam) f in place of d."""
    lam = values["lam"]
    return m.emphatic(lam * m.d * m.interest + (1 - lam) * m.follow_on_at(values["beta"]), lam)


@law(
    params={"beta": replace(BETA, cure=True), "lam": LAM},
    memory={"F": decaying_follow_on},
    traces={"z": emphatic_trace},
    writes={"w": "z"},
    idle_at_rho_zero=True,
    expectation=expectation,
)
def etd_beta(reward: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float) -> float:
    """w += alpha delta z, where z carries the emphasis."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * delta
