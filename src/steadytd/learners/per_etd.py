"""PER-ETD: emphatic TD that restarts its follow-on trace every b steps and learns once in b steps.

Background: Another way to keep ETD's follow-on trace from growing without bound: begin it anew
every b steps, and use it only when it has seen b - 1 ratios. One vector and two numbers; the mean
update is truncated ETD's with n = b - 1, but only one step in b learns anything.

Update (periods of b steps)::

    F = i               in the first step of a period
    F = γ ρₜ₋₁ F + i    in the others
    δ = r + γ' wᵀx' - wᵀx
    w ← w + α ρ F δ x   in the last step of a period only

Fixed point: Φᵀ diag(f) (I - P_γ) Φ w = Φᵀ diag(f) r_π, with f = Σ_{k<b} (P_γᵀ)ᵏ
(d i); per step the mean update is 1/b of that, if the last steps of periods see the states as often
as others do (b must not share a factor with the period of the chain). As b grows the fixed point
becomes ETD(0)'s.

Parameters: alpha > 0, b a whole number >= 1 (steps of a period, default 4).

Example::

    steadytd run three_state per_etd:alpha=0.001,b=4 --steps 100000 --seeds 10

Reference: Guan, Xu & Liang (2022), "PER-ETD: A polynomially efficient emphatic temporal difference
learning method", arXiv 2110.06906.

Differs from the paper: 1. b is constant, where theirs grows with the logarithm of the steps. 2. no
projection on a ball. 3. discounts and interest of every state.

Reduces to: td at b = 1 (up to the interest).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from steadytd.base.errors import InputError
from steadytd.engine.law import Param, law
from steadytd.learners.truncated_etd import followed
from steadytd.mdp.moments import Expectation, Moments
from steadytd.mdp.stationary import chain_period

PERIOD = Param("steps of a period", default=4.0, low=1.0, high=1e9, whole=True)


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """1/b of truncated ETD's with n = b - 1, where the last steps of periods see all states."""
    m.require_array("per_etd")
    b = int(values["b"])
    chain = np.einsum("sa,sat->st", m.mu, m.P)
    if b > 1 and math.gcd(b, around := chain_period(chain, int(m.d.argmax()))) > 1:
        raise InputError(
            f"per_etd has no closed form with b = {b} where the behaviour policy's chain has "
            f"period {around}: the result depends on the first state. Use a b that is coprime to "
            "the period."
        )
    return m.emphatic(followed(m, b - 1) / b, lam=0.0)


def countdown(left: float, b: float) -> float:
    """The steps that are left of the period after this one; b - 1 in the first."""
    return b - 1 if left < 0.5 else left - 1


def restarted(
    gamma: float, rho_prev: float, F: float, interest: float, left: float, b: float
) -> float:
    """F <- gamma rho_{t-1} F + i; i in the first step of a period."""
    return interest if left > b - 1.5 else gamma * rho_prev * F + interest


@law(
    params={"b": PERIOD},
    memory={"left": countdown, "F": restarted},
    writes={"w": "x"},
    every="b",
    idle_at_rho_zero=True,
    expectation=expectation,
)
def per_etd(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    F: float,
    left: float,
    alpha: float,
) -> float:
    """w += alpha rho F delta x in the last step of a period."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * rho * F * delta if left < 0.5 else 0.0
