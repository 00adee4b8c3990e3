"""Off-policy TD(λ): temporal-difference learning with importance ratios. May diverge.

Background: The oldest idea: bootstrap from the next state's estimate and correct for the policy
with the ratio ρ. One vector and a few multiplications per step. Off-policy, with features,
nothing guarantees that it is stable: this is the deadly triad, and every other learner here is an
answer to it. Where it is stable, its fixed point can still be worse than others' (on kolter its
error is 2.7 where the best linear fit has 0.0004).

Update::

    δ = r + γ' wᵀx' - wᵀx
    z = ρ (γ λ z + x)
    w ← w + α δ z

Fixed point: A_λ w = b_λ, with A_λ = Φᵀ D (I - λ P_γ)⁻¹ (I - P_γ) Φ and
b_λ = Φᵀ D (I - λ P_γ)⁻¹ r_π. It minimises the projected Bellman error (which is zero
there). The mean update leads there exactly if all eigenvalues of A_λ have a positive real part.
On-policy A_λ is positive definite on the row space, which is enough. Off-policy it need not be.
It may still be stable (on nonmonotone), but where an eigenvalue has a negative real part,
the mean update leads away from the fixed point and the weights grow without bound.

Parameters: alpha > 0, lam in [0, 1].

Example::

    steadytd run baird td:alpha=0.0001 --steps 100000 --seeds 10

Reference: Precup, Sutton & Dasgupta (2001), "Off-policy temporal-difference learning with function
approximation"; the paper's equation for theta_{n+1} in Section II.

Differs from the paper: nothing.

Reduces to: on-policy TD(λ) where π = μ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from steadytd.engine.law import LAM, Role, accumulating_trace, law
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """E[change of w] = alpha (b_lam - A_lam w)."""
    return Expectation(M=m.A(values["lam"]), g=m.b(values["lam"]))


@law(
    params={"lam": replace(LAM, cure=True)},
    traces={"z": accumulating_trace},
    writes={"w": "z"},
    idle_at_rho_zero=True,
    expectation=expectation,
    role=Role(1, "lstd"),
)
def td(reward: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float) -> float:
    """w += alpha delta z."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * delta
