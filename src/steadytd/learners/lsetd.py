"""LS-ETD(λ, β): the emphatic TD fixed point of the data so far, solved directly. No step size.

Background: LSTD needs no stability, but its fixed point is that of plain TD, which may be a bad
one. ETD's fixed point has an error bound, but steps towards it are noisy because the variance of
its weights is large. Sums over all data reduce that noise.

Update::

    F = β ρₜ₋₁ F + i   (β counts as 0 on an episode's first step)
    M = λ i + (1 - λ) F
    z = ρ (γ λ z + M x)
    A ← A + z (x - γ' x')ᵀ
    b ← b + r z
    w = the solution of (A + ridge I) w = b + ridge w₀

The forms (batch, recursive) and what is done where A is near singular are those of lstd.

Fixed point: etd's for β = γ (the default), otherwise etd_beta's. The sums inherit the
variance of F: where it is infinite (Baird's problem), they approach their means very slowly, and a
β below γ helps.

Parameters: lam in [0, 1], beta in [0, 1] (1 only where episodes end) or gamma, ridge >= 0 (> 0 for
form=recursive), form batch or recursive.

Example::

    steadytd run three_state lsetd:beta=0.3 --steps 20000 --seeds 10 --points 50

Reference: Yu (2015), "On convergence of emphatic temporal-difference learning", where it is called
ELSTD; beta as in Hallak et al. (2016).

Differs from the paper: 1. β need not be γ. 2. A ridge is offered, A need not be invertible.

Reduces to: lstd at λ = 1 up to the interest, and at β = 0 and interest 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from steadytd.engine.law import LAM
from steadytd.engine.second_order import solved
from steadytd.learners import etd, etd_beta
from steadytd.mdp.moments import Expectation, Moments

BETA = replace(etd_beta.BETA, default="gamma", word="gamma")


def either_follow_on(
    gamma: float, rho_prev: float, F: float, beta: float, interest: float
) -> float:
    """etd_beta's, or etd's where beta is the word gamma: that is NaN here, so beta >= 0 fails."""
    decay = beta if beta >= 0.0 else gamma
    return (decay * rho_prev * F if gamma > 0.0 else 0.0) + interest


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """P (w* - w) with the fixed point w* of etd or etd_beta, P the projection on the row space."""
    mean = etd_beta.expectation if "beta" in values else etd.expectation
    return m.direct(mean(m, values))


@solved(
    params={"lam": LAM, "beta": BETA},
    memory={"F": either_follow_on},
    traces={"z": etd.emphatic_trace},
    expectation=expectation,
)
def lsetd(reward: float, gamma_next: float) -> tuple[float, float, float]:
    """w.x - gamma' w.x' = r: the right-hand side and the multiples of x and x'."""
    return reward, 1.0, -gamma_next
