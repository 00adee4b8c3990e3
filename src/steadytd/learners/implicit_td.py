"""Implicit TD(λ): the new weights stand on both sides of the update, which tames large steps.

Background: A step size that is too large makes even a stable mean update diverge. Here wᵀx on the
right-hand side is that of the *new* weights. The equation has a closed solution, TD with a step
size that shrinks with xᵀx, at the cost of one more inner product. It is a cure against large steps,
not against an unstable mean update: where td diverges at every small step size, so does this.

Update (solved)::

    δ = r + γ' wᵀx' - wᵀx
    z = ρ (γ λ z + x)
    w ← w + α / (1 + α xᵀz) δ z

At λ = 0 that solves w' = w + α ρ (r + γ' wᵀx' - w'ᵀx) x.

Fixed point: A_λ w = b_λ, TD's, to first order in α: the step sizes differ from state to
state by terms of order α, which move the fixed point by as much where TD's error is not zero.

Parameters: alpha > 0, lam in [0, 1].

Example::

    steadytd run kolter implicit_td:alpha=0.5 --steps 100000 --seeds 10

Reference: Tamar et al. (2014), "Implicit temporal differences"; arXiv 2505.01361.

Differs from the paper: 1. ratios. 2. where xᵀz < 0 (only with traces), the step is not enlarged: 1
stands for 1 + α xᵀz, which could be 0.

Reduces to: td as α goes to 0.
"""

from __future__ import annotations

from steadytd.engine.law import LAM, accumulating_trace, law
from steadytd.learners.td import expectation


@law(
    params={"lam": LAM},
    traces={"z": accumulating_trace},
    writes={"w": "z"},
    idle_at_rho_zero=True,
    expectation=expectation,
    first_order=True,
)
def implicit_td(
    reward: float, gamma_next: float, w_x: float, w_x_next: float, z_x: float, alpha: float
) -> float:
    """w += alpha / (1 + alpha x.z) delta z."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha / (1 + alpha * max(z_x, 0.0)) * delta
