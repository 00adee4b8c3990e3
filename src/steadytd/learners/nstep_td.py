"""n-step TD with a ratio for every step: a trace that forgets what is older than n steps.

Background: Bootstrap later. The estimate that TD trusts after one step is trusted only after n, so
less of the instability is left; as n grows, the fixed point goes to the best linear fit, stable and
without bias. What it costs is variance: an update holds products of up to n ratios.

Update (z holds the last n states, this one included)::

    δ = r + γ' wᵀx' - wᵀx
    z = Σ_{k < n} (ρₜ γₜ ρₜ₋₁ … γₜ₋ₖ₊₁ ρₜ₋ₖ) xₜ₋ₖ
    w ← w + α δ z

Fixed point: Aₙ w = bₙ with Aₙ = Φᵀ D (I - P_γⁿ) Φ and bₙ = Φᵀ D Σ_{k<n} P_γᵏ
r_π. P_γⁿ goes to 0, so from some n on all are stable; below it, the set of stable n may have
holes (on three_state 1 and 3 are unstable, 2 is stable).

Parameters: alpha > 0, n a whole number from 1 to 1000 (default 10). A step takes time and memory of
order n d.

Example::

    steadytd run three_state nstep_td:alpha=0.0001,n=10 --steps 100000 --seeds 10

Reference: Sutton & Barto (2018), "Reinforcement learning", Section 7.4, with per-step ratios;
arXiv 2502.08941 proves that it converges for every n that is large enough.

Differs from the paper: 1. the TD errors are those of the step in which they occur (a backward
view), not computed again with the weights of n steps later; the mean update is the same.

Reduces to: td at λ = 0 with n = 1, and td at λ = 1 where no episode is longer than n.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.engine.law import Param, Window, law
from steadytd.mdp.moments import Expectation, Moments

STEPS = Param("steps before the bootstrap", default=10.0, low=1.0, high=1000.0, whole=True)


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """M = Phi' D (I - P_gamma^n) Phi, g = Phi' D sum_{k<n} P_gamma^k r_pi."""
    step = np.block([[m.P_gamma, m.r_pi[:, None]], [np.zeros(len(m.d)), 1.0]])
    steps = np.linalg.matrix_power(step, int(values["n"]))[:-1]
    weighted = (m.Phi * m.d[:, None]).T
    return Expectation(M=weighted @ (m.Phi - steps[:, :-1] @ m.Phi), g=weighted @ steps[:, -1])


def whole_trace(rho: float, gamma: float) -> tuple[float, float]:
    """z <- rho (gamma z + x)."""
    return rho * gamma, rho


@law(
    params={"n": STEPS},
    traces={"z": whole_trace},
    windows={"z": Window("n")},
    trace_param="n",
    writes={"w": "z"},
    expectation=expectation,
)
def nstep_td(reward: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float) -> float:
    """w += alpha delta z."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * delta
