"""True online GTD(λ): TDC with traces that make every step exact for the forward view.

Background: What true_online_td is to td, this is to tdc: the correction from a second vector keeps
it stable off-policy, and the traces know the step sizes. Three traces and two vectors; in the mean
it is tdc.

Update (β = ratio α; v = wᵀx' of the step before, with the weights before that step)::

    z = ρ (γ λ z + α (1 - ρ γ λ xᵀz) x)
    y = ρₜ₋₁ γ λ y + β (1 - ρₜ₋₁ γ λ xᵀy) x
    u = ρ (γ λ u + x)
    δ = r + γ' wᵀx' - wᵀx
    w ← w + δ z + (wᵀx - v) (z - α ρ x) - α γ' (1 - λ) (hᵀu) x'
    h ← h + ρ δ y - β (hᵀx) x

Fixed point: A_λ w = b_λ and h = 0, TDC(λ)'s, to first order in α.

Parameters: alpha > 0, ratio > 0 (beta/alpha, default 10), lam in [0, 1].

Example::

    steadytd run baird true_online_gtd:alpha=0.001,ratio=1,lam=0.5 --steps 100000 --seeds 10

Reference: van Hasselt, Mahmood & Sutton (2014), "Off-policy TD(lam) with a true online
equivalence".

Differs from the paper: 1. (wᵀx - v) counts only where the trace holds an earlier state; the
x' of a step must be the x of the next one, as on every stream without gaps.

Reduces to: tdc at λ = 0.
"""

from __future__ import annotations

from steadytd.engine.law import LAM, RATIO, accumulating_trace, law
from steadytd.learners.tdc import expectation
from steadytd.learners.true_online_td import dutch_trace


def second_trace(
    rho_prev: float, gamma: float, lam: float, alpha: float, ratio: float, y_x: float
) -> tuple[float, float]:
    """y <- rho_{t-1} gamma lam y + beta (1 - rho_{t-1} gamma lam x.y) x, with the old y in x.y."""
    decay = rho_prev * gamma * lam
    return decay, ratio * alpha * (1 - decay * y_x)


@law(
    params={"ratio": RATIO, "lam": LAM},
    traces={"z": dutch_trace, "y": second_trace, "u": accumulating_trace},
    memory={"v": None},
    writes={"w": ("z", "x", "x_next"), "h": ("y", "x"), "v": "value"},
    expectation=expectation,
    first_order=True,
)
def true_online_gtd(
    reward: float,
    rho: float,
    gamma: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    h_x: float,
    h_u: float,
    v: float,
    alpha: float,
    ratio: float,
    lam: float,
) -> tuple[tuple[float, float, float], tuple[float, float], float]:
    """The multiples of (z, x, x') to add to w and of (y, x) to add to h, and the new v."""
    delta = reward + gamma_next * w_x_next - w_x
    moved = w_x - v if gamma * lam > 0.0 else 0.0
    w = delta + moved, -moved * alpha * rho, -alpha * gamma_next * (1 - lam) * h_u
    h = rho * delta, -ratio * alpha * h_x
    return w, h, w_x_next
