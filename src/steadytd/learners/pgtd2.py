"""Proximal GTD2(λ), also called GTD2-MP: GTD2 with a look ahead at every step.

Background: GTD2 solves a saddle-point problem, and plain gradient steps tend to circle around a
saddle point. Looking one step ahead and taking the gradient there damps the circling. Twice the
arithmetic of GTD2, the same memory.

Update (β = ratio α; a half step by GTD2 gives ĥ and ŵ, their δ̂ the full step)::

    δ = r + γ' wᵀx' - wᵀx
    z = ρ (γ λ z + x)
    ĥ = h + β (δ z - (hᵀx) x)
    ŵ = w + α ((hᵀx) x - γ' (1 - λ) (hᵀz) x')
    δ̂ = r + γ' ŵᵀx' - ŵᵀx
    w ← w + α ((ĥᵀx) x - γ' (1 - λ) (ĥᵀz) x')
    h ← h + β (δ̂ z - (ĥᵀx) x)

Fixed point: A_λ w = b_λ and h = 0, the same as TD's. It is the extra-gradient method for the
saddle point that GTD2 descends: stable like GTD2, less prone to circle around the solution. The
closed form below is GTD2's; the look ahead adds terms that vanish with α.

Parameters: alpha > 0, ratio > 0 (beta/alpha, default 10), lam in [0, 1].

Example::

    steadytd run baird pgtd2:alpha=0.001,ratio=1 --steps 100000 --seeds 10

Reference: Liu et al. (2015), "Finite-sample analysis of proximal gradient TD algorithms",
GTD2-MP; Mahadevan et al. (2014).

Differs from the paper: 1. traces, as in GTD2(λ). 2. no projection on a bounded set.

Reduces to: gtd2 as α goes to 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadytd.engine.law import LAM, RATIO, accumulating_trace, law
from steadytd.learners.gtd2 import expectation as gtd2_expectation
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """GTD2's, up to terms of order alpha."""
    return gtd2_expectation(m, values)


@law(
    params={"ratio": RATIO, "lam": LAM},
    traces={"z": accumulating_trace},
    writes={"w": ("x", "x_next"), "h": ("z", "x")},
    expectation=expectation,
    first_order=True,
)
def pgtd2(
    reward: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    h_x: float,
    h_z: float,
    x_x: float,
    x_x_next: float,
    x_next_x_next: float,
    z_x: float,
    z_z: float,
    alpha: float,
    ratio: float,
    lam: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The multiples of (x, x') to add to w and of (z, x) to add to h."""
    delta = reward + gamma_next * w_x_next - w_x
    beta = ratio * alpha
    back = gamma_next * (1 - lam)
    ahead_h_x = h_x + beta * (delta * z_x - h_x * x_x)
    ahead_h_z = h_z + beta * (delta * z_z - h_x * z_x)
    ahead_w_x = w_x + alpha * (h_x * x_x - back * h_z * x_x_next)
    ahead_w_x_next = w_x_next + alpha * (h_x * x_x_next - back * h_z * x_next_x_next)
    ahead_delta = reward + gamma_next * ahead_w_x_next - ahead_w_x
    w = alpha * ahead_h_x, -alpha * back * ahead_h_z
    h = beta * ahead_delta, -beta * ahead_h_x
    return w, h
