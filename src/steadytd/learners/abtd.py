"""ABTD(ζ): TD whose trace is cut depending on the action, so that no ratio appears in it.

Background: A scheme between Tree Backup and full ratios that adapts to each action: traces are as
long as possible without ever multiplying by a number larger than 1.

Update, with ψ₀ = 1/peak_max, ψ_max = 1/peak_min and the peaks the largest and the least
max(π, μ) over all states and actions::

    ψ = 2 ζ ψ₀ + max(0, 2 ζ - 1) (ψ_max - 2 ψ₀)
    ν = min(ψ, 1 / max(π, μ))
    z = γ νₜ₋₁ πₜ₋₁ z + x
    δ = r + γ' wᵀx' - wᵀx
    w ← w + α ρ δ z

Fixed point: Φᵀ D (I - Q)⁻¹ (I - P_γ) Φ w = Φᵀ D (I - Q)⁻¹ r_π with
Q[s, s'] = Σ_a μ ν π p γ. ζ has the role of λ: 0 is TD(0), 1 the longest trace that
the policies allow. Convergence is known for tables, not for features.

Parameters: alpha > 0, zeta in [0, 1].

Example::

    steadytd run three_state abtd:alpha=0.001,zeta=0.5 --steps 100000 --seeds 10

Reference: Mahmood, Yu & Sutton (2017), "Multi-step off-policy learning without importance sampling
ratios"; Ghiassian & Sutton (2021).

Differs from the paper: 1. no gradient correction: there is one vector w, where the paper's
algorithms for function approximation have a second one.

Reduces to: td at ζ = 0; vtrace with λ = 1 at ζ = 1 (ν π = min(1, ρ) then), and also at
a smaller ζ where ψ is never the smaller one (High-Variance Rooms at ζ = 0.75).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.engine.law import Param, law
from steadytd.mdp.moments import Expectation, Moments


def action_trace(
    gamma: float, pi_prev: float, mu_prev: float, peak_min: float, peak_max: float, zeta: float
) -> tuple[float, float]:
    """z <- gamma nu_{t-1} pi_{t-1} z + x; without a past (gamma = 0) just x."""
    if gamma == 0.0:
        return 0.0, 1.0
    psi = 2 * zeta / peak_max + max(0.0, 2 * zeta - 1) * (1 / peak_min - 2 / peak_max)
    return gamma * min(psi, 1 / max(pi_prev, mu_prev)) * pi_prev, 1.0


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """The mean of rho delta z with the trace cut by nu pi."""
    zeta, (low, high) = values["zeta"], m.peaks
    psi = 2 * zeta / high + max(0.0, 2 * zeta - 1) * (1 / low - 2 / high)
    peak = np.maximum(m.pi, m.mu)
    nu = np.minimum(psi, np.divide(1.0, peak, out=np.zeros_like(peak), where=peak > 0.0))
    return m.cut(m.mu * nu * m.pi)


@law(
    params={"zeta": Param("length of the trace", default=0.0, low=0.0, high=1.0)},
    traces={"z": action_trace},
    trace_param="zeta",
    writes={"w": "z"},
    idle_at_rho_zero=True,
    expectation=expectation,
)
def abtd(
    reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float
) -> float:
    """w += alpha rho delta z."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * rho * delta
