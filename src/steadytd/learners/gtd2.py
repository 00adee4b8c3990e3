"""GTD2(λ): stochastic gradient descent on the projected Bellman error.

Background: A true gradient method: both parts of its update come from the gradient of the
projected Bellman error. Where A_λ is non-singular it is stable with every ratio, while TDC may
need a large one. It is usually slower.

Update (β = ratio α)::

    δ = r + γ' wᵀx' - wᵀx
    z = ρ (γ λ z + x)
    w ← w + α ((hᵀx) x - γ' (1 - λ) (hᵀz) x')
    h ← h + β (δ z - (hᵀx) x)

Fixed point: A_λ w = b_λ and h = 0, the same as TD's. Stable for every ratio > 0 where A_λ is
non-singular: the mean update is the gradient flow of a saddle point. Slow when A_λ is badly
conditioned.

Parameters: alpha > 0, ratio > 0 (beta/alpha, default 10), lam in [0, 1].

Example::

    steadytd run baird gtd2:alpha=0.001,ratio=1 --steps 100000 --seeds 10

Reference: Sutton et al. (2009), "Fast gradient-descent methods for temporal-difference learning
with linear function approximation"; Maei (2011) for traces.

Differs from the paper: 1. traces are those of GTD(λ), which the 2009 paper does not treat.

Reduces to: nothing simpler; it shares h and the fixed point with tdc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from steadytd.engine.law import LAM, RATIO, accumulating_trace, law
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """M = [[0, -A'], [ratio A, ratio G]], g = (0, ratio b)."""
    A, b, ratio = m.A(values["lam"]), m.b(values["lam"]), values["ratio"]
    M = np.block([[np.zeros_like(A), -A.T], [ratio * A, ratio * m.G]])
    return Expectation(M=M, g=np.concatenate([np.zeros_like(b), ratio * b]))


@law(
    params={"ratio": replace(RATIO, cure=True), "lam": LAM},
    traces={"z": accumulating_trace},
    writes={"w": ("x", "x_next"), "h": ("z", "x")},
    expectation=expectation,
)
def gtd2(
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
    """The multiples of (x, x') to add to w and of (z, x) to add to h."""
    delta = reward + gamma_next * w_x_next - w_x
    beta = ratio * alpha
    w = alpha * h_x, -alpha * gamma_next * (1 - lam) * h_z
    h = beta * delta, -beta * h_x
    return w, h
