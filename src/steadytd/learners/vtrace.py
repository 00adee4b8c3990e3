"""V-trace(λ): TD whose trace carries ratios clipped at 1.

Background: Keep the ratios in the trace, but clip each at 1. Actions that the target policy takes
more often than the data leave the trace as it is; actions that it takes less often cut it.

Update::

    z = γ λ min(1, ρₜ₋₁) z + x
    δ = r + γ' wᵀx' - wᵀx
    w ← w + α ρ δ z

Fixed point: Φᵀ D (I - λ Q)⁻¹ (I - P_γ) Φ w = Φᵀ D (I - λ Q)⁻¹ r_π with
Q[s, s'] = Σ_a min(μ, π) p γ. The clipped trace never grows, so its variance stays small;
convergence is known for tables, not for features.

Parameters: alpha > 0, lam in [0, 1].

Example::

    steadytd run three_state vtrace:alpha=0.001,lam=0.5 --steps 100000 --seeds 10

Reference: Espeholt et al. (2018), "IMPALA"; Munos et al. (2016) for Retrace; for
linear state values Ghiassian & Sutton (2021).

Differs from the paper: 1. only the trace is clipped, not the ratio of the present step, so that the
fixed point at λ = 0 is TD's.

Reduces to: td at λ = 0, and wherever ρ = 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.engine.law import LAM, law
from steadytd.mdp.moments import Expectation, Moments


def clipped_trace(gamma: float, rho_prev: float, lam: float) -> tuple[float, float]:
    """z <- gamma lam min(1, rho_{t-1}) z + x."""
    return gamma * lam * min(1.0, rho_prev), 1.0


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """The mean of rho delta z with the trace cut by lam min(1, rho)."""
    return m.cut(values["lam"] * np.minimum(m.mu, m.pi))


@law(
    params={"lam": LAM},
    traces={"z": clipped_trace},
    writes={"w": "z"},
    idle_at_rho_zero=True,
    expectation=expectation,
)
def vtrace(
    reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float
) -> float:
    """w += alpha rho delta z."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * rho * delta
