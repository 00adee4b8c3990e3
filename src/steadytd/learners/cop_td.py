"""COP-TD(0, β): TD weighted by the learned ratio d_π/d_μ of stationary distributions.

Background: Most learners weigh states as the data do, or emphatically. COP-TD estimates how much
more often the target policy itself would visit a state, and uses that as the weight. So it learns
the on-policy solution from off-policy data, where the features can represent the weight.

Update (a = ratio α; the learned ratio is c(s) = 1 + uᵀ(x - m), with m the running mean of x, so
that its mean over the data is 1)::

    F = ρₜ₋₁ (β F + (1 - β) c(sₜ₋₁))
    u ← u + a (F - c(s)) (x - m)
    m ← m + a (x - m)
    δ = r + γ' wᵀx' - wᵀx
    w ← w + α c(s) ρ δ x

Fixed point: m = Φᵀ d; u such that the mean of (F - c)(x - m) is zero; then
Φᵀ D diag(c(s)) (I - P_γ) Φ w = Φᵀ D diag(c(s)) r_π. Where the features can represent
d_π/d_μ, c is that ratio and w is the *on-policy* TD fixed point, which no other learner here has.
Where they cannot, c may be negative and its own update or w's unstable: with the defaults the mean
update is unstable on baird, baird8, nonmonotone, boyan, collision and random_walk, and stable on
three_state, theta2theta and kolter. The certificate says it for each problem.

Parameters: alpha > 0, beta in [0, 1) (default 0), ratio > 0 (a/alpha, default 10).

Example::

    steadytd run three_state cop_td:alpha=0.001,ratio=1 --steps 100000 --seeds 10

Reference: Hallak & Mannor (2017), "Consistent on-line off-policy evaluation".

Differs from the paper: 1. the projection of c to mean 1 is built into its form instead of being
done by a separate step. 2. m is a running mean with the step size of u. 3. the chain of states goes
on across the ends of episodes, as d_μ does.

Reduces to: td while u = 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.linalg

from steadytd.engine.law import RATIO, Param, law
from steadytd.mdp.moments import Expectation, Moments


def ratio_trace(rho_prev: float, F: float, beta: float, c: float) -> float:
    """F <- rho_{t-1} (beta F + (1 - beta) c(s_{t-1}))."""
    return rho_prev * (beta * F + (1 - beta) * c)


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """u's linear system with m settled; w's with u and m settled."""
    m.require_everywhere("cop_td")
    ratio, beta, n = values["ratio"], values["beta"], len(m.d)
    centred, flow = m.Phi - m.d @ m.Phi, m.P_pi.T
    arriving = (1 - beta) * np.linalg.solve(np.eye(n) - beta * flow, flow * m.d)
    change = arriving - np.diag(m.d)  # takes c to d (E[F | s] - c(s))
    M_u = -centred.T @ change @ centred
    g_u = centred.T @ change @ np.ones(n)
    c = 1 + centred @ m.least_squares(M_u, g_u)
    e = m.emphatic(m.d * c, lam=0.0)
    M = scipy.linalg.block_diag(e.M, ratio * M_u, ratio * np.eye(m.n_features))
    return Expectation(M=M, g=np.concatenate([e.g, ratio * g_u, ratio * m.d @ m.Phi]))


@law(
    params={"beta": Param("decay of F", default=0.0, low=0.0, high=0.999), "ratio": RATIO},
    memory={"F": ratio_trace, "c": None},
    writes={"w": "x", "u": ("x", "m"), "m": ("x", "m"), "c": "value"},
    expectation=expectation,
    settled=("u", "m"),
)
def cop_td(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    u_x: float,
    u_m: float,
    F: float,
    alpha: float,
    ratio: float,
) -> tuple[float, tuple[float, float], tuple[float, float], float]:
    """The multiples of x for w, of (x, m) for u and m, and the new c(s) to remember."""
    c = 1 + u_x - u_m
    delta = reward + gamma_next * w_x_next - w_x
    a = ratio * alpha
    error = a * (F - c)
    return alpha * c * rho * delta, (error, -error), (a, -a), c
