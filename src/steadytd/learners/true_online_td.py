"""True online TD(λ): a trace that makes every step exact for the forward view.

Background: TD(λ) with a usual trace equals the update that looks ahead only for small steps. With
a trace that knows the step size, and one number kept from the step before, it is exact at every
step, at twice the cost. Smoother at large step sizes; in the mean it is TD(λ), and diverges where
that does.

Update (v = wᵀx' of the step before, with the weights before that step)::

    z = ρ (γ λ z + α (1 - ρ γ λ xᵀz) x)
    δ = r + γ' wᵀx' - wᵀx
    w ← w + δ z + (wᵀx - v) (z - α ρ x)

Fixed point: A_λ w = b_λ, TD(λ)'s, to first order in α.

Parameters: alpha > 0, lam in [0, 1].

Example::

    steadytd run collision true_online_td:alpha=0.01,lam=0.5 --steps 20000 --seeds 10

Reference: van Seijen et al. (2016), "True online temporal-difference learning"; with ratios as in
true online GTD(lam) and ETD(lam), here without a second vector and without emphasis.

Differs from the paper: 1. ratios. 2. (wᵀx - v) counts only where the trace holds an earlier state;
the x' of a step must be the x of the next one, as on every stream without gaps.

Reduces to: td at λ = 0; on-policy true online TD(λ) where π = μ.
"""

from __future__ import annotations

from steadytd.engine.law import LAM, law
from steadytd.learners.td import expectation


def dutch_trace(
    rho: float, gamma: float, lam: float, alpha: float, z_x: float
) -> tuple[float, float]:
    """z <- rho (gamma lam z + alpha (1 - rho gamma lam x.z) x), with the old z in x.z."""
    decay = rho * gamma * lam
    return decay, rho * alpha * (1 - decay * z_x)


@law(
    params={"lam": LAM},
    traces={"z": dutch_trace},
    memory={"v": None},
    writes={"w": ("z", "x"), "v": "value"},
    expectation=expectation,
    first_order=True,
)
def true_online_td(
    reward: float,
    rho: float,
    gamma: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    v: float,
    alpha: float,
    lam: float,
) -> tuple[tuple[float, float], float]:
    """The multiples of (z, x) to add to w, and the new v."""
    delta = reward + gamma_next * w_x_next - w_x
    moved = w_x - v if gamma * lam > 0.0 else 0.0
    return (delta + moved, -moved * alpha * rho), w_x_next
