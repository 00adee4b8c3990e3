"""TD with a target network: the bootstrap uses a copy v of the weights that lags behind.

Background: What deep learners do against divergence: the value of the next state comes from older
weights, so that a step does not chase its own tail. A copy that follows slowly enough is stable in
the mean where all eigenvalues of G⁻¹ A have a positive real part, as on baird. Rare hard copies
need more: that fitted iteration converges, so that each of them is less than 1 away from 1. Where
det A < 0 (on the row space), as on three_state, no slow copy is stable without a ridge, whatever
its ratio, nor a hard one whose steps between copies contract.

Update with `copy=slow` (the default; β = ratio α)::

    w ← w + α (ρ (r + γ' vᵀx' - wᵀx) x - ridge w)
    v ← v + β (w - v)

With `copy=hard`, v is set to w before every t-th step, and stands still in between.

Fixed point: (A + ridge I) w = b and v = w. The slow copy's mean update has the matrix
[[G + ridge I, -C], [-ratio I, ratio I]] with C = G - A. A hard copy has no mean update of one step:
t steps together make w ← w + Mₜ (b - (A + ridge I) w) with Mₜ = α Σ_{i<t}
(I - α (G + ridge I))ⁱ, to first order in the noise; `certify --cures` has its stable t
(partially_fitted).

Parameters: alpha > 0, ridge >= 0 (default 0), copy slow or hard; slow: ratio > 0 (beta/alpha,
default 0.1), v0 (v starts at v0 w0, default 1); hard: t a whole number >= 1 (default 10).

Example::

    steadytd run baird target_td:alpha=0.001,ratio=0.01 --steps 100000 --seeds 10

Reference: Zhang, Yao & Whiteson (2021), "Breaking the deadly triad with a target network"; the
hard copy as partially fitted iteration in arXiv 2501.01774.

Differs from the paper: 1. without its two projections, as in the authors' code.

Reduces to: td with copy=hard, t = 1 and ridge = 0; ridge_td at λ = 0 with copy=hard, t = 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from steadytd.engine.law import RATIO, Param, law
from steadytd.learners.ridge_td import RIDGE
from steadytd.mdp.moments import Expectation, Moments

PARAMS = {
    "ridge": replace(RIDGE, default=0.0, cure=False),
    "ratio": replace(RATIO, doc="step size of the copy / alpha", default=0.1),
    "t": Param("steps between copies", default=10.0, low=1.0, high=1e9, whole=True),
    "v0": Param("the copy starts at v0 w0", default=1.0),
}


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """M = [[G + ridge I, -C], [-ratio I, ratio I]], g = (b, 0)."""
    A, b, identity = m.A(), m.b(), m.share * np.eye(m.n_features)
    follow = values["ratio"] * identity
    M = np.block([[m.G + values["ridge"] * identity, A - m.G], [-follow, follow]])
    return Expectation(M=M, g=np.concatenate([b, np.zeros_like(b)]))


def countdown(left: float, t: float) -> float:
    """The steps that are left until the next copy; t - 1 in the step that copies."""
    return t - 1 if left < 0.5 else left - 1


@law(
    name="target_td",
    params=PARAMS,
    memory={"left": countdown},
    writes={"w": ("x", "w"), "v": ("w", "v")},
    starts={"v": "v0"},
)
def hard(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    v_x_next: float,
    left: float,
    alpha: float,
    ridge: float,
    t: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The multiples of (x, w) to add to w and of (w, v) to add to v: (1, -1) is a copy."""
    copies = 1.0 if left > t - 1.5 else 0.0
    ahead = w_x_next if copies > 0.0 else v_x_next
    w = alpha * rho * (reward + gamma_next * ahead - w_x), -alpha * ridge
    v = copies, -copies
    return w, v


@law(
    params=PARAMS,
    writes={"w": ("x", "w"), "v": ("w", "v")},
    starts={"v": "v0"},
    expectation=expectation,
    variant_param="copy",
    variants={"slow": None, "hard": hard},
)
def target_td(
    reward: float,
    rho: float,
    gamma_next: float,
    w_x: float,
    v_x_next: float,
    alpha: float,
    ridge: float,
    ratio: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The multiples of (x, w) to add to w and of (w, v) to add to v."""
    beta = ratio * alpha
    w = alpha * rho * (reward + gamma_next * v_x_next - w_x), -alpha * ridge
    v = beta, -beta
    return w, v
