"""Tree Backup(λ): TD whose trace is cut by the target policy's own probabilities.

Background: Products of ratios can make traces very large. Tree Backup uses no such product: it
multiplies the trace by the target policy's probability of the action that was taken.

Update::

    z = γ λ πₜ₋₁ z + x
    δ = r + γ' wᵀx' - wᵀx
    w ← w + α ρ δ z

Fixed point: Φᵀ D (I - λ Q)⁻¹ (I - P_γ) Φ w = Φᵀ D (I - λ Q)⁻¹ r_π with
Q[s, s'] = Σ_a μ π p γ. No ratio enters the trace, so its variance stays small, at the price
of short traces; convergence is known for tables, not for features.

Parameters: alpha > 0, lam in [0, 1].

Example::

    steadytd run three_state tree_backup:alpha=0.001,lam=0.5 --steps 100000 --seeds 10

Reference: Precup, Sutton & Singh (2000), "Eligibility traces for off-policy policy evaluation";
for state values Ghiassian & Sutton (2021).

Differs from the paper: 1. state values instead of action values.

Reduces to: td at λ = 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadytd.engine.law import LAM, law
from steadytd.mdp.moments import Expectation, Moments


def tree_trace(gamma: float, pi_prev: float, lam: float) -> tuple[float, float]:
    """z <- gamma lam pi_{t-1} z + x."""
    return gamma * lam * pi_prev, 1.0


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """The mean of rho delta z with the trace cut by lam pi."""
    return m.cut(values["lam"] * m.mu * m.pi)


@law(
    params={"lam": LAM},
    traces={"z": tree_trace},
    writes={"w": "z"},
    idle_at_rho_zero=True,
    expectation=expectation,
)
def tree_backup(
    reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float
) -> float:
    """w += alpha rho delta z."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * rho * delta
