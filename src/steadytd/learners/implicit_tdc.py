"""Implicit TDC: TDC whose two estimates are solved for the new weights in every step.

Background: implicit_td's idea for both vectors of TDC. The step sizes cannot be too large for a
single step, in particular not the second one, which TDC wants large. In the mean it is TDC: stable
where TD is not.

Update (β = ratio α), solved for the new vectors on the right-hand side::

    δ  = r + γ' wᵀx' - wᵀx
    w' = w + α ρ ((r + γ' wᵀx' - w'ᵀx) x - γ' (hᵀx) x')
    h' = h + β (ρ δ - h'ᵀx) x

that is, with s = α ρ / (1 + α ρ xᵀx) (Sherman & Morrison's formula)::

    w ← w + s (δ + α ρ γ' (hᵀx) (xᵀx')) x - α ρ γ' (hᵀx) x'
    h ← h + β / (1 + β xᵀx) (ρ δ - hᵀx) x

Fixed point: A w = b and h = 0 to first order in α, TDC's.

Parameters: alpha > 0, ratio > 0 (beta/alpha, default 10).

Example::

    steadytd run baird implicit_tdc:alpha=0.01 --steps 100000 --seeds 10

Reference: TDC by Sutton et al. (2009); implicit steps by Tamar et al. (2014) and arXiv 2505.01361.
The solution above is derived here.

Differs from the paper: nothing.

Reduces to: tdc at λ = 0 as α goes to 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadytd.engine.law import RATIO, law
from steadytd.learners.tdc import expectation as tdc_expectation
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """TDC's at lam = 0, up to terms of order alpha."""
    return tdc_expectation(m, {**values, "lam": 0.0})


@law(
    params={"ratio": RATIO},
    writes={"w": ("x", "x_next"), "h": "x"},
    expectation=expectation,
    first_order=True,
)
def implicit_tdc(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    h_x: float,
    x_x: float,
    x_x_next: float,
    alpha: float,
    ratio: float,
) -> tuple[tuple[float, float], float]:
    """The multiples of (x, x') to add to w and of x to add to h."""
    delta = reward + gamma_next * w_x_next - w_x
    beta, step = ratio * alpha, alpha * rho
    back = step * gamma_next * h_x
    w = step / (1 + step * x_x) * (delta + back * x_x_next), -back
    return w, beta / (1 + beta * x_x) * (rho * delta - h_x)
