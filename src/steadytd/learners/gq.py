"""GQ(λ): the gradient-corrected TD of action values, TDC's form on pairs of state and action.

Background: To value actions one needs no importance ratio for the action whose value is learned,
only for the actions after it. So the trace carries ρ of the present action on its past, and x
itself stands without it; at λ = 0 there is no ratio at all, and no variance from one.

Update (x = φ(s, a), x̄' = Σ_a' π(a'|s') φ(s', a'), β = ratio α)::

    δ = r + γ' wᵀx̄' - wᵀx
    z = ρ γ λ z + x
    w ← w + α (δ z - γ' (1 - λ) (hᵀz) x̄')
    h ← h + β (δ z - (hᵀx) x)

Fixed point: A_λ w = b_λ and h = 0, where the projected Bellman error of q is zero, with
A_λ = Ψᵀ D (I - λ P)⁻¹ (I - P) Ψ and b_λ = Ψᵀ D (I - λ P)⁻¹ r over pairs, D of
d_μ(s) μ(a|s), and P[(s, a), (s', a')] = p(s'|s, a) γ(s, a, s') π(a'|s'). Stable on two time
scales (β/α to infinity), or on one if β/α exceeds
max(0, -λ_min(G⁻¹ sym A_λ)), if A_λ is non-singular; docs/theory.md derives it for tdc.

Parameters: alpha > 0, ratio > 0 (beta/alpha, default 10), lam in [0, 1].

Example, in Python because a problem has to be wrapped in `ActionValues`::

    st.run(st.ActionValues(st.problem("baird")), "gq:alpha=0.01,ratio=1", steps=100_000, seeds=10)

Reference: Maei & Sutton (2010), "GQ(lambda): A general gradient algorithm for temporal-difference
prediction learning with eligibility traces".

Differs from the paper: 1. λ is a constant, and the paper's interest in pairs is 1. 2. x̄' is
the exact expectation under π, as in the paper's derivation; no next action is drawn.

Reduces to: tdc on the pairs where π = μ.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.engine.law import LAM, RATIO, law
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """M = [[A, B], [ratio A, ratio G]] with B = G - A', g = (b, ratio b), all over pairs."""
    A, b, ratio = m.A(values["lam"]), m.b(values["lam"]), values["ratio"]
    M = np.block([[A, m.B(values["lam"])], [ratio * A, ratio * m.G]])
    return Expectation(M=M, g=np.concatenate([b, ratio * b]))


def trace(rho: float, gamma: float, lam: float) -> tuple[float, float]:
    """z <- rho gamma lam z + x: the multiples of z and of x."""
    return rho * gamma * lam, 1.0


@law(
    params={"ratio": RATIO, "lam": LAM},
    traces={"z": trace},
    writes={"w": ("z", "x_next"), "h": ("z", "x")},
    expectation=expectation,
    action_values=True,
)
def gq(
    reward: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    h_x: float,
    h_z: float,
    alpha: float,
    ratio: float,
    lam: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The multiples of (z, x_bar') to add to w and of (z, x) to add to h."""
    delta = reward + gamma_next * w_x_next - w_x
    beta = ratio * alpha
    w = alpha * delta, -alpha * gamma_next * (1 - lam) * h_z
    h = beta * delta, -beta * h_x
    return w, h
