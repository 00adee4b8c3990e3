"""Differential GTD2, called Diff-GQ1 by its authors: gradient descent for values and rate together.

Background: The rate is one more weight, of a feature that is 1 before every step and 0 after it.
Then differential TD is TD without discount, and its projected Bellman error has a gradient: this is
GTD2 with that feature. It is stable wherever there is one fixed point, and usually slow.

Update (β = ratio α); r̄ and u are numbers, the weights of the added feature in w and in h::

    δ = r - r̄ + wᵀx' - wᵀx
    w ← w + α (hᵀx + u) (x - ρ x')
    r̄ ← r̄ + α (hᵀx + u)
    h ← h + β (ρ δ - (hᵀx + u)) x
    u ← u + β (ρ δ - (hᵀx + u))

Fixed point: that of differential_td at λ = 0, with h = 0 and u = 0. Stable for every ratio > 0
where its matrix Ã = [[A, Φᵀd], [dᵀ(I - P)Φ, 1]] is not singular (or singular in constants alone).

Parameters: alpha > 0, ratio > 0 (beta/alpha, default 10).

Example::

    steadytd run average_baird differential_gtd2:alpha=0.01,ratio=1 --steps 100000 --seeds 10

Reference: Zhang, Wan, Sutton & Whiteson (2021), "Average-reward off-policy policy evaluation with
function approximation", Diff-GQ1; the update was read in the first author's public code.

Differs from the paper: 1. values of states and a ratio ρ, where the paper has those of state and
action. 2. no ridge on the weights.

Reduces to: gtd2 without discount on the features (x, 1) and next features (x', 0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from steadytd.engine.law import RATIO, Role, law
from steadytd.learners.differential_td import expectation as differential
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """M = [[0, -A'], [ratio A, ratio G]], g = (0, ratio b) of the features with the added one."""
    (A, b), ratio = differential(m, {"ratio": 1.0, "lam": 0.0}), values["ratio"]
    ones = m.Phi.T @ m.d
    G = np.block([[m.G, ones[:, None]], [ones, np.ones(1)]])
    M = np.block([[np.zeros_like(A), -A.T], [ratio * A, ratio * G]])
    g = np.append(np.zeros_like(b), ratio * b)
    d = len(ones)
    own = [*range(d), *range(d + 1, 2 * d + 1), d, 2 * d + 1]  # vectors first: w, h, rate, u
    return Expectation(M=M[np.ix_(own, own)], g=g[own])


@law(
    params={"ratio": replace(RATIO, cure=True)},
    writes={"w": ("x", "x_next"), "h": "x", "rate": "1", "u": "1"},
    expectation=expectation,
    average_reward=True,
    role=Role(2),
)
def differential_gtd2(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    h_x: float,
    rate: float,
    u: float,
    alpha: float,
    ratio: float,
) -> tuple[tuple[float, float], float, float, float]:
    """The multiples of (x, x') to add to w, of x to add to h, and what to add to rate and u."""
    delta = reward - rate + gamma_next * w_x_next - w_x
    slope = h_x + u
    h = ratio * alpha * (rho * delta - slope)
    return (alpha * slope, -alpha * rho * gamma_next * slope), h, alpha * slope, h
