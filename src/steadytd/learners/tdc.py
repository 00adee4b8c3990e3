"""TDC, also called GTD(λ): TD with a gradient correction from a second weight vector.

Background: TD's direction plus a correction that makes the sum a descent direction of the projected
Bellman error. The correction needs an estimate of a solution of a least-squares problem, which the
second vector h learns on the side. The usual choice among the gradient methods: often slower than
TD where TD is stable, and stable where it is not, if the ratio is large enough.

Update (β = ratio α)::

    δ = r + γ' wᵀx' - wᵀx
    z = ρ (γ λ z + x)
    w ← w + α (δ z - γ' (1 - λ) (hᵀz) x')
    h ← h + β (δ z - (hᵀx) x)

Fixed point: A_λ w = b_λ and h = 0, the same as TD's, where the projected Bellman error is zero.
Stable on two time scales (β/α to infinity), or, where A_λ is non-singular, on one if
β/α exceeds max(0, -λ_min(G⁻¹ sym A_λ)): docs/theory.md derives it. No bias is added,
but the TD fixed point itself can be a poor value function when the data come from another policy.

Parameters: alpha > 0, ratio > 0 (beta/alpha, default 10) or auto, lam in [0, 1].

Example::

    steadytd run baird tdc:alpha=0.0001,ratio=10 --steps 100000 --seeds 10

Reference: Sutton et al. (2009), "Fast gradient-descent methods for temporal-difference learning
with linear function approximation"; Maei (2011), GTD(lam).

Differs from the paper: 1. the figures of Diddigi et al. were made without ρ, their last notebooks
have π in its place; both versions are `tdc_as_published`.

Reduces to: td as ratio goes to 0 with h = 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from steadytd.engine.law import AUTO_RATIO, LAM, Role, accumulating_trace, law
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """M = [[A, B], [ratio A, ratio G]] with B = G - A', g = (b, ratio b)."""
    A, b, ratio = m.A(values["lam"]), m.b(values["lam"]), values["ratio"]
    M = np.block([[A, m.B(values["lam"])], [ratio * A, ratio * m.G]])
    return Expectation(M=M, g=np.concatenate([b, ratio * b]))


@law(
    params={"ratio": replace(AUTO_RATIO, cure=True), "lam": LAM},
    traces={"z": accumulating_trace},
    writes={"w": ("z", "x_next"), "h": ("z", "x")},
    expectation=expectation,
    role=Role(2, "lstd"),
)
def tdc(
    reward: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    h_x: float,
    h_z: float,
    alpha: float,
    ratio: float,
    lam: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The multiples of (z, x') to add to w and of (z, x) to add to h."""
    delta = reward + gamma_next * w_x_next - w_x
    beta = ratio * alpha
    w = alpha * delta, -alpha * gamma_next * (1 - lam) * h_z
    h = beta * delta, -beta * h_x
    return w, h
